// Scores of a checkpoint on the cells of an evaluation.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "app/eval/cells.h"
#include "datasets/prompt.h"
#include "engine/analysis/interval.h"
#include "engine/run/scoring.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope {

/// An example as a model reads it; `answers[i]` targets belong to question i, in order.
struct ExampleTokens {
  ScoredSequence sequence;
  std::vector<std::size_t> answers;
};

/// The tokens of an answer that stands in the text are predicted each from the one before it; an answer that does not must be one token,
/// and is predicted after the question. Throws Error.
ExampleTokens tokens_of(const Example& example, const Tokenizer& tokenizer);

/// Of each question, of each token of its answer.
using ExampleScores = std::vector<std::vector<TargetScore>>;

struct TaskScore {
  std::int64_t questions = 0;  // answers wanted
  bool by_reply = false;       // right is an answer that the greedy reply contains; else one that is predicted token by token
  bool in_chat = false;        // prompts had the form of the model's chat template
  std::int64_t hits = 0;       // by reply: answers contained
  Estimate exact;              // questions whose answer is right (in every token); the interval's unit is the example
  std::vector<double> tokens;  // the share of first, second, … answer tokens that is right, the answer before them given; none by reply
  double nll = 0;              // mean −ln p of the answers' tokens; NaN by reply
};
TaskScore summarise(std::span<const ExampleScores> examples);

struct TextScore {
  std::int64_t windows = 0;
  double bits_per_byte = 0, standard_error = 0;  // over windows; the first byte of each is given
  std::array<double, 8> parts{};                 // bits per byte in each eighth of the window
};
/// Each window has one score for each byte but its first; all are of `length` bytes.
TextScore summarise_text(std::span<const std::vector<TargetScore>> windows, std::int64_t length);

/// A cell with its files read.
struct PreparedCell {
  EvalCell cell;
  std::unique_ptr<const Task> task;  // null for a text
  std::string text;
  std::vector<Prompt> prompts;   // of a file; each says its answers
  std::filesystem::path assets;  // for needles in real text, which are made for a model's tokenizer
  std::string impossible;        // why there can be no examples: they do not fit into the length, …

  std::int64_t samples() const;
  /// Whether this model is given needles in real text, whatever is impossible in words or bytes.
  bool is_real_text(const Tokenizer& tokenizer) const;
};
/// Throws std::runtime_error for files that are missing or damaged.
PreparedCell prepare(const EvalCell& cell, const std::filesystem::path& assets);
/// Of windows of this text.
PreparedCell prepare_text(const EvalCell& cell, std::string text);
/// Of these prompts. Throws Error where one does not say what a right reply contains.
PreparedCell prepare_prompts(const EvalCell& cell, std::vector<Prompt> prompts);

struct CellScore {
  std::string checkpoint;               // as the user named it
  std::vector<std::string> notes = {};  // the model's
  EvalCell cell;
  std::string impossible;  // why there is no score
  std::optional<TaskScore> task;
  std::optional<TextScore> text;
};

/// Throws Error: words that the model does not know, Cancelled if `tell` returns false.
CellScore score_cell(const PreparedCell& prepared, ScorerPool& pool, const std::shared_ptr<const Tokenizer>& tokenizer,
                     const std::function<bool(std::int64_t tokens)>& tell = {});

}  // namespace statescope

// A prompt being read by a model, with its text: from here come the snapshots that views see.
#pragma once

#include <memory>

#include "engine/run/prompt_input.h"
#include "engine/run/run.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope {

/// Of its text, or its ids alone. Throws Error for a prompt without tokens, and as Tokenizer::encode.
Encoding encode(const PromptInput& prompt, const Tokenizer& tokenizer);

class Reading {
 public:
  /// Reads the prompt (not yet what is to be generated). Throws Error; Cancelled if `progress` returns false.
  Reading(std::shared_ptr<Model> model, std::shared_ptr<const Tokenizer> tokenizer, const PromptInput& prompt,
          const Progress& progress = {}, const RunOptions& options = {});
  /// Of a run that has read the prompt and whatever was generated: the model's own, or a branch that left `parent`.
  Reading(std::shared_ptr<Run> run, std::shared_ptr<const Tokenizer> tokenizer, const PromptInput& prompt, BranchInfo branch = {},
          std::shared_ptr<Reading> parent = nullptr);

  /// Reads the prompt's first tokens, in one pass; read_on() reads the others. Throws Error.
  static std::shared_ptr<Reading> begin(std::shared_ptr<Model> model, std::shared_ptr<const Tokenizer> tokenizer, const PromptInput& prompt,
                                        const RunOptions& options = {});
  /// Reads one more pass of the prompt, where there is more.
  void read_on();

  const std::vector<std::int32_t>& prompt_ids() const { return prompt_ids_; }
  /// How many tokens the prompt's maker wants generated.
  std::int64_t to_generate() const { return to_generate_; }
  /// Appends the most probable next token.
  void generate_one();
  /// Reads a token behind all others.
  void append(std::int32_t id);

  const std::shared_ptr<Model>& model() const { return run_->model_ptr(); }
  const Run& run() const { return *run_; }
  Run& run() { return *run_; }
  const std::shared_ptr<Run>& run_ptr() const { return run_; }
  /// Of the branch that this one left; null: it left none.
  const std::shared_ptr<Reading>& parent() const { return parent_; }
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizer_; }
  /// Of the run as it is now.
  std::shared_ptr<const RunInfo> info() const { return info_; }
  /// Null if there is no such layer or token. A head beyond a layer's last is its last.
  std::shared_ptr<const Snapshot> snapshot(std::int64_t layer, std::int64_t head, std::int64_t token);

 private:
  void show_tokens();

  std::shared_ptr<Run> run_;
  std::shared_ptr<Reading> parent_;
  std::vector<std::int32_t> prompt_ids_;
  std::int64_t to_generate_ = 0;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const RunInfo> info_;
};

}  // namespace statescope

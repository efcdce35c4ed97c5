#include "app/eval/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "app/eval/replies.h"
#include "app/eval/text_task.h"
#include "datasets/prose.h"
#include "engine/error.h"

namespace statescope {
namespace {

/// The first token that begins at `byte` or later.
std::int64_t token_at(const Encoding& encoding, std::size_t byte) {
  return std::lower_bound(encoding.begin.begin(), encoding.begin.end(), byte) - encoding.begin.begin();
}

/// What follows the question without being in the text.
std::int32_t only_token(const std::string& answer, const Tokenizer& tokenizer) {
  const std::vector<std::int32_t> ids = tokenizer.encode(answer, kContinuation).ids;
  if (ids.size() != 1) throw Error(fmt::format("the answer \"{}\" is {} tokens, but only one can be asked for here", answer, ids.size()));
  return ids.front();
}

/// The tokenizer's refusal, without its advice for prompts (after the semicolon), as one of this task.
[[noreturn]] void refuse_task(const Checkpoint& checkpoint, const std::string& task, std::string_view what) {
  throw Error(fmt::format("{}: cannot do task {}: {}", checkpoint.path.string(), task, what.substr(0, what.rfind("; "))));
}

ExampleTokens tokens_of(const Example& example, const Tokenizer& tokenizer, const Checkpoint& checkpoint, const std::string& task) {
  try {
    return tokens_of(example, tokenizer);
  } catch (const Error& error) {
    refuse_task(checkpoint, task, error.what());
  }
}

TaskScore score_task(const PreparedCell& prepared, ScorerPool& pool, const Tokenizer& tokenizer,
                     const std::function<bool(std::int64_t)>& tell) {
  const std::string& name = prepared.cell.task.name;
  std::vector<std::vector<std::size_t>> answers(static_cast<std::size_t>(prepared.samples()));
  const auto make = [&](std::int64_t index) {
    ExampleTokens tokens = tokens_of(prepared.task->example(index), tokenizer, pool.model().checkpoint(), name);
    answers[static_cast<std::size_t>(index)] = std::move(tokens.answers);
    return std::move(tokens.sequence);
  };
  const std::vector<std::vector<TargetScore>> scores = pool.score(prepared.samples(), make, tell);
  std::vector<ExampleScores> examples;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    ExampleScores& example = examples.emplace_back();
    auto next = scores[i].begin();
    for (std::size_t count : answers[i]) {
      example.emplace_back(next, next + static_cast<std::ptrdiff_t>(count));
      next += static_cast<std::ptrdiff_t>(count);
    }
  }
  return summarise(examples);
}

TaskScore score_real_text(const PreparedCell& prepared, ScorerPool& pool, const std::shared_ptr<const Tokenizer>& tokenizer,
                          const std::function<bool(std::int64_t)>& tell) {
  const ChatForm chat = chat_form(pool.model().checkpoint().path);
  const auto task = make_text_task(prepared.cell.task, tokenizer, prepared.assets, chat);
  const auto make = [&](std::int64_t i) { return asked_of(task->example(i), *tokenizer, encoding_of(chat)); };
  TaskScore score = score_replies(pool, tokenizer, prepared.samples(), make, prepared.cell.reply, tell);
  score.in_chat = static_cast<bool>(chat);
  return score;
}

TaskScore score_prompts(const PreparedCell& prepared, ScorerPool& pool, const std::shared_ptr<const Tokenizer>& tokenizer,
                        const std::function<bool(std::int64_t)>& tell) {
  const auto make = [&](std::int64_t i) {
    const Prompt& prompt = prepared.prompts[static_cast<std::size_t>(i)];
    const EncodeOptions encoding{.add_specials = !prompt.in_chat, .recognise_specials = prompt.in_chat || prepared.cell.special};
    AskedPrompt asked{prompt.ids.empty() ? tokenizer->encode(prompt.text, encoding).ids : prompt.ids, prompt.answers, prompt.any_answer};
    if (asked.ids.empty()) throw Error(fmt::format("{}: prompt {} is empty", prepared.cell.task.haystack, i + 1));
    return asked;
  };
  TaskScore score = score_replies(pool, tokenizer, prepared.samples(), make, prepared.cell.reply, tell);
  score.in_chat = std::ranges::all_of(prepared.prompts, &Prompt::in_chat);
  return score;
}

/// Throws Error where one does not.
void check_answers(const std::string& file, const std::vector<Prompt>& prompts) {
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::vector<std::string>& answers = prompts[i].answers;
    if (answers.empty() || std::ranges::any_of(answers, &std::string::empty))
      throw Error(
          fmt::format("{}: prompt {} does not say what a right reply contains (\"outputs\", \"expected\" or \"target\")", file, i + 1));
  }
}

/// Each prompt by the rule that the cell asks for; else the cell tells by which they all are.
void settle_rule(EvalCell& cell, std::vector<Prompt>& prompts) {
  if (cell.score != "mixed") {
    for (Prompt& prompt : prompts) prompt.any_answer = cell.score == "any";
  } else if (std::ranges::all_of(prompts, &Prompt::any_answer)) {
    cell.score = "any";
  } else if (std::ranges::none_of(prompts, &Prompt::any_answer)) {
    cell.score = "all";
  }
}

ScoredSequence window_sequence(std::string_view window, const Tokenizer& tokenizer, const Checkpoint& checkpoint) {
  ScoredSequence sequence;
  try {
    sequence.ids = tokenizer.encode(window).ids;
  } catch (const Error&) {
    sequence.ids.clear();
  }
  if (sequence.ids.size() != window.size()) refuse_task(checkpoint, "text", "it takes a model that reads bytes");
  sequence.prompt_length = static_cast<std::int64_t>(window.size());
  for (std::size_t i = 1; i < window.size(); ++i) sequence.targets.push_back({static_cast<std::int64_t>(i) - 1, sequence.ids[i]});
  return sequence;
}

TextScore score_text(const PreparedCell& prepared, ScorerPool& pool, const Tokenizer& tokenizer,
                     const std::function<bool(std::int64_t)>& tell) {
  const std::int64_t length = prepared.cell.task.length, windows = prepared.samples();
  const std::int64_t all = static_cast<std::int64_t>(prepared.text.size()) / length;
  const auto make = [&](std::int64_t index) {
    const std::int64_t number = index * all / windows;
    return window_sequence(
        std::string_view(prepared.text).substr(static_cast<std::size_t>(number * length), static_cast<std::size_t>(length)), tokenizer,
        pool.model().checkpoint());
  };
  return summarise_text(pool.score(windows, make, tell), length);
}

}  // namespace

ExampleTokens tokens_of(const Example& example, const Tokenizer& tokenizer) {
  Encoding encoding = tokenizer.encode(example.text);
  ExampleTokens tokens;
  ScoredSequence& sequence = tokens.sequence;
  for (const ExampleQuestion& question : example.questions) {
    const std::size_t before = sequence.targets.size();
    if (question.given.begin == question.given.end) {
      sequence.targets.push_back({token_at(encoding, question.asked.end) - 1, only_token(question.answer, tokenizer)});
    } else {
      const std::int64_t begin = token_at(encoding, question.given.begin), end = token_at(encoding, question.given.end);
      if (sequence.prompt_length == 0) sequence.prompt_length = begin;
      for (std::int64_t t = begin; t < end; ++t) sequence.targets.push_back({t - 1, encoding.ids[static_cast<std::size_t>(t)]});
    }
    tokens.answers.push_back(sequence.targets.size() - before);
  }
  sequence.ids = std::move(encoding.ids);
  if (sequence.prompt_length == 0) sequence.prompt_length = static_cast<std::int64_t>(sequence.ids.size());
  return tokens;
}

TaskScore summarise(std::span<const ExampleScores> examples) {
  TaskScore score;
  std::vector<double> fractions;
  std::vector<std::int64_t> right, asked;  // by place in the answer
  double nll = 0, right_answers = 0;
  bool one_question_each = true;
  for (const ExampleScores& example : examples) {
    std::size_t exact = 0;
    for (const std::vector<TargetScore>& answer : example) {
      right.resize(std::max(right.size(), answer.size()));
      asked.resize(right.size());
      for (std::size_t i = 0; i < answer.size(); ++i) {
        right[i] += answer[i].right ? 1 : 0;
        ++asked[i];
        nll += answer[i].nll;
      }
      exact += std::all_of(answer.begin(), answer.end(), [](const TargetScore& token) { return token.right; }) ? 1 : 0;
    }
    one_question_each = one_question_each && example.size() == 1;
    score.questions += std::ssize(example);
    right_answers += static_cast<double>(exact);
    fractions.push_back(static_cast<double>(exact) / static_cast<double>(example.size()));
  }
  score.exact = one_question_each ? wilson(right_answers, score.questions) : clustered(fractions);
  for (std::size_t i = 0; i < asked.size(); ++i) score.tokens.push_back(static_cast<double>(right[i]) / static_cast<double>(asked[i]));
  score.nll = nll / static_cast<double>(std::accumulate(asked.begin(), asked.end(), std::int64_t{0}));
  return score;
}

TextScore summarise_text(std::span<const std::vector<TargetScore>> windows, std::int64_t length) {
  TextScore score;
  score.windows = std::ssize(windows);
  std::vector<double> means;
  std::array<std::int64_t, 8> counts{};
  for (const std::vector<TargetScore>& window : windows) {
    double bits = 0;
    for (std::size_t i = 0; i < window.size(); ++i) {
      const auto part = (i + 1) * score.parts.size() / static_cast<std::size_t>(length);
      const double of_byte = window[i].nll / std::numbers::ln2;
      bits += of_byte;
      score.parts[part] += of_byte;
      ++counts[part];
    }
    means.push_back(bits / static_cast<double>(window.size()));
  }
  for (std::size_t part = 0; part < counts.size(); ++part) {
    if (counts[part] > 0) score.parts[part] /= static_cast<double>(counts[part]);
  }
  score.bits_per_byte = std::accumulate(means.begin(), means.end(), 0.0) / static_cast<double>(means.size());
  score.standard_error = standard_error(means);
  return score;
}

bool PreparedCell::is_real_text(const Tokenizer& tokenizer) const { return cell.task.name == "niah" && reads_real_text(tokenizer); }

std::int64_t PreparedCell::samples() const {
  if (cell.task.name == "niah") return cell.samples;
  if (!prompts.empty()) return std::min(cell.samples, std::ssize(prompts));
  return task ? cell.samples : std::min(cell.samples, static_cast<std::int64_t>(text.size()) / cell.task.length);
}

PreparedCell prepare_text(const EvalCell& cell, std::string text) {
  PreparedCell prepared{.cell = cell, .task = nullptr, .text = std::move(text), .prompts = {}, .assets = {}, .impossible = {}};
  const std::int64_t length = cell.task.length;
  if (length < 2 || prepared.samples() == 0)
    prepared.impossible = fmt::format("windows of {} bytes: at least 2, at most the {} bytes of the text", length, prepared.text.size());
  return prepared;
}

PreparedCell prepare_prompts(const EvalCell& cell, std::vector<Prompt> prompts) {
  check_answers(cell.task.haystack, prompts);
  PreparedCell prepared{.cell = cell, .task = nullptr, .text = {}, .prompts = std::move(prompts), .assets = {}, .impossible = {}};
  settle_rule(prepared.cell, prepared.prompts);
  prepared.cell.samples = prepared.samples();
  return prepared;
}

PreparedCell prepare(const EvalCell& cell, const std::filesystem::path& assets) {
  const TaskOptions& task = cell.task;
  if (task.name == "file") return prepare_prompts(cell, read_prompts(task.haystack));
  if (task.name == "text")
    return prepare_text(cell, prose(task.haystack == "prose" ? assets / "texts" : std::filesystem::path(task.haystack), task.split));
  PreparedCell prepared{.cell = cell, .task = nullptr, .text = {}, .prompts = {}, .assets = assets, .impossible = {}};
  try {
    prepared.task = make_task(task, assets);
    prepared.task->example(0);
  } catch (const OptionsError& why) {
    prepared.impossible = why.what();
  }
  return prepared;
}

CellScore score_cell(const PreparedCell& prepared, ScorerPool& pool, const std::shared_ptr<const Tokenizer>& tokenizer,
                     const std::function<bool(std::int64_t)>& tell) {
  CellScore score{.checkpoint = {}, .cell = prepared.cell, .impossible = {}, .task = {}, .text = {}};
  try {
    if (prepared.is_real_text(*tokenizer)) {
      score.task = score_real_text(prepared, pool, tokenizer, tell);
    } else if (!prepared.impossible.empty()) {
      score.impossible = prepared.impossible;
    } else if (!prepared.prompts.empty()) {
      score.task = score_prompts(prepared, pool, tokenizer, tell);
    } else if (prepared.task) {
      score.task = score_task(prepared, pool, *tokenizer, tell);
    } else {
      score.text = score_text(prepared, pool, *tokenizer, tell);
    }
  } catch (const OptionsError& why) {
    score.impossible = why.what();
  }
  return score;
}

}  // namespace statescope

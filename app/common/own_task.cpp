#include "app/common/own_task.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/assets.h"
#include "engine/error.h"

namespace statescope {

std::optional<Training> training_of(const Checkpoint& checkpoint) {
  using nlohmann::json;
  const auto found = checkpoint.provenance.find("recipe.json");
  if (found == checkpoint.provenance.end()) return {};
  const json recipe = json::parse(found->second, nullptr, false);
  if (!recipe.is_object() || !recipe.contains("task") || !recipe["task"].is_string()) return {};
  Training training{.task = recipe["task"]};
  if (recipe.contains("steps") && recipe["steps"].is_number_integer()) training.steps = recipe["steps"].get<std::int64_t>();
  return training;
}

TaskOptions own_task(const Training& training, std::int64_t length) {
  const bool prose = training.task == "prose";
  TaskOptions options;
  options.name = prose ? "niah" : training.task;
  options.haystack = prose ? "prose" : "filler";
  options.pairs = 16;
  options.length = length;
  constexpr std::int64_t most = 100;  // niah has names for some more
  options.needles = prose ? 1 : std::clamp<std::int64_t>(length / 64, 1, most);
  return options;
}

PromptInput prompt_of(const Example& example) {
  const ExampleQuestion& question = example.questions.front();
  const bool given = question.given.end > question.given.begin;  // the answer stands in the text
  PromptInput prompt;
  prompt.text = example.text.substr(0, given ? question.given.begin : question.asked.end);
  prompt.expected = question.answer;
  for (const std::size_t needle : question.needles)
    prompt.spans.push_back({SpanKind::needle, example.needles[needle].begin, example.needles[needle].end});
  prompt.spans.push_back({SpanKind::question, question.asked.begin, question.asked.end});
  return prompt;
}

PromptInput text_prompt_of(const Example& example, bool in_chat) {
  PromptInput prompt = prompt_of(example);
  const TextRange given = example.questions.front().given;
  prompt.expected = example.text.substr(given.begin, given.end - given.begin);
  prompt.in_chat = in_chat;
  return prompt;
}

PromptInput own_example(const Checkpoint& checkpoint, const std::string& name, std::int64_t length, std::int64_t number) {
  const std::optional<Training> training = training_of(checkpoint);
  if (!training) throw Error(name + ": it does not say what it was trained on; give a prompt");
  const Example example = make_task(own_task(*training, length), assets_folder())->example(number);
  PromptInput prompt{.text = example.text, .spans = {}, .ids = {}, .expected = {}, .generate = 0};
  for (const TextRange& needle : example.needles) prompt.spans.push_back({SpanKind::needle, needle.begin, needle.end});
  for (const ExampleQuestion& question : example.questions) {
    prompt.spans.push_back({SpanKind::question, question.asked.begin, question.asked.end});
    if (question.given.end > question.given.begin) prompt.spans.push_back({SpanKind::answer, question.given.begin, question.given.end});
  }
  return prompt;
}

PromptInput own_prompt(const Checkpoint& checkpoint, const std::string& name) {
  const std::optional<Training> training = training_of(checkpoint);
  const std::int64_t length = trained_length(checkpoint);
  if (!training || length == 0) throw Error(name + ": it does not say what it was trained on; give a prompt");
  return prompt_of(make_task(own_task(*training, length), assets_folder())->example(0));
}

}  // namespace statescope

// What a checkpoint of ours was trained on, as the recipe in it says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "datasets/task.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/session/session.h"

namespace statescope {

struct Training {
  std::string task;        // "niah", "mqar", "copy", "prose"
  std::int64_t steps = 0;  // 0: it does not say
};
/// Unset where there is no recipe.
std::optional<Training> training_of(const Checkpoint& checkpoint);

/// Evaluation examples of that task, of `length` words or bytes.
TaskOptions own_task(const Training& training, std::int64_t length);

/// An example of it, as long as what the checkpoint was trained on. Throws Error where the checkpoint does not say.
PromptInput own_prompt(const Checkpoint& checkpoint, const std::string& name);

/// Number `number` of its examples of that length, whole, as inspections read it, with every needle and question marked; nothing is
/// generated behind it. Throws Error likewise, and OptionsError where there is no such example.
PromptInput own_example(const Checkpoint& checkpoint, const std::string& name, std::int64_t length, std::int64_t number);

/// The text up to the answer of its first question, which is expected; its needles and that question are marked.
PromptInput prompt_of(const Example& example);
/// The same of needles in real text, in chat form or not; what is expected begins with the space behind the prompt.
PromptInput text_prompt_of(const Example& example, bool in_chat);

}  // namespace statescope

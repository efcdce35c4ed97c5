// Which sentences of a text are needle and question, where its maker only said what the answers are.
#pragma once

#include <string>
#include <vector>

#include "datasets/prompt.h"

namespace statescope {

/// For each answer the first sentence that has it as words of its own; then the last sentence that ends before `question_end`, bytes from
/// the text's beginning. Nothing where no answer stands in the text before the question.
std::vector<PromptSpan> answer_spans(const std::string& text, const std::vector<std::string>& answers, std::size_t question_end);

}  // namespace statescope

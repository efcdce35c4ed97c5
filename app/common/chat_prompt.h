// A conversation, and the prompt that a model's chat template makes of it.
#pragma once

#include <string>
#include <vector>

#include "app/common/prompts.h"

namespace statescope {

/// What --chat or --chat-file says, as a line of `statescope chat`. Throws Error.
std::string conversation_of(const PromptArguments& arguments);

/// By the template and tokenizer of `checkpoint`, as ids. `settings`: NAME=VALUE. Throws Error.
PromptInput chat_prompt(const std::string& conversation, const std::vector<std::string>& settings, const std::string& checkpoint);

/// A text with names of special tokens in it, as ids; `add_specials`: also those that the tokenizer puts around every text. Throws Error.
PromptInput special_prompt(const std::string& text, const std::string& checkpoint, bool add_specials = true);

}  // namespace statescope

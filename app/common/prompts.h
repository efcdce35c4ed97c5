// What a prompt's options name, read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/prompt_input.h"

namespace statescope {

/// Of --text, --ids, --prompt, --chat, --chat-file and --example at most one is set.
struct PromptArguments {
  std::optional<std::string> text;
  std::string ids, file;
  std::vector<TextSpan> spans;             // tokens of `ids` that mean something
  std::optional<std::string> chat;         // what the user says
  std::string chat_file;                   // JSON: messages, or a line of `statescope chat`
  std::vector<std::string> chat_settings;  // NAME=VALUE for the chat template
  bool special = false;                    // names of special tokens in --text are those tokens
  std::int64_t example = 0;                // the length of an example of what the checkpoint was trained on; 0: none
  std::int64_t number = 0;                 // of that example, or of one in `file`, from 0
  bool is_chat() const { return chat || !chat_file.empty(); }
  bool given() const { return text || !ids.empty() || !file.empty() || is_chat() || example > 0; }
};

/// Reads what the arguments name; `fallback` is a prompt file for when they name nothing, `checkpoint` the path of that whose chat template
/// and tokenizer make a conversation into ids. Throws Error.
PromptInput load_prompt(const PromptArguments& arguments, const std::string& fallback = "", const std::string& checkpoint = "");
/// A conversation by the checkpoint's chat template, as ids: special tokens that it writes are those tokens, and none come beside it.
PromptInput chat_prompt(const PromptArguments& arguments, const std::string& checkpoint);
/// What is read where nobody says it: an example of what the checkpoint was trained on, if it says that it is something else than needles,
/// else the usual needle prompt. `checkpoint`: a path, or empty. Throws Error.
PromptInput first_prompt(const PromptArguments& arguments, const std::string& checkpoint);

/// Whether the first words of an answer are the expected ones, whatever white space is before them and whatever mark behind.
bool answers(const std::string& text, const std::string& expected);

}  // namespace statescope

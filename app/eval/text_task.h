// Needles in real text for the model that reads them: lengths in its tokens, in its chat form where it has one.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "datasets/task.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope {

/// Whether needles for it are those of real text: it has a tokenizer that is neither a word list nor bytes.
bool reads_real_text(const Tokenizer& tokenizer);

/// What a user says, up to where the model's turn begins.
using ChatForm = std::function<std::string(const std::string& said)>;
/// By the chat template of a checkpoint; empty where it has none. The model is not to think before it answers (enable_thinking), and it is
/// always the same day. Throws Error.
ChatForm chat_form(const std::filesystem::path& checkpoint);
/// Special tokens that a chat template writes are those tokens, and none come beside them.
EncodeOptions encoding_of(const ChatForm& chat);

/// Throws OptionsError, std::runtime_error.
std::unique_ptr<const Task> make_text_task(const TaskOptions& options, std::shared_ptr<const Tokenizer> tokenizer,
                                           const std::filesystem::path& assets, const ChatForm& chat = {});

}  // namespace statescope

// Several turns of a chat as one prompt: from a JSON of messages, and by a model's chat template.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/pages/prompt_text.h"

namespace statescope {

/// What a tokenizer makes of a conversation in its chat template's form: special tokens that the template writes are those tokens. What is
/// marked in the turns is marked where the template puts it. As long as the text is: not for the interface thread.
TextReading read_chat(const Tokenizer& tokenizer, const chat::TemplateFolder& folder, const std::vector<ChatTurn>& turns);

/// The turns of a JSON list of messages {"role", "content"}, or of an object that has the list under "messages"; nothing where the text is
/// neither. Throws Error, which begins with `where`, for a message that is wrong or says more than a turn has.
std::optional<std::vector<ChatTurn>> turns_in(const std::string& text, const std::string& where);

}  // namespace statescope

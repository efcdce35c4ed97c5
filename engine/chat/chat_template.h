// A chat template: messages into the text of a prompt, as Transformers' apply_chat_template does it.
#pragma once

#include <ctime>
#include <optional>
#include <string>

#include "engine/chat/language/syntax.h"
#include "engine/chat/values/runtime.h"
#include "engine/chat/values/value.h"

namespace statescope::chat {

/// What is said, and what the template may know of it.
struct Conversation {
  Value messages;          // a list, not empty; undefined: the template does without
  Value tools, documents;  // a list, or none
  bool add_generation_prompt = false;
  Dict others;  // the caller's own names: enable_thinking, …
};

/// The names that the template sees: of the conversation (null entries of messages gone, reasoning under both of its names), and
/// `special_tokens`, which others of the same name replace. Throws Error for an empty list of messages.
Dict variables_of(const Conversation& conversation, const Dict& special_tokens);

class ChatTemplate {
 public:
  /// Throws SyntaxError; what is not supported is named.
  explicit ChatTemplate(const std::string& source);
  /// The text, to be encoded without special tokens of the tokenizer's own. Throws Complaint where the template complains, else Error with
  /// the line. `now`: local time, for strftime_now.
  std::string render(const Dict& variables, const std::tm& now) const;

 private:
  Body body_;
};

/// "2026-03-04T05:06:07", or with a space, or the date alone. Throws Error.
std::tm parse_time(const std::string& text);
std::tm local_time();

}  // namespace statescope::chat

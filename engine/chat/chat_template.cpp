#include "engine/chat/chat_template.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>

#include "engine/chat/language/interpreter.h"
#include "engine/chat/language/parser.h"
#include "engine/chat/values/unicode.h"

namespace statescope::chat {
namespace {

/// Without what is null; what the assistant thought stands under `reasoning_content` and `thinking`.
Value prepared(const Value& message) {
  if (!message.is_dict()) return message;
  Dict out;
  for (const auto& [key, value] : message.dict().entries) {
    if (!value.is_none()) out.set(key, value);
  }
  for (const std::string name : {"reasoning_content", "thinking", "reasoning"}) {
    const Value* found = out.find(name);
    if (!found) continue;
    const Value thought = *found;
    out.set("reasoning_content", thought);
    if (!out.find(std::string("thinking"))) out.set("thinking", thought);
    break;
  }
  return Value::dict(std::move(out));
}

Value prepared_messages(const Value& messages) {
  if (!messages.is_list() || messages.sequence()->items.empty()) throw Error("messages are a list of at least one message");
  Items out;
  for (const Value& message : messages.sequence()->items) out.push_back(prepared(message));
  return Value::list(std::move(out));
}

}  // namespace

Dict variables_of(const Conversation& conversation, const Dict& special_tokens) {
  Dict out = special_tokens;
  for (const auto& [name, value] : conversation.others.entries) out.set(name, value);
  if (!conversation.messages.is_undefined()) out.set("messages", prepared_messages(conversation.messages));
  out.set("tools", conversation.tools);
  out.set("documents", conversation.documents);
  out.set("add_generation_prompt", conversation.add_generation_prompt);
  return out;
}

ChatTemplate::ChatTemplate(const std::string& source) {
  if (!valid_utf8(source)) throw Error("the template is not UTF-8");
  body_ = Parser(tokens_of(source)).parse();
}

std::string ChatTemplate::render(const Dict& variables, const std::tm& now) const { return Interpreter(body_, variables, now).run(); }

std::tm parse_time(const std::string& text) {
  std::tm time{};
  int end = 0;
  const int count = std::sscanf(text.c_str(), "%4d-%2d-%2d%n%*1[T ]%2d:%2d:%2d%n", &time.tm_year, &time.tm_mon, &time.tm_mday, &end,
                                &time.tm_hour, &time.tm_min, &time.tm_sec, &end);
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  time.tm_isdst = -1;
  std::tm same = time;
  const bool exists = (count == 3 || count == 6) && static_cast<std::size_t>(end) == text.size() && std::mktime(&same) != -1;
  if (!exists || same.tm_mday != time.tm_mday || same.tm_mon != time.tm_mon) {
    throw Error(fmt::format("'{}' is no time: write it as 2026-03-04T05:06:07, or 2026-03-04", text));
  }
  time.tm_wday = same.tm_wday;
  time.tm_yday = same.tm_yday;
  return time;
}

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm time{};
  ::localtime_r(&now, &time);
  return time;
}

}  // namespace statescope::chat

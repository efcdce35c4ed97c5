#include "app/pages/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/chat/chat_template.h"
#include "engine/chat/request.h"
#include "engine/checkpoint/file.h"
#include "engine/error.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope {
namespace {

using nlohmann::json;

/// Said in a turn, it shows where a template puts the words: no template has them of its own.
const std::string kProbe = "what-the-turn-says";

/// The words of a turn in the text that a template makes: their bytes [from, from + size) stand at `at`. A template may trim them.
struct SaidWords {
  std::size_t from = 0, size = 0, at = 0;
};

std::string in_form(const chat::TemplateFolder& folder, const std::vector<ChatTurn>& turns) {
  json messages = json::array();
  for (const ChatTurn& turn : turns) messages.push_back({{"role", turn.role}, {"content", turn.text}});
  const chat::RequestDefaults defaults{.template_name = "", .now = chat::local_time(), .variables = {}, .add_generation_prompt = true};
  return chat::prompt_of(json{{"messages", std::move(messages)}}.dump(), folder, defaults);
}

/// As they are or trimmed, at byte `at` of the text.
std::optional<SaidWords> said_in(const std::string& text, const std::string& said, std::size_t at) {
  if (at == text.npos || at > text.size()) return {};
  if (text.compare(at, said.size(), said) == 0) return SaidWords{0, said.size(), at};
  const std::size_t begin = said.find_first_not_of(kWhiteSpace);
  if (begin == said.npos) return {};
  const std::size_t size = said.find_last_not_of(kWhiteSpace) + 1 - begin;
  if (text.compare(at, size, said, begin, size) != 0) return {};
  return SaidWords{begin, size, at};
}

/// The part of the words that a span marks, as bytes of the template's text; empty where it was trimmed away.
TextSpan moved(const TextSpan& span, const SaidWords& said) {
  const auto place = [&](std::size_t byte) { return std::clamp(byte, said.from, said.from + said.size) - said.from + said.at; };
  return {span.kind, place(span.begin), place(span.end)};
}

void move_marks(TextReading& reading, const chat::TemplateFolder& folder, const std::vector<ChatTurn>& turns) {
  for (std::size_t i = 0; i < turns.size(); ++i) {
    if (turns[i].spans.empty()) continue;
    std::vector<ChatTurn> probed = turns;
    probed[i].text = kProbe;
    const std::optional<SaidWords> said = said_in(reading.chat, turns[i].text, in_form(folder, probed).find(kProbe));
    reading.lost_marks |= !said;
    if (!said) continue;
    for (const TextSpan& span : turns[i].spans) reading.spans.push_back(moved(span, *said));
  }
}

bool is_conversation(const json& value) {
  if (value.is_object()) return value.contains("messages");
  return value.is_array() && !value.empty() && value.front().is_object() && value.front().contains("role");
}

ChatTurn turn_of(const json& message, const std::string& name) {
  if (!message.is_object()) throw Error(name + " is not an object");
  for (const char* key : {"role", "content"}) {
    const auto found = message.find(key);
    if (found == message.end()) throw Error(fmt::format("{} has no \"{}\"", name, key));
    if (!found->is_string()) throw Error(fmt::format("{}: its \"{}\" is not a text", name, key));
  }
  for (const auto& [key, value] : message.items())
    if (key != "role" && key != "content") throw Error(fmt::format("{}: a turn has no {}", name, in_quotes(key)));
  return {message["role"].get<std::string>(), message["content"].get<std::string>()};
}

}  // namespace

TextReading read_chat(const Tokenizer& tokenizer, const chat::TemplateFolder& folder, const std::vector<ChatTurn>& turns) {
  TextReading reading;
  try {
    reading.chat = in_form(folder, turns);
    move_marks(reading, folder, turns);
    reading.ids = tokenizer.encode(reading.chat, {.add_specials = false, .recognise_specials = true}).ids;
  } catch (const Error& error) {
    reading.refused = error.what();
  }
  return reading;
}

std::optional<std::vector<ChatTurn>> turns_in(const std::string& text, const std::string& where) {
  const json value = json::parse(text.starts_with("\xEF\xBB\xBF") ? text.substr(3) : text, nullptr, false);
  if (value.is_discarded() || !is_conversation(value)) return {};
  if (value.is_object())
    for (const auto& [key, part] : value.items())
      if (key != "messages" && !(key == "add_generation_prompt" && part == true))
        throw Error(fmt::format("{}: {} cannot be said in turns", where, in_quotes(key)));
  const json& messages = value.is_object() ? value["messages"] : value;
  if (!messages.is_array() || messages.empty()) throw Error(fmt::format("{}: \"messages\" is not a list of one or more", where));
  std::vector<ChatTurn> turns;
  for (const json& message : messages) turns.push_back(turn_of(message, fmt::format("{}: message {}", where, turns.size() + 1)));
  return turns;
}

}  // namespace statescope

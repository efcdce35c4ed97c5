#include "engine/chat/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "engine/chat/chat_template.h"
#include "engine/chat/values/json.h"

namespace statescope::chat {
namespace {

/// What stands under a key; none where nothing does.
Value at(const Dict& line, const std::string& key) {
  const Value* found = line.find(key);
  return found ? *found : Value();
}

std::string text_at(const Dict& line, const std::string& key, const std::string& otherwise) {
  const Value value = at(line, key);
  if (value.is_none()) return otherwise;
  if (!value.is_text()) throw Error(fmt::format("\"{}\" is not a text", key));
  return value.text();
}

Value list_at(const Dict& line, const std::string& key) {
  Value value = at(line, key);
  if (!value.is_none() && !value.is_list()) throw Error(fmt::format("\"{}\" is not a list", key));
  return value;
}

/// The caller's own names.
Dict others_of(const Dict& line, const RequestDefaults& defaults) {
  constexpr std::array<std::string_view, 4> taken{"messages", "tools", "documents", "add_generation_prompt"};
  Dict out = defaults.variables;
  const Value kwargs = at(line, "kwargs");
  if (kwargs.is_none()) return out;
  if (!kwargs.is_dict()) throw Error("\"kwargs\" is not an object");
  for (const auto& [name, value] : kwargs.dict().entries) {
    if (std::ranges::find(taken, name.text()) != taken.end())
      throw Error(fmt::format("\"kwargs\" cannot hold '{}': it stands beside it", name.text()));
    out.set(name, value);
  }
  return out;
}

Conversation conversation_of(const Dict& line, const RequestDefaults& defaults) {
  Conversation out;
  const bool without = !line.find(std::string("messages")) && line.find(std::string("template"));
  out.messages = without ? Value::undefined("'messages' is undefined") : list_at(line, "messages");
  out.tools = list_at(line, "tools");
  out.documents = list_at(line, "documents");
  const Value prompt = at(line, "add_generation_prompt");
  if (!prompt.is_none() && !prompt.is_boolean()) throw Error("\"add_generation_prompt\" is neither true nor false");
  out.add_generation_prompt = prompt.is_none() ? defaults.add_generation_prompt : prompt.boolean();
  out.others = others_of(line, defaults);
  return out;
}

}  // namespace

std::string prompt_of(const std::string& text, const TemplateFolder& folder, const RequestDefaults& defaults) {
  const Value line = parse_json(text, "the line");
  if (!line.is_dict()) throw Error("the line is not a JSON object");
  const Conversation conversation = conversation_of(line.dict(), defaults);
  const Value own = at(line.dict(), "template");
  const std::string name = text_at(line.dict(), "template_name", defaults.template_name);
  const std::string source = own.is_none() ? folder.source(name, !conversation.tools.is_none()) : text_at(line.dict(), "template", "");
  const std::string now = text_at(line.dict(), "now", "");
  const Dict variables = variables_of(conversation, folder.special_tokens());
  return ChatTemplate(source).render(variables, now.empty() ? defaults.now : parse_time(now));
}

void add_setting(Dict& variables, const std::string& setting) {
  const std::size_t equals = setting.find('=');
  if (equals == 0 || equals == std::string::npos) throw Error(setting + ": write NAME=VALUE");
  const std::string value = setting.substr(equals + 1);
  try {
    variables.set(setting.substr(0, equals), parse_json(value, "value"));
  } catch (const Error&) {
    variables.set(setting.substr(0, equals), value);
  }
}

std::string answer(const std::string& line, const TemplateFolder& folder, const RequestDefaults& defaults) {
  Dict out;
  try {
    out.set("text", prompt_of(line, folder, defaults));
  } catch (const Error& error) {
    out.set("error", std::string(error.what()));
  }
  return json_text(Value::dict(std::move(out)), {});
}

}  // namespace statescope::chat

#include "engine/chat/template_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "engine/chat/json.h"
#include "engine/chat/unicode.h"
#include "engine/checkpoint/file.h"

namespace statescope::chat {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMostOfFile = 16'000'000;
constexpr std::size_t kMostTemplates = 1'000;

using Sources = std::map<std::string, std::string>;

std::string read_text(const fs::path& path) {
  std::string text = read_file(path, kMostOfFile);
  if (!valid_utf8(text)) fail(path, "is not UTF-8");
  return text;
}

/// A JSON object; an empty one where there is no such file.
Dict read_object(const fs::path& path) {
  if (!fs::exists(path)) return {};
  const Value value = parse_json(read_text(path), path.string());
  if (!value.is_dict()) fail(path, "is not a JSON object");
  return value.dict();
}

/// chat_template.jinja and additional_chat_templates/NAME.jinja.
Sources of_files(const fs::path& folder) {
  Sources sources;
  if (fs::exists(folder / "chat_template.jinja")) sources["default"] = read_text(folder / "chat_template.jinja");
  const fs::path more = folder / "additional_chat_templates";
  if (!fs::is_directory(more)) return sources;
  for (const auto& entry : fs::directory_iterator(more)) {
    if (entry.path().extension() != ".jinja") continue;
    if (sources.size() >= kMostTemplates) fail(more, "holds too many templates");
    sources[entry.path().stem().string()] = read_text(entry.path());
  }
  return sources;
}

/// "chat_template" of a JSON file: a text, a list of {"name", "template"}, or an object from names to texts.
Sources of_json(const fs::path& path, const Dict& object) {
  const Value* found = object.find(std::string("chat_template"));
  if (!found || found->is_none()) return {};
  if (found->is_text()) return {{"default", found->text()}};
  Sources sources;
  const auto add = [&](const Value* name, const Value* text) {
    if (!name || !text || !name->is_text() || !text->is_text()) fail(path, "\"chat_template\": each template has a name and a text");
    sources[name->text()] = text->text();
  };
  if (found->is_dict()) {
    for (const auto& [name, text] : found->dict().entries) add(&name, &text);
    return sources;
  }
  if (!found->is_list()) fail(path, "\"chat_template\" is neither a text nor a list");
  for (const Value& one : found->sequence()->items) {
    if (!one.is_dict()) fail(path, "\"chat_template\": each template has a name and a text");
    add(one.dict().find(std::string("name")), one.dict().find(std::string("template")));
  }
  return sources;
}

/// The text of a token: it, or an object's "content".
std::optional<std::string> token_text(const Value& value) {
  if (value.is_text()) return value.text();
  if (!value.is_dict()) return std::nullopt;
  const Value* content = value.dict().find(std::string("content"));
  return content && content->is_text() ? std::optional(content->text()) : std::nullopt;
}

void add_tokens(Dict& tokens, const Dict& object) {
  for (const std::string name : {"bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token"}) {
    const Value* value = object.find(name);
    if (!value) continue;
    if (const auto text = token_text(*value)) tokens.set(name, *text);
  }
  const Value* extra = object.find(std::string("extra_special_tokens"));
  if (!extra || !extra->is_dict()) return;
  for (const auto& [name, value] : extra->dict().entries) {
    if (const auto text = token_text(value)) tokens.set(name, *text);
  }
}

std::string names_of(const Sources& sources) {
  std::string names;
  for (const auto& [name, source] : sources) names += (names.empty() ? "" : ", ") + in_quotes(name);
  return names;
}

}  // namespace

TemplateFolder::TemplateFolder(const fs::path& path) : path_(path) {
  if (!fs::exists(path)) fail(path, "does not exist");
  const bool folder = fs::is_directory(path);
  const fs::path home = folder ? path : path.parent_path();
  if (!folder && path.extension() == ".json") {
    sources_ = of_json(path, read_object(path));
  } else if (!folder) {
    sources_["default"] = read_text(path);
  }
  const Dict config = read_object(home / "tokenizer_config.json");
  add_tokens(special_tokens_, read_object(home / "special_tokens_map.json"));
  add_tokens(special_tokens_, config);
  if (!folder) return;
  sources_ = of_files(home);
  if (sources_.empty()) sources_ = of_json(home / "tokenizer_config.json", config);
  for (const char* last : {"chat_template.json", "processor_config.json"}) {
    if (sources_.empty()) sources_ = of_json(home / last, read_object(home / last));
  }
}

const std::string& TemplateFolder::source(const std::string& name, bool tools) const {
  if (sources_.empty()) fail(path_, "has no chat template (chat_template.jinja, or \"chat_template\" in tokenizer_config.json)");
  const std::string wanted = !name.empty() ? name : tools && sources_.contains("tool_use") ? "tool_use" : "default";
  const auto found = sources_.find(wanted);
  if (found != sources_.end()) return found->second;
  fail(path_, fmt::format("{}; it has {}",
                          name.empty() ? "none of its chat templates is the default, so one has to be named"
                                       : fmt::format("has no chat template called {}", in_quotes(name)),
                          names_of(sources_)));
}

}  // namespace statescope::chat

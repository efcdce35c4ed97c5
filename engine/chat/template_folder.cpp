#include "engine/chat/template_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "engine/chat/values/json.h"
#include "engine/chat/values/unicode.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/file.h"

namespace statescope::chat {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMostOfFile = 16'000'000;
constexpr std::size_t kMostTemplates = 1'000;

using Sources = std::map<std::string, std::string>;
using Files = std::map<std::string, std::string>;  // name → bytes

constexpr std::string_view kMore = "additional_chat_templates/", kEnding = ".jinja";

std::string read_text(const fs::path& path) {
  std::string text = read_file(path, kMostOfFile);
  if (!valid_utf8(text)) fail(path, "is not UTF-8");
  return text;
}

Files files_of_folder(const fs::path& folder) {
  Files files;
  for (const char* name :
       {"chat_template.jinja", "tokenizer_config.json", "special_tokens_map.json", "chat_template.json", "processor_config.json"}) {
    if (fs::exists(folder / name)) files[name] = read_text(folder / name);
  }
  const fs::path more = folder / kMore;
  if (!fs::is_directory(more)) return files;
  for (const auto& entry : fs::directory_iterator(more)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(kEnding)) continue;
    if (files.size() >= kMostTemplates) fail(more, "holds too many templates");
    files[std::string(kMore) + name] = read_text(entry.path());
  }
  return files;
}

/// A JSON object; an empty one where there is no such file.
Dict object_of(const Files& files, const std::string& name, const fs::path& path) {
  const auto found = files.find(name);
  if (found == files.end()) return {};
  const Value value = parse_json(found->second, (path / name).string());
  if (!value.is_dict()) fail(path / name, "is not a JSON object");
  return value.dict();
}

/// chat_template.jinja and additional_chat_templates/NAME.jinja.
Sources of_files(const Files& files) {
  Sources sources;
  for (const auto& [name, text] : files) {
    if (name == "chat_template.jinja") sources["default"] = text;
    if (name.starts_with(kMore)) sources[name.substr(kMore.size(), name.size() - kMore.size() - kEnding.size())] = text;
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
  const bool folder = fs::is_directory(path), checkpoint = path.extension() == ".h5";
  const fs::path home = folder || checkpoint ? path : path.parent_path();
  const Files files = checkpoint && !folder ? open_checkpoint(path)->tokenizer : files_of_folder(home);
  add_tokens(special_tokens_, object_of(files, "special_tokens_map.json", home));
  add_tokens(special_tokens_, object_of(files, "tokenizer_config.json", home));
  if (!folder && !checkpoint) {
    const std::string name = path.filename().string();
    sources_ =
        name.ends_with(".json") ? of_json(path, object_of({{name, read_text(path)}}, name, home)) : Sources{{"default", read_text(path)}};
    return;
  }
  sources_ = of_files(files);
  for (const char* name : {"tokenizer_config.json", "chat_template.json", "processor_config.json"}) {
    if (sources_.empty()) sources_ = of_json(home / name, object_of(files, name, home));
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

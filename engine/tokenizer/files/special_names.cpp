#include "engine/tokenizer/files/special_names.h"

#include <nlohmann/json.hpp>

namespace statescope {
namespace {

using nlohmann::json;

/// A token is written as a text, or as an object with its content.
std::string token_called(const json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end()) return {};
  const json& token = found->is_object() && found->contains("content") ? (*found)["content"] : *found;
  return token.is_string() ? token.get<std::string>() : std::string();
}

std::optional<bool> flag_called(const json& config, const char* key) {
  const auto found = config.find(key);
  return found != config.end() && found->is_boolean() ? std::optional(found->get<bool>()) : std::nullopt;
}

}  // namespace

json json_file(const TokenizerFiles& files, std::string_view name) {
  const std::string* text = files.find(name);
  json value = text ? json::parse(*text, nullptr, /*allow_exceptions=*/false) : json();
  return value.is_object() ? value : json::object();
}

SpecialNames special_names(const TokenizerFiles& files) {
  SpecialNames names;
  for (const char* file : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const json config = json_file(files, file);
    if (names.begin.empty()) names.begin = token_called(config, "bos_token");
    if (names.end.empty()) names.end = token_called(config, "eos_token");
    if (!names.add_begin) names.add_begin = flag_called(config, "add_bos_token");
    if (!names.add_end) names.add_end = flag_called(config, "add_eos_token");
  }
  return names;
}

}  // namespace statescope

#include "engine/config/config_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/config/key_tables.h"
#include "engine/error.h"

namespace statescope {
namespace {

using enum KeyUse;

/// "gla.attn" → the list of "gla.attn", else that of "attn"; "qwen3_5_text" → that of "qwen3_5".
const std::vector<const KeyTable*>& tables_of(std::string_view where) {
  auto found = key_tables().find(where);
  if (found == key_tables().end() && where.ends_with("_text")) found = key_tables().find(where.substr(0, where.size() - 5));
  if (found == key_tables().end()) found = key_tables().find(where.substr(where.find('.') + 1));
  if (found == key_tables().end()) throw Error(fmt::format("no list of config keys for {}", where));
  return found->second;
}

// -------------------------------------------------------------------------------------------------------------------- what is said

bool is_near(const nlohmann::json& value, double expected) {
  return value.is_number() && std::abs(value.get<double>() - expected) <= 1e-6 * std::abs(expected);
}

double head_dim(const Config& config) {
  if (config.has("head_dim")) return static_cast<double>(config.integer("head_dim"));
  const auto heads = config.integer(config.has("num_attention_heads") ? "num_attention_heads" : "num_heads", 1);
  return static_cast<double>(config.integer("hidden_size", 1)) / static_cast<double>(heads);
}

bool is_right(const KeyRule& rule, const Config& config, const nlohmann::json& value) {
  switch (rule.use) {
    case computed:
    case harmless:
      return true;
    case with:
      return config.has(rule.text) && !config.boolean(rule.text, true);
    case fixed:
      break;
  }
  if (rule.text == "head_dim") return is_near(value, head_dim(config));
  if (rule.text == "head_dim^-1/2") return is_near(value, 1 / std::sqrt(head_dim(config)));
  return value == nlohmann::json::parse(rule.text);
}

std::string complaint(std::string_view where, const std::string& key, const nlohmann::json& value, const std::optional<KeyRule>& rule) {
  const std::string is = fmt::format("\"{}\" is {}", key.substr(0, 200), shown(value));
  if (!rule) return fmt::format("{}, a key that is not known to leave what {} computes as it is; without it the model opens", is, where);
  if (rule->use == with) return fmt::format("{}, which is not supported unless \"{}\" is false", is, rule->text);
  return fmt::format("{}, which is not supported: {} is computed with {} alone", is, where, rule->text);
}

void require_known(const Config& object, const Config& model, std::string_view where) {
  std::vector<std::string> refused;
  std::string first;
  for (const auto& [key, value] : object.raw().items()) {
    if (value.is_null()) continue;
    const std::optional<KeyRule> rule = key_rule(where, key);
    if (rule && is_right(*rule, model, value)) continue;
    if (refused.empty()) first = complaint(where, key, value, rule);
    refused.push_back(fmt::format("\"{}\"", key.substr(0, 60)));
  }
  if (refused.empty()) return;
  constexpr std::size_t named = 6;
  const auto end = refused.begin() + static_cast<std::ptrdiff_t>(std::min(refused.size(), named));
  const std::string others = refused.size() > 1 ? fmt::format("; likewise {}", fmt::join(refused.begin() + 1, end, ", ")) : "";
  throw Error(fmt::format("config: {}{}{}", first, others, refused.size() > named ? ", …" : ""));
}

}  // namespace

std::optional<KeyRule> key_rule(std::string_view where, std::string_view key) {
  for (const KeyTable* table : tables_of(where)) {
    for (const KeyGroup& group : *table) {
      if (std::ranges::find(group.keys, key) != group.keys.end()) return KeyRule{group.use, group.text};
    }
  }
  return std::nullopt;
}

void require_known_keys(const Config& config, std::string_view family) {
  require_known(config, config, family);
  for (const char* name : {"attn", "sla", "row_sparse", "linear_attn_config", "attn_pattern"}) {
    const std::optional<KeyRule> rule = key_rule(family, name);
    if (!rule || rule->use != computed) continue;
    for (const Config& object : config.objects(name)) require_known(object, config, fmt::format("{}.{}", family, name));
  }
}

void require_known_rope_keys(const Config& settings) { require_known(settings, settings, "rope"); }

void require_known_wrapper_keys(const Config& wrapper, const Config& text_config) {
  for (const auto& [key, value] : wrapper.raw().items()) {
    if (value.is_null()) continue;
    const std::optional<KeyRule> rule = key_rule("wrapper", key);
    if (rule && is_right(*rule, wrapper, value)) continue;
    const auto inner = text_config.raw().find(key);
    if (inner != text_config.raw().end() && *inner == value) continue;
    if (inner != text_config.raw().end())
      throw Error(fmt::format("config: \"{}\" is {}, but {} in \"text_config\"", key.substr(0, 200), shown(value), shown(*inner)));
    throw Error(
        fmt::format("config: \"{}\" is {} beside \"text_config\", where it does not reach the text model: it belongs into "
                    "\"text_config\", or out of the file",
                    key.substr(0, 200), shown(value)));
  }
}

}  // namespace statescope

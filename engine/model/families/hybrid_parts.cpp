#include "engine/model/families/hybrid_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/config/config_keys.h"
#include "engine/error.h"
#include "engine/mixers/parts.h"
#include "engine/mixers/rope.h"

namespace statescope {
namespace {

std::int64_t inner_size(const Config& config, const MambaKeys& keys, std::int64_t heads) {
  if (!keys.inner.empty() && config.has(keys.inner)) return config.integer(keys.inner);
  if (!keys.expand.empty()) return expanded(config.integer("hidden_size"), config, keys.expand, 2);
  return heads * config.integer(keys.head_dim);
}

/// P; "auto" is d_in / H.
std::int64_t head_size(const Config& config, const MambaKeys& keys, std::int64_t inner, std::int64_t heads) {
  const std::int64_t size = divided(inner, "inner width of Mamba-2", heads, keys.heads);
  if (!config.has(keys.head_dim) || config.raw()[std::string(keys.head_dim)] == "auto") return size;
  if (config.integer(keys.head_dim) != size)
    throw Error(fmt::format("config: \"{}\" is {}, but {} heads of an inner width of {} have {} channels each", keys.head_dim,
                            config.integer(keys.head_dim), heads, inner, size));
  return size;
}

}  // namespace

std::int64_t swiglu_width(const Config& config, std::int64_t hidden, double default_ratio) {
  if (config.has("intermediate_size")) return config.integer("intermediate_size");
  // I = 256·ceil( trunc(D · ratio · 2/3) / 256 )
  const bool is_null = config.raw().contains("hidden_ratio") && !config.has("hidden_ratio");  // null means 4, whatever the family's default
  const double ratio = config.number("hidden_ratio", is_null ? 4 : default_ratio);
  const auto wanted = static_cast<std::int64_t>(static_cast<double>(hidden) * ratio * 2 / 3);
  if (wanted < 1 || wanted > 100'000'000) throw Error(fmt::format("config: \"hidden_ratio\" is {}, out of range", ratio));
  return (wanted + 255) / 256 * 256;
}

Config mamba2_layer(const Config& config, const MambaKeys& keys) {
  const std::int64_t heads = config.integer(keys.heads, 128), inner = inner_size(config, keys, heads);
  nlohmann::json layer{{"hidden_size", config.integer("hidden_size")},
                       {"inner_size", inner},
                       {"num_heads", heads},
                       {"head_dim", head_size(config, keys, inner, heads)},
                       {"state_size", config.integer(keys.state, 128)},
                       {"n_groups", config.integer(keys.groups, keys.default_groups)},
                       {"use_conv_bias", config.boolean(keys.conv_bias, true)},
                       {"use_bias", config.boolean(keys.in_bias, false)},
                       {"out_bias", config.boolean(keys.out_bias, false)},
                       {"hidden_act", config.text(keys.act, "silu")},
                       {"norm_eps", config.not_negative(keys.eps, 1e-5)}};
  if (config.has(keys.conv)) layer["conv_kernel"] = config.integer(keys.conv);
  if (config.has("time_step_limit")) layer["dt_limit"] = config.raw()["time_step_limit"];
  return Config(std::move(layer))
      .said("conv_kernel", keys.conv)
      .said("num_heads", keys.heads)
      .said("head_dim", keys.head_dim)
      .said("state_size", keys.state)
      .said("n_groups", keys.groups);
}

std::int64_t time_step_rank(const Config& config, std::string_view key, std::int64_t hidden) {
  if (!config.has(key) || config.raw()[std::string(key)] == "auto") return (hidden + 15) / 16;
  return config.integer(key);
}

nlohmann::json mamba_sizes(const Config& config, std::int64_t hidden) {
  nlohmann::json layer{{"hidden_size", hidden},
                       {"expand", config.number("mamba_expand", 2)},
                       {"state_size", config.integer("mamba_d_state", 16)},
                       {"time_step_rank", time_step_rank(config, "mamba_dt_rank", hidden)},
                       {"use_bias", config.boolean("mamba_proj_bias", false)},
                       {"use_conv_bias", config.boolean("mamba_conv_bias", true)}};
  if (config.has("mamba_d_conv")) layer["conv_kernel"] = config.integer("mamba_d_conv");
  return layer;
}

Config with_mamba_keys(nlohmann::json layer) {
  return Config(std::move(layer))
      .said("expand", "mamba_expand")
      .said("num_heads", "n_mamba_heads")
      .said("state_size", "mamba_d_state")
      .said("time_step_rank", "mamba_dt_rank")
      .said("conv_kernel", "mamba_d_conv");
}

Config softmax_layer(const Config& config) {
  const std::int64_t hidden = config.integer("hidden_size"), heads = config.integer("num_attention_heads");
  const bool bias = config.boolean("attention_bias", false);
  nlohmann::json layer{
      {"hidden_size", hidden},
      {"num_heads", heads},
      {"num_kv_heads", config.integer("num_key_value_heads", heads)},
      {"head_dim", config.has("head_dim") ? config.integer("head_dim") : divided(hidden, "hidden_size", heads, "num_attention_heads")},
      {"qkv_bias", bias},
      {"o_bias", bias}};
  for (const char* key : {"rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor", "max_position_embeddings",
                          "original_max_position_embeddings"}) {
    if (config.has(key)) layer[key] = config.raw()[key];
  }
  return Config(std::move(layer)).said("num_heads", "num_attention_heads").said("num_kv_heads", "num_key_value_heads");
}

Config without_positions(const Config& layer) {
  nlohmann::json bare = layer.raw();
  for (const char* key : {"rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor"}) bare.erase(key);
  bare["positions"] = false;
  return Config(std::move(bare)).said("num_heads", layer.in_file("num_heads")).said("num_kv_heads", layer.in_file("num_kv_heads"));
}

Plan hybrid_plan(const Config& config, const std::string& family, const std::string& root, std::string_view norm, std::string_view eps,
                 double default_eps) {
  require_known_keys(config, family);
  Plan plan;
  plan.family = family;
  plan.hidden = config.integer("hidden_size");
  plan.vocab = config.integer("vocab_size");
  plan.embeddings = root + (root == "backbone." ? "embeddings.weight" : "embed_tokens.weight");
  plan.norm = fmt::format("{}{}.weight", root, norm);
  plan.head = "lm_head.weight";
  plan.norm_eps = plan.ffn_norm_eps = static_cast<float>(config.not_negative(eps, default_eps));
  plan.tied = config.boolean("tie_word_embeddings", false);
  plan.tied_where_no_head = true;
  return plan;
}

std::vector<std::string> layer_kinds(const Config& config, std::string_view key, std::initializer_list<std::string_view> allowed,
                                     std::optional<std::int64_t> layers) {
  std::vector<std::string> kinds = config.texts(key);
  for (std::string& kind : kinds) {
    if (kind == "mamba") kind = "linear_attention";
    if (kind == "attention") kind = "full_attention";
    if (std::ranges::find(allowed, kind) == allowed.end())
      throw Error(fmt::format("config: \"{}\" holds {}, expected {}", key, shown(kind), fmt::join(allowed, " or ")));
  }
  if (layers && !kinds.empty() && std::ssize(kinds) != *layers)
    throw Error(fmt::format("config: \"{}\" has {} entries, the model {} layers", key, kinds.size(), *layers));
  return kinds;
}

std::vector<bool> listed_layers(const Config& config, std::string_view key, std::int64_t layers) {
  std::vector<bool> listed(static_cast<std::size_t>(layers), false);
  for (const std::int64_t i : config.integers(key)) {
    if (i < 0 || i >= layers) throw Error(fmt::format("config: \"{}\" names layer {}, the model has {}", key, i, layers));
    listed[static_cast<std::size_t>(i)] = true;
  }
  return listed;
}

MlpPlan with_numbered_names(std::int64_t width) { return {.width = width, .gate = "w1", .up = "w3", .down = "w2"}; }

ExpertsPlan grouped_experts(const Config& config, const ExpertKeys& keys) {
  ExpertsPlan plan{.count = config.integer(keys.count, keys.default_count, 1, 1'000'000)};
  plan.chosen = config.integer(keys.chosen, std::min(keys.default_chosen, plan.count), 1, plan.count);
  plan.sigmoid = true;
  plan.correction = "gate.e_score_correction_bias";
  plan.how.groups = config.integer(keys.groups, 1, 1, plan.count);
  plan.how.chosen_groups = config.integer("topk_group", 1, 1, plan.how.groups);
  const std::int64_t in_group = divided(plan.count, keys.count, plan.how.groups, keys.groups);
  if (plan.how.chosen_groups * in_group < plan.chosen)
    throw Error(fmt::format("config: \"{}\" is {}, but the {} chosen groups have {} experts", keys.chosen, plan.chosen,
                            plan.how.chosen_groups, plan.how.chosen_groups * in_group));
  plan.how.renormalise = config.boolean(keys.renormalise, true);
  plan.how.eps = 1e-20F;
  plan.how.factor = static_cast<float>(config.number("routed_scaling_factor", 1));
  plan.shared = "shared_experts.";
  return plan;
}

void note_positions(Plan& plan, const Config& softmax) {
  if (!softmax.boolean("positions", true)) return;
  const std::string positions = Rope(softmax, softmax.integer("head_dim"), 1).description();
  if (!positions.empty()) plan.notes.push_back(positions);
}

}  // namespace statescope

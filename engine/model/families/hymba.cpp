// Hymba: attention and Mamba-1 in parallel in every layer, memory tokens, windows, keys and values that layers share (spec §17.9).
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/error.h"
#include "engine/model/families/hybrid_parts.h"

namespace statescope {
namespace {

Config mamba_of(const Config& config, std::int64_t hidden) {
  const bool normed = config.boolean("mamba_inner_layernorms", true);
  nlohmann::json layer = mamba_sizes(config, hidden);
  layer["hidden_act"] = config.text("hidden_act", "silu");
  layer["inner_norms"] = normed ? "weighted" : "none";
  layer["inner_norm_eps"] = config.not_negative("rms_norm_eps", 1e-6);
  return with_mamba_keys(std::move(layer));
}

/// A width that other keys give already; −1 says nothing. Throws Error.
void require_width(const Config& config, std::string_view key, std::int64_t derived) {
  const std::int64_t named = config.integer(key, derived, -1);
  if (named != derived && named != -1) throw Error(fmt::format("config: \"{}\" is {}, expected {}", key, named, derived));
}

/// θ; of the kind "ntk" a larger one.
double rope_base(const Config& config, std::int64_t channels) {
  const double theta = config.positive("rope_theta", 10000);
  if (config.text("rope_type", "default", {"default", "ntk"}) == "default") return theta;
  if (channels <= 2) throw Error(fmt::format("config: \"rope_type\" is \"ntk\", but heads have {} channels", channels));
  // θ ← θ (f m / o − (f − 1))^{d / (d − 2)},   f = 2
  constexpr double factor = 2;
  const double most = config.positive("max_position_embeddings", 8192), trained = config.positive("orig_max_position_embeddings", 2048);
  const double stretched = factor * most / trained - (factor - 1);
  if (stretched < 1) throw Error(fmt::format("config: \"max_position_embeddings\" is {}, fewer than {}", most, trained));
  return theta * std::pow(stretched, static_cast<double>(channels) / static_cast<double>(channels - 2));
}

/// What the layers have in common.
nlohmann::json layer_of(const Config& config, const Plan& plan) {
  nlohmann::json layer = mamba_of(config, plan.hidden).raw();
  const std::int64_t heads = config.integer("num_attention_heads", 32);
  const auto d_in = static_cast<std::int64_t>(static_cast<double>(plan.hidden) * config.number("mamba_expand", 2));
  require_width(config, "attn_hidden_size", plan.hidden);
  require_width(config, "kq_head_dim", plan.hidden / heads);
  require_width(config, "v_head_dim", d_in / heads);
  layer["num_heads"] = heads;
  layer["num_kv_heads"] = config.integer("num_key_value_heads", 8);
  layer["norm_eps"] = config.not_negative("rms_norm_eps", 1e-6);
  layer["kq_norm"] = config.text("kq_norm", "none", {"none", "rms", "perhead-rms"});
  layer["positions"] = config.boolean("rope", false);
  if (layer["positions"]) layer["rope_theta"] = rope_base(config, plan.hidden / heads);
  return layer;
}

/// t − s ≤ w, besides the memory tokens.
void add_window(nlohmann::json& layer, std::int64_t w, std::int64_t memory_tokens) {
  if (memory_tokens == 0) {
    layer["window_size"] = w + 1;
    return;
  }
  std::vector<std::int64_t> all(static_cast<std::size_t>(memory_tokens));
  std::iota(all.begin(), all.end(), 0);
  layer["attn_pattern"] = {{"type", "longformer"}, {"window", w + 1}, {"global_tokens", all}};
}

/// For each layer the one whose keys and values it uses; −1: its own. Throws Error.
std::vector<std::int64_t> producers(const Config& config, std::int64_t layers) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(layers), -1);
  const std::int64_t every = config.integer("kv_reuse_every_i_layer", -1, -1);
  const bool has_groups = config.has("kv_reuse_group") && !config.raw()["kv_reuse_group"].empty();
  if (every > 0 && has_groups) throw Error("config: \"kv_reuse_every_i_layer\" stands beside \"kv_reuse_group\", expected one of the two");
  // The layer before, which may have its own from the one before it.
  for (std::int64_t i = 0; every > 0 && i < layers; ++i) {
    if (i % every != 0) all[static_cast<std::size_t>(i)] = i - i % every;
  }
  if (!has_groups) return all;
  const nlohmann::json& groups = config.raw()["kv_reuse_group"];
  if (!groups.is_array()) throw Error(fmt::format("config: \"kv_reuse_group\" is {}, expected lists of layers", shown(groups)));
  std::vector<bool> named(static_cast<std::size_t>(layers));
  for (const nlohmann::json& list : groups) {
    const std::vector<std::int64_t> group = Config(nlohmann::json{{"kv_reuse_group", list}}).integers("kv_reuse_group");
    for (const std::int64_t i : group) {
      if (i < 0 || i < group.front() || i >= layers)
        throw Error(fmt::format("config: \"kv_reuse_group\" holds {}, which names layer {}", shown(list), i));
      if (named[static_cast<std::size_t>(i)]) throw Error(fmt::format("config: \"kv_reuse_group\" names layer {} twice", i));
      named[static_cast<std::size_t>(i)] = true;
      if (i != group.front()) all[static_cast<std::size_t>(i)] = group.front();
    }
  }
  return all;
}

/// Parameters of the one scan that a layer has are stored under the number 0, its norms of B and C with capitals.
void add_names_of_hymba(Plan& plan, const std::string& mixer) {
  for (const auto& [part, end] : {std::pair{"x_proj", ".weight"}, {"dt_proj", ".weight"}, {"dt_proj", ".bias"}, {"A_log", ""}, {"D", ""}})
    plan.other_names[mixer + part + ".0" + end] = mixer + part + end;
  plan.other_names[mixer + "B_layernorm.weight"] = mixer + "b_layernorm.weight";
  plan.other_names[mixer + "C_layernorm.weight"] = mixer + "c_layernorm.weight";
}

}  // namespace

Plan plan_hymba(const Config& config, const std::string& family) {
  Plan plan = hybrid_plan(config, family, "model.", "final_layernorm", "rms_norm_eps", 1e-6);
  plan.memory_token_count = config.integer("num_memory_tokens", 0, 0, 1 << 20);
  if (plan.memory_token_count > 0) plan.memory_tokens = "model.memory_tokens";
  const std::int64_t layers = config.integer("num_hidden_layers", 32, 1, kMaxLayers);
  const std::vector<std::string> kinds = config.texts("layer_type");
  for (const std::string& kind : kinds) {
    if (kind != "h") throw Error(fmt::format("config: \"layer_type\" holds {}, expected \"h\"", shown(kind)));
  }
  MlpPlan mlp{.width = config.integer("intermediate_size")};
  if (config.text("mlp_hidden_act", "silu", {"silu", "relu2"}) == "relu2") mlp.gate = "";
  const nlohmann::json own = layer_of(config, plan);
  const std::vector<bool> global = listed_layers(config, "global_attn_idx", layers);
  const std::vector<std::int64_t> producer = producers(config, layers);
  for (std::int64_t i = 0; i < layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::string prefix = fmt::format("model.layers.{}.", i);
    nlohmann::json layer = own;
    if (config.has("sliding_window") && !global[at]) add_window(layer, config.integer("sliding_window"), plan.memory_token_count);
    if (producer[at] >= 0) layer["producer"] = fmt::format("model.layers.{}.", producer[at]);
    add_names_of_hymba(plan, prefix + "mamba.");
    plan.layers.push_back({.mixer = "hymba",
                           .config = Config(std::move(layer)),
                           .mixer_prefix = prefix + "mamba.",
                           .mixer_norm = prefix + "input_layernorm.weight",
                           .reads_companion = producer[at] >= 0,
                           .companion_layer = producer[at],
                           .ffn_prefix = prefix + "moe.experts.0.",
                           .ffn_norm = prefix + "pre_moe_layernorm.weight",
                           .mlp = mlp});
  }
  return plan;
}

}  // namespace statescope

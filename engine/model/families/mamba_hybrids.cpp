// Hybrids whose every layer has an MLP behind Mamba-2, attention, or both.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/error.h"
#include "engine/model/families/hybrid_parts.h"

namespace statescope {
namespace {

constexpr MambaKeys kHybridKeys{.heads = "mamba_n_heads",
                                .head_dim = "mamba_d_head",
                                .inner = {},
                                .expand = "mamba_expand",
                                .state = "mamba_d_state",
                                .groups = "mamba_n_groups",
                                .conv = "mamba_d_conv",
                                .conv_bias = "mamba_conv_bias",
                                .in_bias = "mamba_proj_bias",
                                .out_bias = "mamba_proj_bias",
                                .act = "hidden_act",
                                .eps = "rms_norm_eps"};

constexpr MambaKeys falcon_keys() {
  MambaKeys keys = kHybridKeys;
  keys.inner = "mamba_d_ssm";
  keys.out_bias = "projectors_bias";
  return keys;
}

std::int64_t layer_count(const Config& config) { return config.integer("num_hidden_layers", {}, 1, kMaxLayers); }

void require_silu(const Config& config) { config.text("hidden_act", "silu", {"silu", "swish"}); }

float factor_of(const Config& config, std::string_view key) { return static_cast<float>(config.number(key, 1)); }

/// A layer of Mamba-2 or of attention, and its MLP; names of Bamba and Granite.
LayerPlan layer_of(std::int64_t i, bool full, const Config& mamba, const Config& softmax) {
  const std::string prefix = fmt::format("model.layers.{}.", i);
  return {.mixer = full ? "transformer" : "mamba2",
          .config = full ? softmax : mamba,
          .mixer_prefix = prefix + (full ? "self_attn." : "mamba."),
          .mixer_norm = prefix + "input_layernorm.weight"};
}

/// Only half of each head's channels turn, whatever the config says.
Config half_turned(const Config& softmax) {
  nlohmann::json layer = softmax.raw();
  for (const char* settings : {"rope_scaling", "rope_parameters"}) {
    if (layer.contains(settings)) layer[settings].erase("partial_rotary_factor");
  }
  layer["partial_rotary_factor"] = 0.5;
  return Config(std::move(layer));
}

ExpertsPlan granite_experts(const Config& config, std::int64_t count, const MlpPlan& shared) {
  ExpertsPlan plan{.count = count};
  plan.chosen = config.integer("num_experts_per_tok", 8, 1, count);
  plan.expert.width = config.integer("intermediate_size");
  plan.one_by_one = {};
  plan.packed = {{"block_sparse_moe.input_linear.weight", "block_sparse_moe.output_linear.weight"},
                 {"block_sparse_moe.experts.gate_up_proj", "block_sparse_moe.experts.down_proj"}};
  plan.router = {"block_sparse_moe.router.layer", "block_sparse_moe.router"};
  plan.shared = "shared_mlp.";
  plan.shared_expert = shared;
  return plan;
}

}  // namespace

Plan plan_bamba(const Config& config, const std::string& family) {
  Plan plan = hybrid_plan(config, family, "model.", "final_layernorm", "rms_norm_eps", 1e-5);
  require_silu(config);
  const Config mamba = mamba2_layer(config, kHybridKeys), softmax = half_turned(softmax_layer(config));
  note_positions(plan, softmax);
  const std::int64_t layers = layer_count(config);
  const std::vector<bool> full = listed_layers(config, "attn_layer_indices", layers);
  for (std::int64_t i = 0; i < layers; ++i) {
    LayerPlan layer = layer_of(i, full[static_cast<std::size_t>(i)], mamba, softmax);
    layer.ffn_prefix = fmt::format("model.layers.{}.feed_forward.", i);
    layer.ffn_norm = fmt::format("model.layers.{}.pre_ff_layernorm.weight", i);
    layer.mlp = {.width = config.integer("intermediate_size"), .biases = config.boolean("mlp_bias", false)};
    plan.layers.push_back(std::move(layer));
  }
  return plan;
}

Plan plan_granite_hybrid(const Config& config, const std::string& family) {
  Plan plan = hybrid_plan(config, family, "model.", "norm", "rms_norm_eps", 1e-6);
  require_silu(config);
  plan.embedding_factor = factor_of(config, "embedding_multiplier");
  plan.logits_factor = 1 / static_cast<float>(config.positive("logits_scaling", 1));
  const std::int64_t layers = layer_count(config), experts = config.integer("num_local_experts", 0, 0, 1'000'000);
  std::vector<std::string> kinds = layer_kinds(config, "layer_types", {"linear_attention", "full_attention"}, layers);
  if (kinds.empty()) kinds.assign(static_cast<std::size_t>(layers), "linear_attention");
  const bool any_mamba = std::ranges::find(kinds, "linear_attention") != kinds.end();
  const Config mamba = any_mamba ? mamba2_layer(config, kHybridKeys) : config;
  Config softmax = softmax_layer(config).with("scale", config.number("attention_multiplier", 1));
  if (config.text("position_embedding_type", "nope") != "rope") softmax = without_positions(softmax);
  note_positions(plan, softmax);
  if (!any_mamba) plan.notes.push_back("this model has only attention layers, nothing recurrent");
  MlpPlan shared{.width = config.integer("shared_intermediate_size"), .gate_within_up = true};
  shared.up = "input_linear";
  shared.down = "output_linear";
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string prefix = fmt::format("model.layers.{}.", i);
    LayerPlan layer = layer_of(i, kinds[static_cast<std::size_t>(i)] == "full_attention", mamba, softmax);
    layer.mixer_residual.part_factor = layer.ffn_residual.part_factor = factor_of(config, "residual_multiplier");
    layer.ffn = experts > 0 ? FfnKind::experts : FfnKind::mlp;
    layer.ffn_prefix = experts > 0 ? prefix : prefix + "shared_mlp.";
    layer.ffn_norm = prefix + "post_attention_layernorm.weight";
    layer.mlp = shared;
    if (experts > 0) layer.experts = std::make_shared<const ExpertsPlan>(granite_experts(config, experts, shared));
    plan.layers.push_back(std::move(layer));
  }
  return plan;
}

Plan plan_falcon_h1(const Config& config, const std::string& family) {
  Plan plan = hybrid_plan(config, family, "model.", "final_layernorm", "rms_norm_eps", 1e-5);
  require_silu(config);
  plan.embedding_factor = factor_of(config, "embedding_multiplier");
  plan.logits_factor = factor_of(config, "lm_head_multiplier");
  nlohmann::json mamba = mamba2_layer(config, falcon_keys()).raw();
  mamba["rmsnorm"] = config.boolean("mamba_rms_norm", false);
  mamba["norm_before_gate"] = config.boolean("mamba_norm_before_gate", true);
  mamba["in_factor"] = factor_of(config, "ssm_in_multiplier");
  if (config.has("ssm_multipliers")) mamba["part_factors"] = config.raw()["ssm_multipliers"];
  nlohmann::json softmax = softmax_layer(config).raw();
  softmax["in_factor"] = factor_of(config, "attention_in_multiplier");
  softmax["key_factor"] = factor_of(config, "key_multiplier");
  note_positions(plan, Config(softmax));
  const std::vector<double> of_mlp = config.numbers("mlp_multipliers");
  if (!of_mlp.empty() && of_mlp.size() != 2) throw Error("config: \"mlp_multipliers\" must hold two numbers");
  MlpPlan mlp{.width = config.integer("intermediate_size"), .biases = config.boolean("mlp_bias", false)};
  if (!of_mlp.empty()) mlp.gate_factor = static_cast<float>(of_mlp[0]), mlp.factor = static_cast<float>(of_mlp[1]);
  const Config both(nlohmann::json{{"mamba", mamba},
                                   {"attention", softmax},
                                   {"mamba_factor", factor_of(config, "ssm_out_multiplier")},
                                   {"attention_factor", factor_of(config, "attention_out_multiplier")}});
  for (std::int64_t i = 0; i < layer_count(config); ++i) {
    const std::string prefix = fmt::format("model.layers.{}.", i);
    plan.layers.push_back({.mixer = "falcon_h1",
                           .config = both,
                           .mixer_prefix = prefix,
                           .mixer_norm = prefix + "input_layernorm.weight",
                           .ffn_prefix = prefix + "feed_forward.",
                           .ffn_norm = prefix + "pre_ff_layernorm.weight",
                           .mlp = mlp});
  }
  return plan;
}

}  // namespace statescope

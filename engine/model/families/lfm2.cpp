#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/error.h"
#include "engine/model/families/hybrid_parts.h"

namespace statescope {
namespace {

/// Width of the dense MLP (spec §19.10).
std::int64_t mlp_width(const Config& config, bool moe) {
  const std::int64_t width = config.has("block_ff_dim") && !moe ? config.integer("block_ff_dim") : config.integer("intermediate_size");
  if (moe || !config.boolean("block_auto_adjust_ff_dim", true)) return width;
  const std::int64_t multiple = config.integer("block_multiple_of", 256);
  const std::int64_t adjusted = expanded(2 * width / 3, config, "block_ffn_dim_multiplier", 1.0);
  return (adjusted + multiple - 1) / multiple * multiple;
}

ExpertsPlan experts_of_lfm2(const Config& config) {
  ExpertsPlan plan{.count = config.integer("num_experts", 32, 1, 1'000'000)};
  plan.chosen = config.integer("num_experts_per_tok", 4, 1, plan.count);
  plan.expert = with_numbered_names(config.integer("moe_intermediate_size"));
  plan.sigmoid = true;
  if (config.boolean("use_expert_bias", true)) plan.correction = "expert_bias";
  plan.how.renormalise = config.boolean("norm_topk_prob", true);
  plan.how.eps = 1e-6F;
  plan.how.factor = static_cast<float>(config.number("routed_scaling_factor", 1));
  return plan;
}

std::vector<bool> full_layers(const Config& config, std::int64_t layers) {
  const std::vector<std::string> kinds = layer_kinds(config, "layer_types", {"conv", "full_attention"}, layers);
  if (kinds.empty()) return listed_layers(config, "full_attn_idxs", layers);
  std::vector<bool> full;
  for (const std::string& kind : kinds) full.push_back(kind == "full_attention");
  return full;
}

}  // namespace

Plan plan_lfm2(const Config& config, const std::string& family) {
  const bool moe = family == "lfm2_moe";
  Plan plan = hybrid_plan(config, family, "model.", "embedding_norm", "norm_eps", 1e-5);
  plan.tied = config.boolean("tie_word_embeddings", config.boolean("tie_embedding", true));
  const Config softmax = softmax_layer(config)
                             .with("o_proj", "out_proj")
                             .with("qk_norm", true)
                             .with("q_norm", "q_layernorm")
                             .with("k_norm", "k_layernorm")
                             .with("qk_norm_eps", config.not_negative("norm_eps", 1e-5));
  note_positions(plan, softmax);
  const std::int64_t layers = config.integer("num_hidden_layers", {}, 1, kMaxLayers);
  const std::int64_t dense = moe ? config.integer("num_dense_layers", 2, 0) : layers;
  const std::vector<bool> full = full_layers(config, layers);
  const MlpPlan mlp = dense > 0 ? with_numbered_names(mlp_width(config, moe)) : MlpPlan{};
  const auto experts = dense < layers ? std::make_shared<const ExpertsPlan>(experts_of_lfm2(config)) : nullptr;
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool is_full = full[static_cast<std::size_t>(i)];
    const std::string prefix = fmt::format("model.layers.{}.", i);
    plan.layers.push_back({.mixer = is_full ? "transformer" : "gated_convolution",
                           .config = is_full ? softmax : config,
                           .mixer_prefix = prefix + (is_full ? "self_attn." : "conv."),
                           .mixer_norm = prefix + "operator_norm.weight",
                           .ffn = i < dense ? FfnKind::mlp : FfnKind::experts,
                           .ffn_prefix = prefix + "feed_forward.",
                           .ffn_norm = prefix + "ffn_norm.weight",
                           .mlp = mlp,
                           .experts = experts});
  }
  return plan;
}

}  // namespace statescope

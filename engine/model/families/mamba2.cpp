#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/config/config_keys.h"
#include "engine/error.h"
#include "engine/model/families/hybrid_parts.h"

namespace statescope {

namespace {

constexpr MambaKeys kMamba2Keys{.heads = "num_heads",
                                .head_dim = "head_dim",
                                .inner = {},
                                .expand = {},  // only repeats what heads and head_dim say
                                .state = "state_size",
                                .groups = "n_groups",
                                .conv = "conv_kernel",
                                .conv_bias = "use_conv_bias",
                                .in_bias = "use_bias",
                                .out_bias = "use_bias",
                                .act = "hidden_act",
                                .eps = "layer_norm_epsilon",
                                .default_groups = 8};

void add_layers(Plan& plan, const Config& model, const Config& layer) {
  const std::int64_t layers = model.integer("num_hidden_layers", 48, 1, kMaxLayers);
  for (std::int64_t i = 0; i < layers; ++i) {
    plan.layers.push_back({.mixer = "mamba2",
                           .config = layer,
                           .mixer_prefix = fmt::format("backbone.layers.{}.mixer.", i),
                           .mixer_norm = fmt::format("backbone.layers.{}.norm.weight", i),
                           .ffn = FfnKind::none});
  }
}

/// It gates first and then normalises each group, whatever norm_before_gate and rms_norm say.
Plan plan_of_transformers(const Config& config) {
  Plan plan = hybrid_plan(config, "mamba2_hf", "backbone.", "norm_f", "layer_norm_epsilon", 1e-5);
  plan.family = "mamba2";
  const Config layer = mamba2_layer(config.with("head_dim", config.integer("head_dim", 64)), kMamba2Keys);
  if (const std::int64_t inner = expanded(plan.hidden, config, "expand", 2); inner != layer.integer("inner_size"))
    throw Error(
        fmt::format("config: \"num_heads\" · \"head_dim\" is {}, but \"expand\" · \"hidden_size\" {}", layer.integer("inner_size"), inner));
  add_layers(plan, config, layer);
  return plan;
}

}  // namespace

Plan plan_mamba2(const Config& config, const std::string& family) {
  if (config.has("layer_norm_epsilon") || config.raw().contains("time_step_limit")) return plan_of_transformers(config);
  require_known_keys(config, family);
  Plan plan;
  plan.family = family;
  plan.hidden = config.integer("hidden_size");
  plan.vocab = config.integer("vocab_size", 32000);
  plan.embeddings = "backbone.embeddings.weight";
  plan.norm = "backbone.norm_f.weight";
  plan.head = "lm_head.weight";
  plan.norm_eps = static_cast<float>(config.not_negative("norm_eps", 1e-5));
  plan.tied = config.boolean("tie_word_embeddings", false);
  add_layers(plan, config, config);
  if (!config.has("norm_before_gate")) {
    plan.notes.push_back("config has no \"norm_before_gate\": false is assumed; early Mamba-2 checkpoints normalised before gating");
  }
  return plan;
}

}  // namespace statescope

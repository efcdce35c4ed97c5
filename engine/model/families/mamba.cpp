// Mamba-1 in the layouts of Transformers and flash-linear-attention, Falcon-Mamba, and Jamba, which has Mamba-1 beside attention.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/config/names.h"
#include "engine/error.h"
#include "engine/mixers/parts.h"
#include "engine/model/families/hybrid_parts.h"

namespace statescope {
namespace {

/// Throws Error where the config says another width than expand · hidden_size.
void require_derived_width(const Config& config, std::int64_t hidden) {
  const std::int64_t derived = expanded(hidden, config, "expand", 2);
  const std::int64_t named = config.integer("intermediate_size", derived);
  if (named != derived) throw Error(fmt::format("config: \"intermediate_size\" is {}, but expand · hidden_size {}", named, derived));
}

/// Which of two names of one number the config has. Throws Error where both are there and differ.
std::string_view either(const Config& config, std::string_view name, std::string_view other) {
  if (!config.has(other)) return name;
  const auto value = [&](std::string_view key) { return config.raw()[std::string(key)]; };
  if (config.has(name) && value(name) != value(other))
    throw Error(fmt::format("config: \"{}\" is {}, but \"{}\" {}", name, shown(value(name)), other, shown(value(other))));
  return other;
}

/// Layers offset, offset + period, …
struct Every {
  std::int64_t period, offset;

  Every(const Config& config, const std::string& which, std::int64_t default_period, std::int64_t default_offset)
      : period(config.integer(which + "_period", default_period)),
        offset(config.integer(which + "_offset", std::min(default_offset, period - 1), 0, period - 1)) {}
  bool operator()(std::int64_t layer) const { return layer % period == offset; }
};

Config mamba_of_jamba(const Config& config, std::int64_t hidden) {
  nlohmann::json layer = mamba_sizes(config, hidden);
  layer["inner_norms"] = "weighted";
  layer["inner_norm_eps"] = config.not_negative("rms_norm_eps", 1e-6);
  return with_mamba_keys(std::move(layer));
}

ExpertsPlan experts_of_jamba(const Config& config, std::int64_t count, const MlpPlan& expert) {
  ExpertsPlan plan{.count = count};
  plan.chosen = config.integer("num_experts_per_tok", 2, 1, count);
  plan.expert = expert;
  plan.router = {"router"};
  plan.how.renormalise = false;
  return plan;
}

}  // namespace

Plan plan_mamba(const Config& config, const std::string& family) {
  const std::string_view eps = either(config, "layer_norm_epsilon", "norm_eps"), rank = either(config, "time_step_rank", "dt_rank");
  Plan plan = hybrid_plan(config, family, "backbone.", "norm_f", eps, 1e-5);
  // The two layouts differ in what they leave out: flash-linear-attention's own keys tell which it is.
  const bool fla = config.has("norm_eps") || config.has("dt_rank");
  plan.tied = config.boolean("tie_word_embeddings", !fla);
  require_derived_width(config, plan.hidden);
  Config layer = config.with("time_step_rank", time_step_rank(config, rank, plan.hidden)).said("time_step_rank", rank);
  if (family == "falcon_mamba")
    layer = layer.with("inner_norms", "plain").with("inner_norm_eps", config.not_negative("mixer_rms_eps", 1e-6));
  const std::int64_t layers = config.integer("num_hidden_layers", fla ? 48 : 32, 1, kMaxLayers);
  for (std::int64_t i = 0; i < layers; ++i) {
    plan.layers.push_back({.mixer = "mamba",
                           .config = layer,
                           .mixer_prefix = fmt::format("backbone.layers.{}.mixer.", i),
                           .mixer_norm = fmt::format("backbone.layers.{}.norm.weight", i),
                           .ffn = FfnKind::none});
  }
  return plan;
}

Plan plan_jamba(const Config& config, const std::string& family) {
  Plan plan = hybrid_plan(config, family, "model.", "final_layernorm", "rms_norm_eps", 1e-6);
  config.text("hidden_act", "silu", {"silu", "swish"});
  const Config mamba = mamba_of_jamba(config, plan.hidden);
  const Config attention = without_positions(softmax_layer(config.with("num_attention_heads", config.integer("num_attention_heads", 32))
                                                               .with("num_key_value_heads", config.integer("num_key_value_heads", 8))));
  const MlpPlan mlp{.width = config.integer("intermediate_size", 14336)};
  const std::int64_t layers = config.integer("num_hidden_layers", 32, 1, kMaxLayers);
  const std::int64_t count = config.integer("num_experts", 16, 0, 1'000'000);
  const Every attends(config, "attn_layer", 8, 4), chooses(config, "expert_layer", 2, 1);
  const auto experts = count > 1 ? std::make_shared<const ExpertsPlan>(experts_of_jamba(config, count, mlp)) : nullptr;
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string prefix = fmt::format("model.layers.{}.", i);
    plan.layers.push_back({.mixer = attends(i) ? "transformer" : "mamba",
                           .config = attends(i) ? attention : mamba,
                           .mixer_prefix = prefix + (attends(i) ? "self_attn." : "mamba."),
                           .mixer_norm = prefix + "input_layernorm.weight",
                           .ffn = experts && chooses(i) ? FfnKind::experts : FfnKind::mlp,
                           .ffn_prefix = prefix + "feed_forward.",
                           .ffn_norm = prefix + "pre_ff_layernorm.weight",
                           .mlp = mlp,
                           .experts = experts});
  }
  return plan;
}

}  // namespace statescope

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/config/config_keys.h"
#include "engine/config/names.h"
#include "engine/error.h"
#include "engine/mixers/parts.h"
#include "engine/model/families/families.h"

namespace statescope {
namespace {

/// I = ratio · D, up to a multiple of 32, unless the config says it.
std::int64_t channel_mix_width(const Config& config, std::int64_t hidden, double default_ratio) {
  if (config.has("intermediate_size")) return config.integer("intermediate_size");
  return (expanded(hidden, config, "hidden_ratio", default_ratio) + 31) / 32 * 32;
}

/// Throws Error where a layer's values are wider than the stream, beside which those of layer 0 go.
void require_narrow_values(const Config& config, std::int64_t hidden) {
  if (!config.has("value_dim")) return;
  const nlohmann::json& told = config.raw()["value_dim"];
  for (const nlohmann::json& width : told.is_array() ? told : nlohmann::json::array({told})) {
    if (width != hidden)
      throw Error(fmt::format("config: \"value_dim\" holds {}, which is not supported: expected hidden_size ({})", shown(width), hidden));
  }
}

}  // namespace

Plan plan_rwkv(const Config& config, const std::string& family) {
  require_known_keys(config, family);
  config.text("hidden_act", "sqrelu", {"sqrelu"});
  const bool seventh = family == "rwkv7";
  Plan plan;
  plan.family = family;
  plan.hidden = config.integer("hidden_size");
  plan.vocab = config.integer("vocab_size", 32000);
  plan.embeddings = "model.embeddings.weight";
  plan.norm = "model.norm.weight";
  plan.head = "lm_head.weight";
  plan.norm_eps = plan.ffn_norm_eps = static_cast<float>(config.not_negative("norm_eps", 1e-5));
  plan.layer_norms = true;
  plan.norm_biases = config.boolean("norm_bias", true);
  if (config.boolean("norm_first", true)) plan.embedding_norm = "model.layers.0.pre_norm.weight";
  plan.tied = config.boolean("tie_word_embeddings", false);
  if (seventh) require_narrow_values(config, plan.hidden);
  if (seventh) plan.companion = Companion::first_values;
  const ChannelMixPlan mix{.width = channel_mix_width(config, plan.hidden, seventh ? 4 : 3.5), .receptance = !seventh};
  const std::int64_t layers = config.integer("num_hidden_layers", 24, 1, kMaxLayers);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string prefix = fmt::format("model.layers.{}.", i);
    plan.layers.push_back({.mixer = family,
                           .config = config,
                           .mixer_prefix = prefix + "attn.",
                           .mixer_norm = prefix + "attn_norm.weight",
                           .reads_companion = seventh && i > 0,
                           .ffn = FfnKind::channel_mix,
                           .ffn_prefix = prefix + "ffn.",
                           .ffn_norm = prefix + "ffn_norm.weight",
                           .channel_mix = mix});
  }
  return plan;
}

}  // namespace statescope

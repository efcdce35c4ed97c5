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

/// value_dim, the same in all layers: those of layer 0 go to all others. Throws Error.
std::int64_t value_width(const Config& config, std::int64_t hidden, std::int64_t layers) {
  if (!config.has("value_dim")) return hidden;
  const nlohmann::json& told = config.raw()["value_dim"];
  if (!told.is_array()) return config.integer("value_dim");
  if (std::ssize(told) != layers) throw Error(fmt::format("config: \"value_dim\" holds {} numbers for {} layers", told.size(), layers));
  for (const nlohmann::json& width : told) {
    if (width != told.front())
      throw Error(fmt::format("config: \"value_dim\" holds {}, which is not supported: expected that of layer 0 ({})", shown(width),
                              shown(told.front())));
  }
  return config.with("value_dim", told.front()).integer("value_dim");
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
  const ChannelMixPlan mix{.width = channel_mix_width(config, plan.hidden, seventh ? 4 : 3.5), .receptance = !seventh};
  const std::int64_t layers = config.integer("num_hidden_layers", 24, 1, kMaxLayers);
  Config of_layer = config;
  if (seventh) {
    const std::int64_t width = value_width(config, plan.hidden, layers);
    of_layer = config.with("value_dim", width);
    plan.companion = Companion::first_values;
    plan.companion_parts = (width + plan.hidden - 1) / plan.hidden;
  }
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string prefix = fmt::format("model.layers.{}.", i);
    plan.layers.push_back({.mixer = family,
                           .config = of_layer,
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

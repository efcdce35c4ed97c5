#include <fmt/format.h>

#include "engine/config/config_keys.h"
#include "engine/error.h"
#include "engine/model/families/families.h"

namespace statescope {

Plan plan_mamba2(const Config& config, const std::string& family) {
  for (const char* key : {"layer_norm_epsilon", "time_step_limit"}) {
    if (config.has(key))
      throw Error(
          fmt::format("config: \"{}\" says that this is Mamba-2 in the layout of Transformers, which is not supported; that of "
                      "flash-linear-attention is",
                      key));
  }
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
  const std::int64_t layers = config.integer("num_hidden_layers", 48, 1, kMaxLayers);
  for (std::int64_t i = 0; i < layers; ++i) {
    plan.layers.push_back({.mixer = "mamba2",
                           .config = config,
                           .mixer_prefix = fmt::format("backbone.layers.{}.mixer.", i),
                           .mixer_norm = fmt::format("backbone.layers.{}.norm.weight", i),
                           .ffn = FfnKind::none});
  }
  if (!config.has("norm_before_gate")) {
    plan.notes.push_back("config has no \"norm_before_gate\": false is assumed; early Mamba-2 checkpoints normalised before gating");
  }
  return plan;
}

}  // namespace statescope

// S4 and S4D: layers of a time-invariant state space alone, in a layout of our own (spec §17.17).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/error.h"
#include "engine/model/families/hybrid_parts.h"

namespace statescope {

Plan plan_s4(const Config& config, const std::string& family) {
  Plan plan = hybrid_plan(config, family, "model.", "norm", "norm_eps", 1e-6);
  plan.embeddings = "model.embeddings.weight";
  const bool diagonal = config.text("s4_mode", {}, {"diag", "hippo"}) == "diag";
  const std::int64_t states = config.integer("state_size");
  if (diagonal && states % 2 != 0)
    throw Error(fmt::format("config: \"state_size\" is {}, but states of S4D come in conjugate pairs", states));
  const Config layer = config.with("diagonal", diagonal).with("states", diagonal ? states / 2 : states);
  const std::int64_t layers = config.integer("num_hidden_layers", {}, 1, kMaxLayers);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string prefix = fmt::format("model.layers.{}.", i);
    plan.layers.push_back(
        {.mixer = "s4", .config = layer, .mixer_prefix = prefix + "s4.", .mixer_norm = prefix + "norm.weight", .ffn = FfnKind::none});
  }
  return plan;
}

}  // namespace statescope

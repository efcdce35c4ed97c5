// Log-linear Mamba-2: Mamba-2 with levels of states, and an MLP in every layer (spec §17.14).
#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "engine/error.h"
#include "engine/model/families/hybrid_parts.h"

namespace statescope {
namespace {

constexpr std::int64_t kLevels = 15, kMostTokens = std::int64_t{1} << (kLevels - 1);

void require_default_limit(const Config& config) {
  const std::vector<double> limit = config.numbers("dt_limit");
  if (!limit.empty() && limit != std::vector<double>{0, std::numeric_limits<double>::infinity()})
    throw Error(fmt::format("config: \"dt_limit\" is {}, expected [0, Infinity]", shown(config.raw()["dt_limit"])));
}

}  // namespace

Plan plan_log_linear_mamba2(const Config& config, const std::string& family) {
  Plan plan = hybrid_plan(config, family, "backbone.", "norm_f", "norm_eps", 1e-5);
  plan.tied_where_no_head = false;
  plan.most_tokens = kMostTokens;
  require_default_limit(config);
  const MlpPlan mlp{.width = swiglu_width(config, plan.hidden, 4)};
  const Config layer = config.with("levels", kLevels);
  const std::int64_t layers = config.integer("num_hidden_layers", 48, 1, kMaxLayers);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string prefix = fmt::format("backbone.layers.{}.", i);
    plan.layers.push_back({.mixer = "log_linear_mamba2",
                           .config = layer,
                           .mixer_prefix = prefix + "mixer.",
                           .mixer_norm = prefix + "mixer_norm.weight",
                           .ffn_prefix = prefix + "mlp.",
                           .ffn_norm = prefix + "mlp_norm.weight",
                           .mlp = mlp});
  }
  return plan;
}

}  // namespace statescope

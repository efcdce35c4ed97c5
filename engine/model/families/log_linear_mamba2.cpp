// Log-linear Mamba-2: Mamba-2 with levels of states, and an MLP in every layer (spec §17.14).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/error.h"
#include "engine/model/families/hybrid_parts.h"

namespace statescope {
namespace {

constexpr std::int64_t kLevels = 15, kMostTokens = std::int64_t{1} << (kLevels - 1);
constexpr double kEps = 1e-5;

/// Keys that releases of flash-linear-attention before 0.5 write into every config.
constexpr std::array<std::string_view, 6> kEarlyKeys{"rms_norm",      "time_step_limit", "time_step_rank",
                                                     "time_step_min", "time_step_max",   "time_step_floor"};

void require_default_limit(const Config& config, std::string_view key) {
  const std::vector<double> limit = config.numbers(key);
  if (!limit.empty() && limit != std::vector<double>{0, std::numeric_limits<double>::infinity()})
    throw Error(fmt::format("config: \"{}\" is {}, expected [0, Infinity]", key, shown(config.raw()[std::string(key)])));
}

/// Those releases normalise one group, always, and behind the gate; D is one number a head. What they do not read means nothing there.
void require_early_form(const Config& config) {
  const auto early = std::ranges::find_if(kEarlyKeys, [&](std::string_view key) { return config.has(key); });
  if (early == kEarlyKeys.end()) return;
  const auto require = [&](std::string_view key, bool as_it_is, std::string_view expected) {
    if (!as_it_is)
      throw Error(fmt::format("config: \"{}\" is {}, but the releases of flash-linear-attention that write \"{}\" compute with {} alone",
                              key, shown(config.raw()[std::string(key)]), *early, expected));
  };
  require("n_groups", config.integer("n_groups", 1) == 1, "1");
  require("rmsnorm", config.boolean("rmsnorm", true), "true");
  require("norm_before_gate", !config.boolean("norm_before_gate", false), "false");
  require("D_has_hdim", !config.boolean("D_has_hdim", false), "false");
}

void require_one_eps(const Config& config) {
  const double eps = config.not_negative("norm_eps", kEps), other = config.not_negative("layer_norm_epsilon", eps);
  if (other != eps) throw Error(fmt::format("config: \"layer_norm_epsilon\" is {}, but \"norm_eps\" {}", other, eps));
}

}  // namespace

Plan plan_log_linear_mamba2(const Config& config, const std::string& family) {
  Plan plan = hybrid_plan(config, family, "backbone.", "norm_f", "norm_eps", kEps);
  plan.tied_where_no_head = false;
  plan.most_tokens = kMostTokens;
  for (const char* key : {"dt_limit", "time_step_limit"}) require_default_limit(config, key);
  require_early_form(config);
  require_one_eps(config);
  config.text("hidden_act", "silu", {"silu", "swish"});
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

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/error.h"
#include "engine/model/families/hybrid_parts.h"

namespace statescope {
namespace {

/// What Transformers calls a key, and the files of the first releases.
struct Names {
  std::string_view linear, full, mlp;  // before "alpha…" and "beta…"
  std::string_view alpha, beta;
};
constexpr Names kOfTransformers{"linear_attn_", "full_attn_", "mlp_", "alpha_factor", "beta_factor"};
constexpr Names kOfReleases{"layernorm_linear_attention_", "layernorm_full_attention_", "layernorm_mlp_", "alpha", "beta"};

/// x = α n + β part(n) of one kind of part.
Residual residual_of(const Config& config, std::string_view kind, const Names& names) {
  const auto factor = [&](std::string_view which) { return static_cast<float>(config.number(fmt::format("{}{}", kind, which), 1)); };
  return {.norm_factor = factor(names.alpha), .part_factor = factor(names.beta), .keeps_norm = true};
}

/// For each layer whether it attends.
std::vector<bool> full_layers(const Config& config, bool released, std::int64_t layers) {
  std::vector<bool> full;
  if (!released) {
    for (const std::string& kind : layer_kinds(config, "layer_types", {"linear_attention", "full_attention"}, layers))
      full.push_back(kind == "full_attention");
    for (std::int64_t i = std::ssize(full); i < layers; ++i) full.push_back(i % 2 == 0);
    return full;
  }
  for (const std::int64_t kind : config.integers("attn_type_list")) {
    if (kind != 0 && kind != 1) throw Error(fmt::format("config: \"attn_type_list\" holds {}, expected 0 or 1", kind));
    full.push_back(kind == 1);
  }
  if (std::ssize(full) != layers)
    throw Error(fmt::format("config: \"attn_type_list\" has {} entries, the model {} layers", full.size(), layers));
  return full;
}

/// The first releases turn `rotary_dim` channels of each head.
Config with_rotary_dim(const Config& softmax, const Config& config) {
  if (!config.has("rotary_dim")) return softmax;
  const std::int64_t head_dim = softmax.integer("head_dim"), turned = config.integer("rotary_dim", {}, 0, head_dim);
  // the least part of head_dim that holds so many channels
  const double part = static_cast<double>(turned) / static_cast<double>(head_dim);
  return softmax.with("partial_rotary_factor", turned == head_dim ? 1 : std::nextafter(part, 1.0));
}

ExpertsPlan experts_of_minimax(const Config& config) {
  ExpertsPlan plan{.count = config.integer("num_local_experts", 8, 1, 1'000'000)};
  plan.chosen = config.integer("num_experts_per_tok", 2, 1, plan.count);
  plan.expert = with_numbered_names(config.integer("intermediate_size"));
  return plan;
}

}  // namespace

Plan plan_minimax(const Config& config, const std::string& family) {
  Plan plan = hybrid_plan(config, family, "model.", "norm", "rms_norm_eps", 1e-5);
  config.text("hidden_act", "silu", {"silu", "swish"});
  const bool released = family != "minimax";
  const Names& names = released ? kOfReleases : kOfTransformers;
  const Config softmax = with_rotary_dim(softmax_layer(config.has("rope_theta") ? config : config.with("rope_theta", 1e6)), config);
  note_positions(plan, softmax);
  plan.buffers = {".slope_rate", ".query_decay", ".key_decay", ".diagonal_decay"};
  const std::int64_t layers = config.integer("num_hidden_layers", {}, 1, kMaxLayers), heads = softmax.integer("num_heads");
  // Their own class gives heads that are no power of two other rates, which no release needs.
  if (released && !std::has_single_bit(static_cast<std::uint64_t>(heads)))
    throw Error(fmt::format("config: \"num_attention_heads\" is {}, which is not supported here: expected a power of two", heads));
  const Config lightning(nlohmann::json{
      {"hidden_size", plan.hidden}, {"num_heads", heads}, {"head_dim", softmax.integer("head_dim")}, {"num_hidden_layers", layers}});
  const std::vector<bool> full = full_layers(config, released, layers);
  const auto experts = std::make_shared<const ExpertsPlan>(experts_of_minimax(config));
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool is_full = full[static_cast<std::size_t>(i)];
    const std::string prefix = fmt::format("model.layers.{}.", i);
    plan.layers.push_back({.mixer = is_full ? "transformer" : "lightning_attention",
                           .config = is_full ? softmax : lightning,
                           .mixer_prefix = prefix + "self_attn.",
                           .mixer_norm = prefix + "input_layernorm.weight",
                           .mixer_residual = residual_of(config, is_full ? names.full : names.linear, names),
                           .ffn = FfnKind::experts,
                           .ffn_prefix = prefix + "block_sparse_moe.",
                           .ffn_norm = prefix + "post_attention_layernorm.weight",
                           .ffn_residual = residual_of(config, names.mlp, names),
                           .experts = experts});
  }
  return plan;
}

}  // namespace statescope

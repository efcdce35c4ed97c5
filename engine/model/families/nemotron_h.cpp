#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/error.h"
#include "engine/model/families/hybrid_parts.h"

namespace statescope {
namespace {

constexpr MambaKeys kNemotronKeys{.heads = "mamba_num_heads",
                                  .head_dim = "mamba_head_dim",
                                  .inner = {},
                                  .expand = {},  // ignored: d_in is heads · head_dim
                                  .state = "ssm_state_size",
                                  .groups = "n_groups",
                                  .conv = "conv_kernel",
                                  .conv_bias = "use_conv_bias",
                                  .in_bias = "use_bias",
                                  .out_bias = "use_bias",
                                  .act = "mamba_hidden_act",
                                  .eps = "layer_norm_epsilon",
                                  .default_groups = 8};

/// A word for each layer: from layers_block_type, else from the letters of hybrid_override_pattern.
std::vector<std::string> kinds_of(const Config& config) {
  const auto allowed = {std::string_view("linear_attention"), std::string_view("full_attention"), std::string_view("mlp"),
                        std::string_view("moe")};
  std::vector<std::string> kinds = layer_kinds(config, "layers_block_type", allowed);
  if (!kinds.empty()) return kinds;
  for (const char letter : config.text("hybrid_override_pattern")) {
    constexpr std::string_view letters = "M*-E";
    const std::size_t which = letters.find(letter);
    if (which == letters.npos)
      throw Error(fmt::format("config: \"hybrid_override_pattern\" holds {}, expected M, *, - or E", shown(std::string(1, letter))));
    kinds.emplace_back(std::data(allowed)[which]);
  }
  if (kinds.empty() || std::ssize(kinds) > kMaxLayers) throw Error("config: \"hybrid_override_pattern\" has no layers, or too many");
  return kinds;
}

MlpPlan without_gate(std::int64_t width, bool biases) { return {.width = width, .gate = {}, .biases = biases}; }

ExpertsPlan experts_of_nemotron(const Config& config) {
  const bool biases = config.boolean("mlp_bias", false);
  if (biases) throw Error("config: \"mlp_bias\" is true, which is not supported beside experts");
  ExpertsPlan plan = grouped_experts(config, {.count = "n_routed_experts", .chosen = "num_experts_per_tok", .groups = "n_group"});
  plan.expert = without_gate(config.integer("moe_intermediate_size"), false);
  plan.packed = {{"experts.up_proj", "experts.down_proj"}};
  plan.latent = config.integer("moe_latent_size", 0, 0);
  plan.shared_expert = without_gate(config.integer("moe_shared_expert_intermediate_size"), false);
  return plan;
}

}  // namespace

Plan plan_nemotron_h(const Config& config, const std::string& family) {
  Plan plan = hybrid_plan(config, family, "backbone.", "norm_f", "layer_norm_epsilon", 1e-5);
  config.text("mlp_hidden_act", "relu2", {"relu2"});
  const std::vector<std::string> kinds = kinds_of(config);
  const Config mamba = mamba2_layer(config, kNemotronKeys);
  const bool old_name = !config.has("head_dim") && config.has("attention_head_dim");
  const Config softmax =
      without_positions(softmax_layer(old_name ? config.with("head_dim", config.integer("attention_head_dim")) : config));
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::string prefix = fmt::format("backbone.layers.{}.", i), part = prefix + "mixer.", norm = prefix + "norm.weight";
    LayerPlan layer;
    layer.ffn = FfnKind::none;
    if (kinds[i] == "mlp" || kinds[i] == "moe") {
      layer.ffn = kinds[i] == "moe" ? FfnKind::experts : FfnKind::mlp;
      layer.ffn_prefix = part;
      layer.ffn_norm = norm;
      if (kinds[i] == "moe") layer.experts = std::make_shared<const ExpertsPlan>(experts_of_nemotron(config));
      if (kinds[i] == "mlp") layer.mlp = without_gate(config.integer("intermediate_size"), config.boolean("mlp_bias", false));
    } else {
      const bool full = kinds[i] == "full_attention";
      layer.mixer = full ? "transformer" : "mamba2";
      layer.config = full ? softmax : mamba;
      layer.mixer_prefix = part;
      layer.mixer_norm = norm;
    }
    plan.layers.push_back(std::move(layer));
  }
  return plan;
}

}  // namespace statescope

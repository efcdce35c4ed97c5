#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/error.h"
#include "engine/model/families/hybrid_parts.h"

namespace statescope {
namespace {

/// The gated delta rule of spec §3.6 under other keys.
Config delta_layer(const Config& config) {
  const std::int64_t hidden = config.integer("hidden_size"), heads = config.integer("num_attention_heads");
  const std::int64_t key_heads = config.integer("linear_num_key_heads", heads);
  const auto three_quarters = static_cast<std::int64_t>(0.75 * static_cast<double>(hidden) / static_cast<double>(key_heads));
  const std::int64_t K = config.integer("linear_key_head_dim", three_quarters);
  nlohmann::json layer{{"hidden_size", hidden},
                       {"num_heads", key_heads},
                       {"num_v_heads", config.integer("linear_num_value_heads", heads)},
                       {"head_dim", K},
                       {"value_head_dim", config.integer("linear_value_head_dim", 2 * K)},
                       {"allow_neg_eigval", config.boolean("linear_allow_neg_eigval", true)},
                       {"norm_eps", 1e-5}};  // fixed, whatever rms_norm_eps is
  if (config.has("linear_conv_kernel_dim")) layer["conv_size"] = config.integer("linear_conv_kernel_dim");
  return Config(std::move(layer))
      .said("conv_size", "linear_conv_kernel_dim")
      .said("num_heads", "linear_num_key_heads")
      .said("num_v_heads", "linear_num_value_heads");
}

/// A rope_theta of null: no positions; none at all: 10000.
Config attention_layer(const Config& config) {
  const nlohmann::json& all = config.raw();
  const auto is_null = [](const nlohmann::json& object) { return object.contains("rope_theta") && object["rope_theta"].is_null(); };
  const bool scaled = config.has("rope_scaling") && !all["rope_scaling"].empty();
  const bool settings = config.has("rope_parameters") && !scaled;
  const bool null_theta =
      settings && all["rope_parameters"].contains("rope_theta") ? is_null(all["rope_parameters"]) : is_null(all) && !scaled;
  const Config layer = softmax_layer(config)
                           .with("qk_norm", true)
                           .with("norms_all_heads", true)
                           .with("qk_norm_eps", config.not_negative("rms_norm_eps", 1e-6));
  return null_theta ? without_positions(layer) : layer;
}

}  // namespace

Plan plan_olmo_hybrid(const Config& config, const std::string& family) {
  Plan plan = hybrid_plan(config, family, "model.", "norm", "rms_norm_eps", 1e-6);
  config.text("hidden_act", "silu", {"silu", "swish"});
  const Config delta = delta_layer(config), softmax = attention_layer(config);
  note_positions(plan, softmax);
  const std::int64_t layers = config.integer("num_hidden_layers", {}, 1, kMaxLayers);
  const std::vector<std::string> kinds = layer_kinds(config, "layer_types", {"linear_attention", "full_attention"}, layers);
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool full = kinds.empty() ? i % 4 == 3 : kinds[static_cast<std::size_t>(i)] == "full_attention";
    const std::string prefix = fmt::format("model.layers.{}.", i);
    LayerPlan layer{.mixer = full ? "transformer" : "gated_deltanet",
                    .config = full ? softmax : delta,
                    .mixer_prefix = prefix + (full ? "self_attn." : "linear_attn."),
                    .ffn_prefix = prefix + "mlp.",
                    .mlp = {.width = config.integer("intermediate_size")}};
    if (full) {
      layer.mixer_post_norm = prefix + "post_attention_layernorm.weight";
      layer.ffn_post_norm = prefix + "post_feedforward_layernorm.weight";
    } else {
      layer.mixer_norm = prefix + "attention_layer_norm.weight";
      layer.ffn_norm = prefix + "feedforward_layer_norm.weight";
      plan.other_names[prefix + "input_layernorm.weight"] = layer.mixer_norm;
      plan.other_names[prefix + "post_attention_layernorm.weight"] = layer.ffn_norm;
    }
    plan.layers.push_back(std::move(layer));
  }
  return plan;
}

}  // namespace statescope

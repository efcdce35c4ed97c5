#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ranges>

#include "engine/error.h"
#include "engine/model/families/hybrid_parts.h"

namespace statescope {
namespace {

/// A number under the name of the released files, or of Transformers; beside `nested`, where released files keep it.
std::int64_t either(const Config& config, const Config& nested, std::string_view released, std::string_view transformers,
                    std::int64_t fallback) {
  return nested.has(released) ? nested.integer(released) : config.integer(transformers, fallback);
}

Config kda_layer(const Config& config, const Config& linear) {
  nlohmann::json layer{{"hidden_size", config.integer("hidden_size")},
                       {"num_heads", either(config, linear, "num_heads", "linear_num_heads", 32)},
                       {"head_dim", either(config, linear, "head_dim", "linear_head_dim", 128)},
                       {"gate_bias", false},
                       {"norm_eps", config.not_negative("rms_norm_eps", 1e-5)}};
  const bool released = linear.has("short_conv_kernel_size");
  if (released || config.has("linear_conv_kernel_dim"))
    layer["conv_size"] = either(config, linear, "short_conv_kernel_size", "linear_conv_kernel_dim", 4);
  return Config(std::move(layer)).said("conv_size", released ? "short_conv_kernel_size" : "linear_conv_kernel_dim");
}

Config latent_layer(const Config& config) {
  if (!config.boolean("mla_use_nope", true))
    throw Error("config: \"mla_use_nope\" is false, but keys with positions are not supported here");
  nlohmann::json layer{{"hidden_size", config.integer("hidden_size")}};
  for (const char* key : {"num_attention_heads", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"})
    layer[key] = config.integer(key);
  if (config.has("q_lora_rank")) layer["q_lora_rank"] = config.integer("q_lora_rank");
  return Config(std::move(layer));
}

/// For each layer whether it attends. Released files count layers from 1, in two lists that share them all out.
std::vector<bool> full_layers(const Config& config, const Config& linear, std::int64_t layers) {
  std::vector<bool> full;
  const std::vector<std::string> kinds = layer_kinds(config, "layer_types", {"linear_attention", "full_attention"}, layers);
  for (const std::string& kind : kinds) full.push_back(kind == "full_attention");
  if (!full.empty()) return full;
  if (!linear.has("full_attn_layers") && !linear.has("kda_layers")) {
    for (std::int64_t i = 0; i < layers; ++i) full.push_back(i > 0 && i % 4 == 0);
    return full;
  }
  std::vector<std::int64_t> told(static_cast<std::size_t>(layers));
  full.assign(static_cast<std::size_t>(layers), false);
  for (const char* key : {"kda_layers", "full_attn_layers"}) {
    for (const std::int64_t i : linear.integers(key)) {
      if (i < 1 || i > layers) throw Error(fmt::format("config: \"{}\" names layer {} of 1 to {}", key, i, layers));
      const auto at = static_cast<std::size_t>(i - 1);
      if (++told[at] > 1) throw Error(fmt::format("config: \"linear_attn_config\" names layer {} twice", i));
      full[at] = std::string_view(key) == "full_attn_layers";
    }
  }
  for (const std::size_t i : std::views::iota(std::size_t{0}, told.size())) {
    if (told[i] == 0) throw Error(fmt::format("config: \"linear_attn_config\" does not say what layer {} is", i + 1));
  }
  return full;
}

/// The key with the number of experts; neither is there where all layers are dense.
std::string_view key_of_experts(const Config& config) { return config.has("num_experts") ? "num_experts" : "num_local_experts"; }

ExpertsPlan experts_of_kimi(const Config& config) {
  const auto there = [&](std::string_view released, std::string_view transformers) {
    return config.has(released) ? released : transformers;
  };
  ExpertsPlan plan = grouped_experts(config, {.count = key_of_experts(config),
                                              .chosen = there("num_experts_per_token", "num_experts_per_tok"),
                                              .groups = there("num_expert_group", "n_group"),
                                              .renormalise = there("moe_renormalize", "norm_topk_prob"),
                                              .default_chosen = 8});
  config.text("moe_router_activation_func", "sigmoid", {"sigmoid"});
  const std::int64_t width = config.integer("moe_intermediate_size");
  plan.expert = with_numbered_names(width);
  plan.shared_expert.width = width * either(config, config, "num_shared_experts", "n_shared_experts", 1);
  return plan;
}

/// For each layer whether it has experts.
std::vector<bool> expert_layers(const Config& config, std::int64_t layers) {
  std::vector<bool> experts;
  const std::vector<std::string> kinds = layer_kinds(config, "mlp_layer_types", {"dense", "sparse"}, layers);
  for (const std::string& kind : kinds) experts.push_back(kind == "sparse");
  const std::int64_t first = config.integer("first_k_dense_replace", 1, 0), every = config.integer("moe_layer_freq", 1);
  for (std::int64_t i = 0; kinds.empty() && i < layers; ++i) experts.push_back(i >= first && i % every == 0);
  return experts;
}

/// KDA's tensors as flash-linear-attention calls them.
void add_names_of_kimi(Plan& plan, const std::string& prefix) {
  for (const char* low : {"f", "g"}) {
    plan.other_names[fmt::format("{}{}_a_proj.weight", prefix, low)] = fmt::format("{}{}_proj.0.weight", prefix, low);
    plan.other_names[fmt::format("{}{}_b_proj.weight", prefix, low)] = fmt::format("{}{}_proj.1.weight", prefix, low);
  }
}

}  // namespace

Plan plan_kimi_linear(const Config& config, const std::string& family) {
  Plan plan = hybrid_plan(config, family, "model.", "norm", "rms_norm_eps", 1e-5);
  config.text("hidden_act", "silu", {"silu", "swish"});
  const Config linear = config.object("linear_attn_config"), kda = kda_layer(config, linear), latent = latent_layer(config);
  const std::int64_t layers = config.integer("num_hidden_layers", {}, 1, kMaxLayers);
  const std::vector<bool> full = full_layers(config, linear, layers), sparse = expert_layers(config, layers);
  std::shared_ptr<const ExpertsPlan> experts;
  if (config.has(key_of_experts(config))) experts = std::make_shared<const ExpertsPlan>(experts_of_kimi(config));
  for (std::int64_t i = 0; i < layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::string prefix = fmt::format("model.layers.{}.", i);
    LayerPlan layer{.mixer = full[at] ? "mla" : "kda",
                    .config = full[at] ? latent : kda,
                    .mixer_prefix = prefix + "self_attn.",
                    .mixer_norm = prefix + "input_layernorm.weight",
                    .ffn_prefix = prefix + "mlp.",
                    .ffn_norm = prefix + "post_attention_layernorm.weight",
                    .mlp = {.width = config.integer("intermediate_size")}};
    if (experts && sparse[at]) {
      layer.ffn = FfnKind::experts;
      layer.ffn_prefix = prefix + "block_sparse_moe.";
      layer.experts = experts;
    }
    if (!full[at]) add_names_of_kimi(plan, layer.mixer_prefix);
    plan.layers.push_back(std::move(layer));
  }
  return plan;
}

}  // namespace statescope

// Zamba and Zamba2: Mamba, and a block of attention and an MLP that several layers share (spec §17.7).
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/error.h"
#include "engine/model/families/hybrid_parts.h"

namespace statescope {
namespace {

constexpr MambaKeys kMamba2{.heads = "n_mamba_heads",
                            .head_dim = "mamba_headdim",
                            .inner = {},
                            .expand = "mamba_expand",
                            .state = "mamba_d_state",
                            .groups = "mamba_ngroups",
                            .conv = "mamba_d_conv",
                            .conv_bias = {},  // there always is one
                            .in_bias = "add_bias_linear",
                            .out_bias = "add_bias_linear",
                            .act = {},
                            .eps = {}};  // 1e-5, whatever the stream's is

Config mamba_of(const Config& config) {
  config.text("hidden_mamba_act", "silu", {"silu", "swish"});
  const std::int64_t hidden = config.integer("hidden_size");
  nlohmann::json layer = mamba_sizes(config, hidden);
  layer["num_heads"] = config.integer("n_mamba_heads", 2);
  return with_mamba_keys(std::move(layer));
}

/// Δ is bounded below, in a prompt and behind it alike [A24].
Config mamba2_of(const Config& config) {
  const Config layer = mamba2_layer(config, kMamba2);
  if (layer.has("dt_limit")) return layer;
  return layer.with("dt_limit", {config.positive("time_step_min", 0.001), std::numeric_limits<double>::infinity()});
}

/// For each layer whether it begins with the shared block.
std::vector<bool> hybrid_layers(const Config& config, bool second, std::int64_t layers) {
  std::vector<bool> hybrid;
  for (const std::string& kind : layer_kinds(config, "layers_block_type", {"linear_attention", "hybrid"}, layers))
    hybrid.push_back(kind == "hybrid");
  if (hybrid.empty() && second) throw Error("config: \"layers_block_type\" is missing");
  if (second && config.has("hybrid_layer_ids") && listed_layers(config, "hybrid_layer_ids", layers) != hybrid)
    throw Error("config: \"hybrid_layer_ids\" names other layers than \"layers_block_type\"");
  if (!hybrid.empty()) return hybrid;
  const std::int64_t period = config.integer("attn_layer_period", 6), offset = config.integer("attn_layer_offset", 4, 0);
  for (std::int64_t i = 0; i < layers; ++i) hybrid.push_back(i == 2 || (i > 2 && (i - 3) % period == offset));
  return hybrid;
}

/// What the layers with a shared block have in common.
nlohmann::json block_of(const Config& config, bool second, const Config& mamba) {
  const std::int64_t hidden = config.integer("hidden_size"), heads = config.integer("num_attention_heads", 16);
  if (config.integer("attention_hidden_size", 2 * hidden) != 2 * hidden)
    throw Error(fmt::format("config: \"attention_hidden_size\" is {}, expected {}", config.integer("attention_hidden_size"), 2 * hidden));
  nlohmann::json block =
      softmax_layer(config.with("num_attention_heads", heads).with("head_dim", config.integer("attention_head_dim", 2 * hidden / heads)))
          .raw();
  block["positions"] = second && config.boolean("use_mem_rope", false);
  block["norm_eps"] = config.not_negative("rms_norm_eps", 1e-5);
  block["intermediate_size"] = config.integer("intermediate_size");
  block["block"] = second ? "shared_transformer." : "shared_transf.";
  block["second"] = second;
  block["adapts_attention"] = second && config.boolean("use_shared_attention_adapter", false);
  if (config.has("adapter_rank")) block["adapter_rank"] = config.integer("adapter_rank");
  block["mamba"] = mamba.raw();
  return block;
}

}  // namespace

Plan plan_zamba(const Config& config, const std::string& family) {
  const bool second = family == "zamba2";
  Plan plan = hybrid_plan(config, family, "model.", "final_layernorm", "rms_norm_eps", 1e-5);
  plan.tied = config.boolean("tie_word_embeddings", true);
  plan.companion = Companion::embedding;
  config.text("hidden_act", "gelu", {"gelu"});
  const Config mamba = second ? mamba2_of(config) : mamba_of(config);
  const nlohmann::json block = block_of(config, second, mamba);
  if (block["positions"]) note_positions(plan, Config(block));
  const std::int64_t layers = config.integer("num_hidden_layers", {}, 1, kMaxLayers);
  const std::int64_t blocks = second ? config.integer("num_mem_blocks", 1) : 1;
  const std::vector<bool> hybrid = hybrid_layers(config, second, layers);
  std::vector<std::string> owners;  // the layers that first use each block
  for (std::int64_t i = 0, use = 0; i < layers; ++i) {
    const std::string prefix = fmt::format("model.layers.{}.", i);
    if (!hybrid[static_cast<std::size_t>(i)]) {
      plan.layers.push_back({.mixer = second ? "mamba2" : "zamba_mamba",
                             .config = mamba,
                             .mixer_prefix = prefix + "mamba.",
                             .mixer_norm = prefix + "input_layernorm.weight",
                             .ffn = FfnKind::none});
      continue;
    }
    if (use < blocks) owners.push_back(prefix);
    nlohmann::json layer = block;
    layer["use"] = use;
    layer["uses"] = std::ranges::count(hybrid, true);
    layer["owner"] = owners[static_cast<std::size_t>(use % blocks)];
    ++use;
    plan.layers.push_back({.mixer = second ? "zamba2_hybrid" : "zamba_hybrid",
                           .config = Config(std::move(layer)),
                           .mixer_prefix = prefix,
                           .reads_companion = true,
                           .ffn = FfnKind::none});
  }
  return plan;
}

}  // namespace statescope

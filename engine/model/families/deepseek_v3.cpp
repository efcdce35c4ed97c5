#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/mixers/rope.h"
#include "engine/model/families/hybrid_parts.h"

namespace statescope {
namespace {

const std::string kSparse = "deepseek_v32";

Config latent_layer(const Config& config, bool sparse) {
  nlohmann::json layer{{"hidden_size", config.integer("hidden_size")},
                       {"num_attention_heads", config.integer("num_attention_heads", 128)},
                       {"kv_lora_rank", config.integer("kv_lora_rank", 512)},
                       {"qk_nope_head_dim", config.integer("qk_nope_head_dim", 128)},
                       {"qk_rope_head_dim", config.integer("qk_rope_head_dim", 64)},
                       {"v_head_dim", config.integer("v_head_dim", 128)},
                       {"attention_bias", config.boolean("attention_bias", false)},
                       {"rope_interleave", config.boolean("rope_interleave", true)},
                       {"positions", true}};
  if (sparse) {
    layer["q_lora_rank"] = config.integer("q_lora_rank");  // the indexer's queries come from that latent
    layer["index_n_heads"] = config.integer("index_n_heads", 64);
    layer["index_head_dim"] = config.integer("index_head_dim", 128);
    layer["index_topk"] = config.integer("index_topk", 2048);
  }
  for (const char* key : {"q_lora_rank", "rope_theta", "rope_scaling", "rope_parameters", "max_position_embeddings"}) {
    if (config.has(key)) layer[key] = config.raw()[key];
  }
  return Config(std::move(layer));
}

ExpertsPlan experts_of_deepseek(const Config& config) {
  const ExpertKeys keys{
      .count = "n_routed_experts", .chosen = "num_experts_per_tok", .groups = "n_group", .default_count = 256, .default_chosen = 8};
  ExpertsPlan plan = grouped_experts(config, keys);
  config.text("scoring_func", "sigmoid", {"sigmoid"});
  config.text("topk_method", "noaux_tc", {"noaux_tc"});
  plan.expert.width = config.integer("moe_intermediate_size", 2048);
  plan.shared_expert.width = plan.expert.width * config.integer("n_shared_experts", 1);
  return plan;
}

/// For each layer whether its MLP is a dense one.
std::vector<bool> dense_layers(const Config& config, bool sparse, std::int64_t layers) {
  std::vector<bool> dense;
  if (sparse)
    for (const std::string& kind : layer_kinds(config, "mlp_layer_types", {"dense", "sparse"}, layers)) dense.push_back(kind == "dense");
  const std::int64_t first = config.integer("first_k_dense_replace", 3, 0);
  for (std::int64_t i = std::ssize(dense); i < layers; ++i) dense.push_back(i < first);
  return dense;
}

}  // namespace

Plan plan_deepseek_v3(const Config& config, const std::string& family) {
  Plan plan = hybrid_plan(config, family, "model.", "norm", "rms_norm_eps", 1e-6);
  config.text("hidden_act", "silu", {"silu", "swish"});
  const bool sparse = family == kSparse;
  const Config latent = latent_layer(config, sparse);
  const std::string positions = Rope(latent, latent.integer("qk_rope_head_dim"), 1).description();
  if (!positions.empty()) plan.notes.push_back(positions);
  const std::int64_t layers = config.integer("num_hidden_layers", {}, 1, kMaxLayers);
  if (sparse) layer_kinds(config, "layer_types", {"indexed_attention"}, layers);
  const std::vector<bool> dense = dense_layers(config, sparse, layers);
  std::shared_ptr<const ExpertsPlan> experts;
  if (std::ranges::find(dense, false) != dense.end()) experts = std::make_shared<const ExpertsPlan>(experts_of_deepseek(config));
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool is_dense = dense[static_cast<std::size_t>(i)];
    const std::string prefix = fmt::format("model.layers.{}.", i);
    plan.layers.push_back({.mixer = sparse ? "dsa" : "mla",
                           .config = latent,
                           .mixer_prefix = prefix + "self_attn.",
                           .mixer_norm = prefix + "input_layernorm.weight",
                           .ffn = is_dense ? FfnKind::mlp : FfnKind::experts,
                           .ffn_prefix = prefix + "mlp.",
                           .ffn_norm = prefix + "post_attention_layernorm.weight",
                           .mlp = {.width = config.integer("intermediate_size")},
                           .experts = is_dense ? nullptr : experts});
  }
  plan.extra_layers = true;
  return plan;
}

}  // namespace statescope

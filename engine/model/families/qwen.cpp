#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/config/config_keys.h"
#include "engine/config/names.h"
#include "engine/error.h"
#include "engine/mixers/rope.h"
#include "engine/model/families/families.h"

namespace statescope {
namespace {

/// Throws Error for a text model of another family within the wrapper of this one.
void require_text_model(const Config& config, std::string_view family) {
  const std::string inner = config.text("model_type", std::string(family));
  const auto bare = [](std::string_view name) { return name.substr(0, name.size() - (name.ends_with("_text") ? 5 : 0)); };
  if (bare(inner) != bare(family)) throw Error(fmt::format("config: a text model of type {} within {}", shown(inner), family));
}

ExpertsPlan experts_of_qwen(const Config& config) {
  ExpertsPlan plan{.count = config.integer("num_experts", 512, 1, 1'000'000)};
  plan.chosen = config.integer("num_experts_per_tok", 10, 1, plan.count);
  plan.expert.width = config.integer("moe_intermediate_size", 512);
  plan.how.renormalise = config.boolean("norm_topk_prob", true);
  plan.shared = "shared_expert.";
  plan.shared_expert.width = config.integer("shared_expert_intermediate_size", 512);
  plan.shared_gate = "shared_expert_gate";
  return plan;
}

}  // namespace

Plan plan_qwen(const Config& outer, const std::string& family) {
  const Config config = outer.has("text_config") ? outer.object("text_config") : outer;
  const bool next = family == "qwen3_next", moe = next || family.starts_with("qwen3_5_moe");
  if (outer.has("text_config")) require_known_wrapper_keys(outer, config);
  require_text_model(config, family);
  require_known_keys(config, family);
  config.text("hidden_act", "silu", {"swish", "silu"});
  Plan plan;
  plan.family = family;
  plan.hidden = config.integer("hidden_size");
  plan.vocab = config.integer("vocab_size", next ? 151936 : 248320);
  const std::string root = outer.has("text_config") ? "model.language_model." : "model.";
  plan.embeddings = root + "embed_tokens.weight";
  plan.norm = root + "norm.weight";
  plan.head = "lm_head.weight";
  plan.norm_eps = plan.ffn_norm_eps = static_cast<float>(config.not_negative("rms_norm_eps", 1e-6));
  plan.norm_offset = 1;
  plan.tied = config.boolean("tie_word_embeddings", false) || outer.boolean("tie_word_embeddings", false);
  const std::string positions = Rope(config, config.integer("head_dim", 256), kQwenRotatedPart).description();
  if (!positions.empty()) plan.notes.push_back(positions);
  if (outer.has("vision_config")) plan.notes.push_back("passed over: \"vision_config\", the part for pictures");
  const std::int64_t layers = config.integer("num_hidden_layers", next ? 48 : 32, 1, kMaxLayers);
  const std::vector<std::string> types = config.texts("layer_types");
  if (!types.empty() && static_cast<std::int64_t>(types.size()) != layers) {
    throw Error(fmt::format("config: \"layer_types\" has {} entries, the model {} layers", types.size(), layers));
  }
  for (const std::string& type : types) {
    if (type == "linear_attention" || type == "full_attention") continue;
    throw Error(fmt::format("config: \"layer_types\" holds {}, expected linear_attention or full_attention", shown(type)));
  }
  const MlpPlan mlp{.width = config.integer("intermediate_size", next ? 5632 : 12288)};
  const auto of_experts = moe ? std::make_shared<const ExpertsPlan>(experts_of_qwen(config)) : nullptr;
  const Config layer_config = config.with("fused_projections", next);
  const std::int64_t interval = config.integer("full_attention_interval", 4), sparse_step = config.integer("decoder_sparse_step", 1);
  const std::vector<std::int64_t> dense = config.integers("mlp_only_layers");
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool full = types.empty() ? (i + 1) % interval == 0 : types[static_cast<std::size_t>(i)] == "full_attention";
    const bool experts = moe && std::find(dense.begin(), dense.end(), i) == dense.end() && (i + 1) % sparse_step == 0;
    const std::string prefix = fmt::format("{}layers.{}.", root, i);
    plan.layers.push_back({.mixer = full ? "qwen_attention" : "qwen_gated_deltanet",
                           .config = layer_config,
                           .mixer_prefix = prefix + (full ? "self_attn." : "linear_attn."),
                           .mixer_norm = prefix + "input_layernorm.weight",
                           .ffn = experts ? FfnKind::experts : FfnKind::mlp,
                           .ffn_prefix = prefix + "mlp.",
                           .ffn_norm = prefix + "post_attention_layernorm.weight",
                           .mlp = mlp,
                           .experts = of_experts});
  }
  return plan;
}

}  // namespace statescope

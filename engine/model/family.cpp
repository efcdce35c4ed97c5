#include "engine/model/family.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/checkpoint/passed_over.h"
#include "engine/config/config_keys.h"
#include "engine/config/names.h"
#include "engine/error.h"
#include "engine/mixers/mixer.h"
#include "engine/mixers/rope.h"

namespace statescope {
namespace {

constexpr std::array<std::string_view, 10> kFlaFamilies{"transformer",    "linear_attn", "retnet", "gla", "delta_net",
                                                        "gated_deltanet", "gsa",         "mom",    "sse", "sse_swa_moba"};

constexpr std::int64_t kMaxLayers = 10'000;

std::int64_t swiglu_width(const Config& config, std::int64_t hidden, double default_ratio) {
  if (config.has("intermediate_size")) return config.integer("intermediate_size");
  // I = 256·ceil( trunc(D · ratio · 2/3) / 256 )
  const bool is_null = config.raw().contains("hidden_ratio") && !config.has("hidden_ratio");  // null means 4, whatever the family's default
  const double ratio = config.number("hidden_ratio", is_null ? 4 : default_ratio);
  const auto wanted = static_cast<std::int64_t>(static_cast<double>(hidden) * ratio * 2 / 3);
  if (wanted < 1 || wanted > 100'000'000) throw Error(fmt::format("config: \"hidden_ratio\" is {}, out of range", ratio));
  return (wanted + 255) / 256 * 256;
}

/// Names that configs once had, under those of today. Throws Error where both are there and differ.
Config with_todays_names(const Config& config) {
  Config renamed = config;
  const auto rename = [&](const char* old, const char* today) {
    if (!config.has(old)) return;
    const nlohmann::json& value = config.raw()[old];
    if (config.has(today) && config.raw()[today] != value)
      throw Error(fmt::format("config: \"{}\" is {}, but \"{}\" {}", old, shown(value), today, shown(config.raw()[today])));
    renamed = renamed.with(today, value);
  };
  rename("rms_norm_eps", "norm_eps");
  if (config.text("model_type") == "transformer") rename("attention_bias", "qkv_bias");
  if (config.text("model_type") == "gsa") rename("exapnd_k", "expand_k"), rename("exapnd_v", "expand_v");
  return renamed;
}

/// One dictionary of a hybrid's `attn` as the config of its softmax layers (spec §7.1): no qk_norm, d = D / num_heads.
Config softmax_layer(const Config& attn, const Config& model, bool plain) {
  Config layer(nlohmann::json{{"hidden_size", model.integer("hidden_size")},
                              {"num_heads", attn.integer("num_heads")},
                              {"num_kv_heads", attn.integer("num_kv_heads", attn.integer("num_heads"))}});
  if (attn.has("window_size")) layer = layer.with("window_size", attn.integer("window_size"));
  if (plain) return layer;  // MoM hands neither bias nor theta on (spec §3.8)
  return layer.with("qkv_bias", attn.boolean("qkv_bias", false)).with("rope_theta", attn.positive("rope_theta", 10000.0));
}

std::vector<std::int64_t> layer_list(const Config& attn, std::string_view key, std::int64_t layers) {
  std::vector<std::int64_t> list = attn.integers(key);
  for (std::int64_t i : list) {
    if (i < 0 || i >= layers) throw Error(fmt::format("config: \"attn\" names layer {}, the model has {}", i, layers));
  }
  return list;
}

void plan_hybrid(const Config& config, Plan& plan) {
  const auto layers = static_cast<std::int64_t>(plan.layers.size());
  std::set<std::int64_t> taken;
  for (const Config& attn : config.objects("attn")) {
    if (!attn.has("layers")) throw Error("config: \"attn\" lacks \"layers\"");
    for (std::int64_t i : layer_list(attn, "layers", layers)) {
      if (!taken.insert(i).second) throw Error(fmt::format("config: \"attn\" names layer {} twice", i));
      LayerPlan& layer = plan.layers[static_cast<std::size_t>(i)];
      layer.mixer = "transformer";
      layer.config = softmax_layer(attn, config, plan.family == "mom");
    }
  }
}

/// full_layers: softmax; the other listed ones: MoBA; all others: SSE beside a sliding window (spec §4.8).
void plan_sse_swa_moba(const Config& config, Plan& plan) {
  const auto layers = static_cast<std::int64_t>(plan.layers.size());
  const Config attn = config.object("attn");
  const std::vector<std::int64_t> full = layer_list(attn, "full_layers", layers), listed = layer_list(attn, "layers", layers);
  Config softmax(nlohmann::json{{"hidden_size", plan.hidden},
                                {"head_dim", config.integer("head_dim", 256)},
                                {"num_heads", attn.integer("num_heads", config.integer("num_heads", 6))},
                                {"qkv_bias", attn.boolean("qkv_bias", false)},
                                {"qk_norm", attn.boolean("qk_norm", false)},
                                {"qk_norm_eps", plan.norm_eps},
                                {"rope_theta", attn.positive("rope_theta", 10000.0)}});
  softmax = softmax.with("num_kv_heads", attn.integer("num_kv_heads", softmax.integer("num_heads")));
  const Config moba =
      softmax.with("moba_chunk_size", attn.integer("moba_chunk_size", 1024)).with("moba_topk", attn.integer("moba_topk", 4, 0, 4096));
  for (std::int64_t i = 0; i < layers; ++i) {
    LayerPlan& layer = plan.layers[static_cast<std::size_t>(i)];
    const bool is_full = std::find(full.begin(), full.end(), i) != full.end();
    const bool is_listed = std::find(listed.begin(), listed.end(), i) != listed.end();
    layer.mixer = is_full || is_listed ? "transformer" : "sse_swa";
    layer.config = is_full ? softmax : is_listed ? moba : config;
  }
}

Plan plan_fla(const Config& stored, const std::string& family) {
  require_known_keys(stored, family);
  const Config config = with_todays_names(stored);
  config.text("hidden_act", "swish", {"swish", "silu"});  // the MLP knows no other, whatever the mixer could do
  Plan plan;
  plan.family = family;
  plan.hidden = config.integer("hidden_size");
  plan.vocab = config.integer("vocab_size", 32000);
  plan.intermediate = swiglu_width(config, plan.hidden, family == "retnet" ? 2 : 4);
  plan.embeddings = "model.embeddings.weight";
  plan.norm = "model.norm.weight";
  plan.head = "lm_head.weight";
  plan.norm_eps = plan.ffn_norm_eps = static_cast<float>(config.not_negative("norm_eps", 1e-6));
  plan.tied = config.boolean("tie_word_embeddings", false);
  const std::int64_t layers = config.integer("num_hidden_layers", family == "gated_deltanet" ? 21 : 24, 1, kMaxLayers);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string prefix = fmt::format("model.layers.{}.", i);
    plan.layers.push_back({.mixer = family == "sse_swa_moba" ? "sse_swa" : family,
                           .config = config,
                           .mixer_prefix = prefix + "attn.",
                           .mixer_norm = prefix + "attn_norm.weight",
                           .ffn = FfnKind::swiglu,
                           .ffn_prefix = prefix + "mlp.",
                           .ffn_norm = prefix + "mlp_norm.weight"});
  }
  if (family == "sse_swa_moba") {
    plan_sse_swa_moba(config, plan);
  } else {
    plan_hybrid(config, plan);
  }
  return plan;
}

Plan plan_mamba2(const Config& config) {
  for (const char* key : {"layer_norm_epsilon", "time_step_limit"}) {
    if (config.has(key))
      throw Error(
          fmt::format("config: \"{}\" says that this is Mamba-2 in the layout of Transformers, which is not supported; that of "
                      "flash-linear-attention is",
                      key));
  }
  require_known_keys(config, "mamba2");
  Plan plan;
  plan.family = "mamba2";
  plan.hidden = config.integer("hidden_size");
  plan.vocab = config.integer("vocab_size", 32000);
  plan.embeddings = "backbone.embeddings.weight";
  plan.norm = "backbone.norm_f.weight";
  plan.head = "lm_head.weight";
  plan.norm_eps = static_cast<float>(config.not_negative("norm_eps", 1e-5));
  plan.tied = config.boolean("tie_word_embeddings", false);
  const std::int64_t layers = config.integer("num_hidden_layers", 48, 1, kMaxLayers);
  for (std::int64_t i = 0; i < layers; ++i) {
    plan.layers.push_back({.mixer = "mamba2",
                           .config = config,
                           .mixer_prefix = fmt::format("backbone.layers.{}.mixer.", i),
                           .mixer_norm = fmt::format("backbone.layers.{}.norm.weight", i),
                           .ffn = FfnKind::none});
  }
  if (!config.has("norm_before_gate")) {
    plan.notes.push_back("config has no \"norm_before_gate\": false is assumed; early Mamba-2 checkpoints normalised before gating");
  }
  return plan;
}

/// Throws Error for a text model of another family within the wrapper of this one.
void require_text_model(const Config& config, std::string_view family) {
  const std::string inner = config.text("model_type", std::string(family));
  const auto bare = [](std::string_view name) { return name.substr(0, name.size() - (name.ends_with("_text") ? 5 : 0)); };
  if (bare(inner) != bare(family)) throw Error(fmt::format("config: a text model of type {} within {}", shown(inner), family));
}

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
  plan.intermediate = config.integer("intermediate_size", next ? 5632 : 12288);
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
                           .ffn = experts ? FfnKind::experts : FfnKind::swiglu,
                           .ffn_prefix = prefix + "mlp.",
                           .ffn_norm = prefix + "post_attention_layernorm.weight"});
  }
  return plan;
}

std::vector<StoredTensor>::iterator named(std::vector<StoredTensor>& tensors, const std::string& name) {
  return std::ranges::find(tensors, name, &StoredTensor::name);
}

/// Gives the tensor `from` the name `to`; false if there is none.
bool rename(std::vector<StoredTensor>& tensors, const std::string& from, const std::string& to) {
  const auto it = named(tensors, from);
  if (it == tensors.end()) return false;
  it->name = to;
  return true;
}

/// Drops vision towers, multi-token heads and stray buffers, which play no part in the text model, each kind with a note.
void pass_over(std::vector<StoredTensor>& tensors, std::vector<std::string>& notes) {
  std::map<std::string_view, std::vector<std::string>> dropped;
  std::erase_if(tensors, [&](const StoredTensor& tensor) {
    const std::string_view part = tensor.name.ends_with("attn.D") ? "buffers" : passed_over_as(tensor.name);
    if (!part.empty()) dropped[part].push_back(tensor.name);
    return !part.empty();
  });
  for (const auto& [part, names] : dropped) notes.push_back(passed_over_note(part, names));
}

/// Rows [begin, begin + count) of a matrix, as a tensor of its own over the same bytes.
StoredTensor row_range(const StoredTensor& whole, std::string name, std::int64_t begin, std::int64_t count) {
  StoredTensor part = whole;
  part.name = std::move(name);
  part.data += begin * (whole.bytes() / whole.shape[0]);
  part.shape[0] = count;
  return part;
}

}  // namespace

Plan plan_model(const Config& config) {
  const std::string family = config.text("model_type");
  Plan plan;
  if (std::find(kFlaFamilies.begin(), kFlaFamilies.end(), family) != kFlaFamilies.end()) {
    plan = plan_fla(config, family);
  } else if (family == "mamba2") {
    plan = plan_mamba2(config);
  } else if (family == "qwen3_next" || family == "qwen3_5" || family == "qwen3_5_text" || family == "qwen3_5_moe" ||
             family == "qwen3_5_moe_text") {
    plan = plan_qwen(config, family);
  } else {
    throw Error(fmt::format("model_type {} is not supported; known are {}, mamba2, qwen3_next, qwen3_5", shown(family),
                            fmt::join(kFlaFamilies, ", ")));
  }
  return plan;
}

std::vector<StoredTensor> regular_tensors(const Checkpoint& checkpoint, Plan& plan) {
  std::vector<StoredTensor> tensors = checkpoint.tensors;
  take_planned_names(tensors, plan.embeddings, plan.head, plan.notes);
  pass_over(tensors, plan.notes);
  if (rename(tensors, "backbone.embedding.weight", "backbone.embeddings.weight")) plan.notes.push_back("legacy name backbone.embedding");
  if (plan.embeddings == "model.embeddings.weight" && rename(tensors, "model.embed_tokens.weight", plan.embeddings)) {
    plan.notes.push_back("legacy name model.embed_tokens");
  }
  std::set<std::string> there;
  for (const StoredTensor& tensor : tensors) there.insert(tensor.name);
  for (const LayerPlan& layer : plan.layers) {
    if (layer.ffn != FfnKind::swiglu || plan.norm_offset != 0) continue;
    // Before February 2025 gate and up were one matrix: the first I rows are the gate, the last I rows up.
    const std::string gate = layer.ffn_prefix + "gate_proj.weight", up = layer.ffn_prefix + "up_proj.weight";
    const auto fused = there.contains(gate) && !there.contains(up) ? named(tensors, gate) : tensors.end();
    if (fused != tensors.end() && fused->shape.size() == 2 && fused->shape[0] == 2 * plan.intermediate && !fused->scales) {
      const StoredTensor both = *fused;
      *fused = row_range(both, gate, 0, plan.intermediate);
      tensors.push_back(row_range(both, up, plan.intermediate, plan.intermediate));
      plan.notes.push_back(fmt::format("{} held gate and up in one matrix", gate));
    }
    // norm_first: the pre-norms lay inside the sublayers; linear attention's attn.norm is its output norm and stays.
    const std::string inner = layer.mixer_prefix + "norm.weight";
    if (plan.family != "linear_attn" && there.contains(inner) && !there.contains(layer.mixer_norm) &&
        rename(tensors, inner, layer.mixer_norm)) {
      if (rename(tensors, layer.ffn_prefix + "norm.weight", layer.ffn_norm)) plan.ffn_norm_eps = 1e-5f;
      plan.notes.push_back(fmt::format("{} was stored inside the sublayer", layer.mixer_norm));
    }
  }
  return tensors;
}

}  // namespace statescope

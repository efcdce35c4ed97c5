#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/config/config_keys.h"
#include "engine/config/names.h"
#include "engine/error.h"
#include "engine/mixers/attention/attention_pattern.h"
#include "engine/model/families/hybrid_parts.h"

namespace statescope {
namespace {

const std::set<std::string> kOf21Layers{"gated_deltanet", "gated_deltaproduct", "comba"};  // where the config does not say

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

/// MoBA's sizes, said where the config leaves them out (spec §18.4).
Config with_moba_sizes(const Config& config) {
  return config.with("moba_chunk_size", config.integer("moba_chunk_size", 256)).with("moba_topk", config.integer("moba_topk", 4, 1, 4096));
}

/// NSA's sizes likewise (spec §18.3). A null is none of them: num_kv_heads alone may be one. Throws Error.
Config with_nsa_sizes(const Config& config) {
  const auto is_null = [&](const char* key) { return config.raw().contains(key) && !config.has(key); };
  for (const char* key : {"block_size", "block_counts", "window_size"}) {
    if (is_null(key)) throw Error(fmt::format("config: \"{}\" is null, expected a number", key));
  }
  const std::int64_t heads = config.integer("num_heads", 64);
  return config.with("num_heads", heads)
      .with("num_kv_heads", config.integer("num_kv_heads", is_null("num_kv_heads") ? heads : 4))
      .with("head_dim", config.integer("head_dim", 32))
      .with("block_size", config.integer("block_size", 64))
      .with("block_counts", config.integer("block_counts", 16))
      .with("window_size", config.integer("window_size", 512));
}

/// What `attn_pattern` says must be right for every layer; a note where its lists end. Throws Error.
void read_patterns(Plan& plan) {
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    const Config& config = plan.layers[i].config;
    const auto pattern = AttentionPattern::of(config, static_cast<std::int64_t>(i), config.integer("num_heads", 32));
    if (i == 0 && pattern && pattern->listed_tokens() > 0)
      plan.notes.push_back(
          fmt::format("attn_pattern lists random blocks for {} tokens; those behind them have none", pattern->listed_tokens()));
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

}  // namespace

Plan plan_fla(const Config& stored, const std::string& family) {
  require_known_keys(stored, family);
  const Config config = with_todays_names(stored);
  config.text("hidden_act", "swish", {"swish", "silu"});  // the MLP knows no other, whatever the mixer could do
  Plan plan;
  plan.family = family;
  plan.hidden = config.integer("hidden_size");
  plan.vocab = config.integer("vocab_size", 32000);
  const std::int64_t width = swiglu_width(config, plan.hidden, family == "retnet" ? 2 : 4);
  plan.embeddings = "model.embeddings.weight";
  plan.norm = "model.norm.weight";
  plan.head = "lm_head.weight";
  plan.norm_eps = plan.ffn_norm_eps = static_cast<float>(config.not_negative("norm_eps", 1e-6));
  plan.tied = config.boolean("tie_word_embeddings", false);
  const std::int64_t layers = config.integer("num_hidden_layers", kOf21Layers.contains(family) ? 21 : 24, 1, kMaxLayers);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string prefix = fmt::format("model.layers.{}.", i);
    plan.layers.push_back({.mixer = family == "sse_swa_moba" ? "sse_swa" : family,
                           .config = config,
                           .mixer_prefix = prefix + "attn.",
                           .mixer_norm = prefix + "attn_norm.weight",
                           .ffn_prefix = prefix + "mlp.",
                           .ffn_norm = prefix + "mlp_norm.weight",
                           .mlp = {.width = width}});
  }
  if (family == "sse_swa_moba") {
    plan_sse_swa_moba(config, plan);
  } else if (family == "moba") {
    for (LayerPlan& layer : plan.layers) layer.config = with_moba_sizes(config);
  } else if (family == "nsa") {
    for (LayerPlan& layer : plan.layers) layer.config = with_nsa_sizes(config);
  } else if (family == "transformer") {
    read_patterns(plan);
  } else {
    plan_hybrid(config, plan);
  }
  return plan;
}

}  // namespace statescope

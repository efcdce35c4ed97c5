// Softmax attention: the Transformer, the attention layers of every hybrid, MoBA's block attention and fixed patterns (spec §3.1, §4.8,
// §7, §18.5, §19.4 to §19.10).
#include "engine/mixers/attention/softmax_attention.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/mixers/attention/attention_pattern.h"
#include "engine/mixers/table.h"

namespace statescope {

AttentionHeads::AttentionHeads(const MixerBuild& build) {
  const Config& config = build.config;
  hidden_ = config.integer("hidden_size");
  heads_ = config.integer("num_heads", 32);
  kv_heads_ = config.integer("num_kv_heads", heads_);
  divided(heads_, config.in_file("num_heads"), kv_heads_, config.in_file("num_kv_heads"));
  head_dim_ = config.has("head_dim") ? config.integer("head_dim") : divided(hidden_, "hidden_size", heads_, config.in_file("num_heads"));
  const bool positions = config.boolean("positions", true);
  if (positions) require_pairs(head_dim_, "head_dim");
  const bool bias = config.boolean("qkv_bias", false);
  q_proj_ = Linear(build.weights, "q_proj", heads_ * head_dim_, hidden_, bias);
  k_proj_ = Linear(build.weights, "k_proj", kv_heads_ * head_dim_, hidden_, bias);
  v_proj_ = Linear(build.weights, "v_proj", kv_heads_ * head_dim_, hidden_, bias);
  read_norms(build);
  read_factors(config);
  if (positions) {
    rope_ = Rope(config.has("rope_theta") ? config : config.with("rope_theta", 10000.0), head_dim_, 1);
  }
  if (const auto pattern = AttentionPattern::of(config, build.layer, heads_)) pattern_ = pattern->on_device(build.weights);
  window_ = config.has("window_size") ? config.integer("window_size") : 0;
  moba_chunk_size_ = config.integer("moba_chunk_size", 0, 0);
  moba_topk_ = config.integer("moba_topk", 0, 0, 4096);
}

void AttentionHeads::read_norms(const MixerBuild& build) {
  const Config& config = build.config;
  // FLA's layer keeps its own 1e-5 here; the other families pass theirs on (spec §1.2, §4.8).
  qk_norm_eps_ = static_cast<float>(config.not_negative("qk_norm_eps", 1e-5));
  if (!config.boolean("qk_norm", false)) return;
  const bool together = config.boolean("norms_all_heads", false);
  q_norm_ = build.weights.floats(config.text("q_norm", "q_norm") + ".weight", {together ? heads_ * head_dim_ : head_dim_});
  k_norm_ = build.weights.floats(config.text("k_norm", "k_norm") + ".weight", {together ? kv_heads_ * head_dim_ : head_dim_});
}

/// Scores are d^{-1/2} q·k whatever scale a config has: q carries the rest, and is shown with it.
void AttentionHeads::read_factors(const Config& config) {
  in_factor_ = static_cast<float>(config.number("in_factor", 1));
  key_factor_ = static_cast<float>(config.number("key_factor", 1));
  if (config.has("scale")) query_factor_ = static_cast<float>(config.number("scale") * std::sqrt(static_cast<double>(head_dim_)));
}

MixerLayout AttentionHeads::layout() const {
  MixerLayout layout;
  layout.attention_heads = heads_;
  layout.kv_heads = kv_heads_;
  layout.key_dim = layout.value_dim = head_dim_;
  return layout;
}

Value AttentionHeads::queries(Program& p) const {
  const auto times = [&](float factor, Value z) { return factor == 1 ? z : p.apply(program::Times{factor}, z); };
  const Value x = scaled_input(p, p.x(), in_factor_, hidden_);
  const auto heads = [&](const Linear& linear, std::int64_t count) {
    return p.with_axes(linear(p, x, ValueType::exact), {count, head_dim_});
  };
  Value q = heads(q_proj_, heads_), k = heads(k_proj_, kv_heads_);
  const Value v = heads(v_proj_, kv_heads_);
  q = times(query_factor_, normed(p, q, q_norm_));
  k = times(key_factor_, normed(p, k, k_norm_));
  if (rope_) {
    q = (*rope_)(p, q);
    k = (*rope_)(p, k);
  }
  p.show("q", q);
  p.show("k", k);
  p.show("v", v);
  p.append(k, v);
  return q;
}

Value AttentionHeads::operator()(Program& p) const {
  const Value q = queries(p);
  // o_t = Σ_s softmax_s(d^{-1/2} q_t·k_s) v_s
  const program::Attend attention{
      .q = q, .scale = inverse_sqrt(head_dim_), .window = window_, .block_size = moba_chunk_size_, .topk = moba_topk_, .pattern = pattern_};
  const auto [o, selected] = p.attend(attention, heads_, head_dim_);
  if (selected) p.show("moba_selected", selected);
  return o;
}

/// Each head by itself, or all of a token together, as the weight is long.
Value AttentionHeads::normed(Program& p, Value heads, ConstTensor weight) const {
  if (!weight) return heads;
  const program::RmsNorm norm{.weight = weight, .group = weight.rows(), .eps = qk_norm_eps_};
  if (weight.rows() == head_dim_) return p.apply(norm, heads);
  const Shape axes = p[heads].axes;
  return p.with_axes(p.apply(norm, p.with_axes(heads, {p.width(heads)})), axes);
}

SoftmaxAttentionMixer::SoftmaxAttentionMixer(const MixerBuild& build) : heads_(build) {
  const Config& config = build.config;
  o_proj_ = Linear(build.weights, config.text("o_proj", "o_proj"), config.integer("hidden_size"), heads_.value_dim(),
                   config.boolean("o_bias", false));
}

void SoftmaxAttentionMixer::describe(Program& p) const {
  p.result = o_proj_(p, p.show("readout", p.with_axes(heads_(p), {heads_.value_dim()})));
}

std::unique_ptr<Mixer> make_softmax_attention(const MixerBuild& build) { return std::make_unique<SoftmaxAttentionMixer>(build); }

}  // namespace statescope

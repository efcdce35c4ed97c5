// Softmax attention: the Transformer, the attention layers of every hybrid, and MoBA block attention (spec §3.1, §4.8, §7).
#include "engine/mixers/softmax_attention.h"

#include "engine/mixers/table.h"

namespace statescope {

SoftmaxAttentionMixer::SoftmaxAttentionMixer(const MixerBuild& build) {
  const Config& config = build.config;
  hidden_ = config.integer("hidden_size");
  heads_ = config.integer("num_heads", 32);
  kv_heads_ = config.integer("num_kv_heads", heads_);
  divided(heads_, "num_heads", kv_heads_, "num_kv_heads");
  head_dim_ = config.has("head_dim") ? config.integer("head_dim") : divided(hidden_, "hidden_size", heads_, "num_heads");
  require_pairs(head_dim_, "head_dim");
  const bool bias = config.boolean("qkv_bias", false);
  q_proj_ = Linear(build.weights, "q_proj", heads_ * head_dim_, hidden_, bias);
  k_proj_ = Linear(build.weights, "k_proj", kv_heads_ * head_dim_, hidden_, bias);
  v_proj_ = Linear(build.weights, "v_proj", kv_heads_ * head_dim_, hidden_, bias);
  o_proj_ = Linear(build.weights, "o_proj", hidden_, heads_ * head_dim_);
  if (config.boolean("qk_norm", false)) {
    q_norm_ = build.weights.floats("q_norm.weight", {head_dim_});
    k_norm_ = build.weights.floats("k_norm.weight", {head_dim_});
  }
  // FLA's layer keeps its own 1e-5 here; only the SSE-SWA-MoBA stack passes norm_eps on (spec §1.2, §4.8).
  qk_norm_eps_ = static_cast<float>(config.not_negative("qk_norm_eps", 1e-5));
  rope_theta_ = config.positive("rope_theta", 10000.0);
  window_ = config.has("window_size") ? config.integer("window_size") : 0;
  moba_chunk_size_ = config.integer("moba_chunk_size", 0, 0);
  moba_topk_ = config.integer("moba_topk", 0, 0, 4096);
}

MixerLayout SoftmaxAttentionMixer::layout() const {
  MixerLayout layout;
  layout.kv_heads = kv_heads_;
  layout.key_dim = layout.value_dim = head_dim_;
  return layout;
}

void SoftmaxAttentionMixer::describe(Program& p) const {
  const auto heads = [&](const Linear& linear, std::int64_t count) {
    return p.with_axes(linear(p, p.x(), ValueType::exact), {count, head_dim_});
  };
  Value q = heads(q_proj_, heads_), k = heads(k_proj_, kv_heads_);
  const Value v = heads(v_proj_, kv_heads_);
  if (q_norm_) {
    q = p.apply(program::RmsNorm{.weight = q_norm_, .group = head_dim_, .eps = qk_norm_eps_}, q);
    k = p.apply(program::RmsNorm{.weight = k_norm_, .group = head_dim_, .eps = qk_norm_eps_}, k);
  }
  q = p.show("q", p.apply(program::Rope{rope_theta_, head_dim_}, q));
  k = p.show("k", p.apply(program::Rope{rope_theta_, head_dim_}, k));
  p.show("v", v);
  p.append(k, v);

  // o_t = Σ_s softmax_s(d^{-1/2} q_t·k_s) v_s
  const program::Attend attention{
      .q = q, .scale = inverse_sqrt(head_dim_), .window = window_, .block_size = moba_chunk_size_, .topk = moba_topk_};
  const auto [o, selected] = p.attend(attention, heads_, head_dim_);
  if (selected) p.show("moba_selected", selected);
  p.result = o_proj_(p, p.show("readout", p.with_axes(o, {heads_ * head_dim_})));
}

std::unique_ptr<Mixer> make_softmax_attention(const MixerBuild& build) { return std::make_unique<SoftmaxAttentionMixer>(build); }

}  // namespace statescope

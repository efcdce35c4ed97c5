#include "engine/mixers/attention/token_indexer.h"

namespace statescope {
namespace {

constexpr float kKeyNormEps = 1e-6F;

/// W [rows, columns] without the mean over its rows, so that W x has the mean 0 whatever x is.
Linear centred(const WeightScope& weights, std::string_view name, std::int64_t rows, std::int64_t columns) {
  std::vector<float> W = weights.host(name, {rows, columns});
  for (std::int64_t c = 0; c < columns; ++c) {
    double mean = 0;
    for (std::int64_t r = 0; r < rows; ++r) mean += W[static_cast<std::size_t>(r * columns + c)] / static_cast<double>(rows);
    for (std::int64_t r = 0; r < rows; ++r) W[static_cast<std::size_t>(r * columns + c)] -= static_cast<float>(mean);
  }
  Linear linear;
  linear.weight = {weights.constant(W).data, DType::f32, {rows, columns}};
  return linear;
}

}  // namespace

TokenIndexer::TokenIndexer(const MixerBuild& build, std::int64_t q_rank) {
  const Config& config = build.config;
  const WeightScope weights = build.weights.scope("indexer.");
  const std::int64_t hidden = config.integer("hidden_size");
  heads_ = config.integer("index_n_heads");
  width_ = config.integer("index_head_dim", {}, config.integer("qk_rope_head_dim"));
  topk_ = config.integer("index_topk");
  wq_b_ = Linear(weights, "wq_b", heads_ * width_, q_rank);
  centred_wk_ = centred(weights, "wk.weight", width_, hidden);
  k_norm_ = weights.floats("k_norm.weight", {width_});
  k_bias_ = weights.floats("k_norm.bias", {width_});
  weights_proj_ = Linear(weights, "weights_proj", heads_, hidden);
}

/// k_I = RoPE(LayerNorm(wk x)): a LayerNorm is a centred RMSNorm, and the mean has been taken out of wk
Value TokenIndexer::key(Program& p, const Rope& rope) const {
  const program::RmsNorm norm{.weight = k_norm_, .group = width_, .eps = kKeyNormEps};
  const Value normed = p.apply(norm, centred_wk_(p, p.x(), ValueType::exact));
  const Value k = p.combine(program::Add{}, normed, p.constant(k_bias_, {width_}));
  return p.with_axes(rope(p, p.with_axes(k, {1, width_})), {width_});
}

Value TokenIndexer::chosen(Program& p, Value low, const Rope& rope) const {
  // q_I = RoPE(wq_b RMSNorm(q_a_proj x)),   w = H^{-1/2} weights_proj x
  const Value q = rope(p, p.with_axes(wq_b_(p, low, ValueType::exact), {heads_, width_}));
  const Value w = p.apply(program::Times{inverse_sqrt(heads_)}, weights_proj_(p, p.x(), ValueType::exact));
  // I_ts = Σ_h w_th relu(d^{-1/2} q_th·k_s);   the tokens s ≤ t of the largest I_ts
  const auto choice = p.choose(program::ChooseTokens{.q = q, .weight = w, .scale = inverse_sqrt(width_)}, topk_);
  p.show("dsa_scores", choice.scores);
  return p.show("dsa_selected", choice.selected);
}

}  // namespace statescope

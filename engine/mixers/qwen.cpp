// The released GDN hybrids, Qwen3-Next and Qwen3.5: a gated delta rule behind fused projections, and gated softmax attention (spec §8).
#include "engine/mixers/parts.h"
#include "engine/mixers/rope.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

class QwenGatedDeltaNet final : public Mixer {
 public:
  explicit QwenGatedDeltaNet(const MixerBuild& build) {
    const Config& config = build.config;
    const WeightScope& weights = build.weights;
    const std::int64_t hidden = config.integer("hidden_size");
    key_heads_ = config.integer("linear_num_key_heads", 16);
    value_heads_ = config.integer("linear_num_value_heads", 32);
    group_ = divided(value_heads_, "linear_num_value_heads", key_heads_, "linear_num_key_heads");
    K_ = config.integer("linear_key_head_dim", 128);
    V_ = config.integer("linear_value_head_dim", 128);
    const std::int64_t key_dim = key_heads_ * K_, value_dim = value_heads_ * V_;
    fused_ = config.boolean("fused_projections", false);
    if (fused_) {
      qkvz_ = Linear(weights, "in_proj_qkvz", 2 * key_dim + 2 * value_dim, hidden);
      ba_ = Linear(weights, "in_proj_ba", 2 * value_heads_, hidden);
    } else {
      qkv_ = Linear(weights, "in_proj_qkv", 2 * key_dim + value_dim, hidden);
      z_ = Linear(weights, "in_proj_z", value_dim, hidden);
      b_ = Linear(weights, "in_proj_b", value_heads_, hidden);
      a_ = Linear(weights, "in_proj_a", value_heads_, hidden);
    }
    conv_ = Conv(weights, "conv1d", 2 * key_dim + value_dim, ToldSize(config, "linear_conv_kernel_dim", 4), Activation::silu);
    A_log_ = weights.floats("A_log", {value_heads_});
    dt_bias_ = weights.floats("dt_bias", {value_heads_});
    readout_ = {.norm = weights.floats("norm.weight", {V_}),
                .head_dim = V_,
                .eps = static_cast<float>(config.not_negative("rms_norm_eps", 1e-6)),
                .o_proj = Linear(weights, "out_proj", hidden, value_dim)};
  }

  MixerLayout layout() const override { return decaying_state(value_heads_, K_, V_, {conv_.cache_shape()}); }

  void describe(Program& p) const override {
    const std::int64_t key_dim = key_heads_ * K_, value_dim = value_heads_ * V_;
    auto [qkv, z, b, a] =
        fused_ ? ungrouped(p) : Projected{qkv_(p, p.x()), z_(p, p.x()), b_(p, p.x(), ValueType::exact), a_(p, p.x(), ValueType::exact)};
    // One convolution over all q, all k, all v;   q̂ = L2(q), k̂ = L2(k)
    qkv = conv_(p, qkv, 0);
    const Value q = p.apply(program::L2Norm{}, p.columns(qkv, 0, {key_heads_, K_}));
    const Value k = p.apply(program::L2Norm{}, p.columns(qkv, key_dim, {key_heads_, K_}));
    const Value v = p.columns(qkv, 2 * key_dim, {value_heads_, V_});
    // log α_t = −exp(A_log)·softplus(a + dt_bias),   β_t = σ(b)
    const Value log_decay = p.apply(DeltaDecay{A_log_, dt_bias_}, a), beta = p.apply(Activation::sigmoid, b);
    // The gated delta rule of spec §3.6; value head j·r + i belongs to key head j.
    const program::DeltaRule memory{.q = q, .k = k, .v = v, .log_decay = log_decay, .beta = beta, .scale = inverse_sqrt(K_)};
    p.result = readout_(p, remember(p, memory, value_heads_, V_), p.with_axes(z, {value_dim}));
  }

 private:
  struct Projected {
    Value qkv, z, b, a;
  };
  /// in_proj_qkvz holds, per key head j: q(K) | k(K) | v(r·V) | z(r·V); in_proj_ba: b(r) | a(r).
  Projected ungrouped(Program& p) const {
    const Value qkvz = qkvz_(p, p.x()), ba = ba_(p, p.x(), ValueType::exact);
    const std::int64_t key_dim = key_heads_ * K_, value_dim = value_heads_ * V_, rV = group_ * V_, width = 2 * K_ + 2 * rV;
    // Of every key head the numbers [begin, begin + n).
    using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;
    const auto of_heads = [&](Ranges& ranges, std::int64_t stride, std::int64_t begin, std::int64_t n) {
      for (std::int64_t j = 0; j < key_heads_; ++j) ranges.emplace_back(j * stride + begin, n);
    };
    Ranges qkv, z, b, a;
    of_heads(qkv, width, 0, K_);
    of_heads(qkv, width, K_, K_);
    of_heads(qkv, width, 2 * K_, rV);
    of_heads(z, width, 2 * K_ + rV, rV);
    of_heads(b, 2 * group_, 0, group_);
    of_heads(a, 2 * group_, group_, group_);
    return {p.taken(qkvz, qkv, {2 * key_dim + value_dim}), p.taken(qkvz, z, {value_dim}), p.taken(ba, b, {value_heads_}),
            p.taken(ba, a, {value_heads_})};
  }

  std::int64_t key_heads_, value_heads_, group_, K_, V_;
  bool fused_;
  Linear qkvz_, ba_, qkv_, z_, b_, a_;
  Conv conv_;
  ConstTensor A_log_, dt_bias_;
  Readout readout_;
};

class QwenAttention final : public Mixer {
 public:
  explicit QwenAttention(const MixerBuild& build) {
    const Config& config = build.config;
    const WeightScope& weights = build.weights;
    const std::int64_t hidden = config.integer("hidden_size");
    heads_ = config.integer("num_attention_heads", 16);
    kv_heads_ = config.integer("num_key_value_heads", 2);
    divided(heads_, "num_attention_heads", kv_heads_, "num_key_value_heads");
    head_dim_ = config.integer("head_dim", 256);
    const bool bias = config.boolean("attention_bias", false);
    q_proj_ = Linear(weights, "q_proj", heads_ * 2 * head_dim_, hidden, bias);
    k_proj_ = Linear(weights, "k_proj", kv_heads_ * head_dim_, hidden, bias);
    v_proj_ = Linear(weights, "v_proj", kv_heads_ * head_dim_, hidden, bias);
    o_proj_ = Linear(weights, "o_proj", hidden, heads_ * head_dim_, bias);
    q_norm_ = weights.floats("q_norm.weight", {head_dim_});
    k_norm_ = weights.floats("k_norm.weight", {head_dim_});
    eps_ = static_cast<float>(config.not_negative("rms_norm_eps", 1e-6));
    rope_ = Rope(config, head_dim_, kQwenRotatedPart);
  }

  MixerLayout layout() const override {
    MixerLayout layout;
    layout.attention_heads = heads_;
    layout.kv_heads = kv_heads_;
    layout.key_dim = layout.value_dim = head_dim_;
    return layout;
  }

  void describe(Program& p) const override {
    // q_proj yields [query | gate] per head
    const Value query_gate = q_proj_(p, p.x(), ValueType::exact);
    const auto of_heads = [&](std::int64_t begin) {
      std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
      for (std::int64_t h = 0; h < heads_; ++h) ranges.emplace_back(2 * h * head_dim_ + begin, head_dim_);
      return ranges;
    };
    Value q = p.taken(query_gate, of_heads(0), {heads_, head_dim_});
    const Value gate = p.taken(query_gate, of_heads(head_dim_), {heads_ * head_dim_});
    Value k = p.with_axes(k_proj_(p, p.x(), ValueType::exact), {kv_heads_, head_dim_});
    const Value v = p.with_axes(v_proj_(p, p.x(), ValueType::exact), {kv_heads_, head_dim_});
    // zero-centred norms, then RoPE on the first part of the channels
    q = rope_(p, p.apply(program::RmsNorm{.weight = q_norm_, .group = head_dim_, .eps = eps_, .offset = 1}, q));
    k = rope_(p, p.apply(program::RmsNorm{.weight = k_norm_, .group = head_dim_, .eps = eps_, .offset = 1}, k));
    p.show("q", q);
    p.show("k", k);
    p.show("v", v);
    p.append(k, v);
    // y = o_proj( softmax(d^{-1/2} q Kᵀ) V ⊙ σ(gate) )
    const Value o = p.attend(program::Attend{.q = q, .scale = inverse_sqrt(head_dim_)}, heads_, head_dim_).first;
    p.show("output_gate", p.mean_of_heads(gate, heads_, Activation::sigmoid), true);
    const Value read = p.combine(program::Gate{Activation::sigmoid}, p.with_axes(o, {heads_ * head_dim_}), gate);
    p.result = o_proj_(p, p.show("readout", read));
  }

 private:
  std::int64_t heads_, kv_heads_, head_dim_;
  Linear q_proj_, k_proj_, v_proj_, o_proj_;
  ConstTensor q_norm_, k_norm_;
  float eps_;
  Rope rope_;
};

}  // namespace

std::unique_ptr<Mixer> make_qwen_gated_deltanet(const MixerBuild& build) { return std::make_unique<QwenGatedDeltaNet>(build); }
std::unique_ptr<Mixer> make_qwen_attention(const MixerBuild& build) { return std::make_unique<QwenAttention>(build); }

}  // namespace statescope

// DeltaNet: linear attention that erases what it overwrites (spec §3.5).
#include "engine/mixers/parts.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

class DeltaNet final : public Mixer {
 public:
  explicit DeltaNet(const MixerBuild& build) {
    const Config& config = build.config;
    const WeightScope& weights = build.weights;
    const std::int64_t hidden = config.integer("hidden_size");
    heads_ = config.integer("num_heads", 16);
    const std::int64_t key_dim = expanded(hidden, config, "expand_k", 1.0), value_dim = expanded(hidden, config, "expand_v", 1.0);
    K_ = divided(key_dim, "key dim", heads_, "num_heads");
    V_ = divided(value_dim, "value dim", heads_, "num_heads");
    qk_activation_ = activation_named(config, "qk_activation", "silu", {"silu", "relu", "elu", "identity"});
    l2_ = config.text("qk_norm", "l2", {"l2", "sum"}) == "l2";
    beta_factor_ = config.boolean("allow_neg_eigval", false) ? 2.0f : 1.0f;
    qkv_ = QkvProjection(weights, hidden, heads_, heads_, heads_, K_, V_, config.boolean("use_gate", false));
    if (config.boolean("use_beta", true)) b_proj_ = Linear(weights, "b_proj", heads_, hidden);
    if (config.boolean("use_short_conv", true)) {
      const Activation conv_act = qk_activation_ == Activation::silu ? Activation::silu : Activation::identity;
      qkv_.load_convolutions(weights, {config, "conv_size", 4}, conv_act);
    }
    readout_ = normed_readout(build, "o_norm.weight", V_, value_dim);
  }

  MixerLayout layout() const override { return single_state(heads_, K_, V_, qkv_.cache_shapes()); }

  void describe(Program& p) const override {
    const Value x = p.x();
    auto [q, k, v, raw_q, raw_k, gate] = qkv_(p, x);
    if (!qkv_.convolved()) v = p.apply(Activation::silu, v);
    // The convolution has applied silu already; every other activation comes after it.
    const bool activates = !qkv_.convolved() || qk_activation_ != Activation::silu;
    for (Value* z : {&q, &k}) {
      if (activates) *z = p.apply(qk_activation_, *z);
      *z = l2_ ? p.apply(program::L2Norm{}, *z) : p.apply(program::SumNorm{0}, *z);
    }
    // β_t = σ(b_proj x), doubled if eigenvalues may be negative
    Value beta = b_proj_ ? p.apply(Activation::sigmoid, b_proj_(p, x, ValueType::exact)) : p.fill(1, {heads_});
    if (beta_factor_ != 1) beta = p.combine(program::Add{}, beta, beta);

    // u_t = β_t (v_t − k_t S_{t-1}),   S_t = S_{t-1} + k_tᵀ u_t,   o_t = K^{-1/2} q_t S_t
    const Value o = remember(p, program::DeltaRule{.q = q, .k = k, .v = v, .beta = beta, .scale = inverse_sqrt(K_)}, heads_, V_);
    p.result = readout_(p, o, gate);
  }

 private:
  QkvProjection qkv_;
  std::int64_t heads_, K_, V_;
  Activation qk_activation_;
  bool l2_;
  float beta_factor_;
  Linear b_proj_;
  Readout readout_;
};

}  // namespace

std::unique_ptr<Mixer> make_delta_net(const MixerBuild& build) { return std::make_unique<DeltaNet>(build); }

}  // namespace statescope

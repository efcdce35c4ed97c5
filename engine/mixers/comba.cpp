// Comba: a gated delta rule that erases with the state before its decay, and corrects its queries (spec §17.13).
#include <cmath>

#include "engine/mixers/parts.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

class Comba final : public Mixer {
 public:
  explicit Comba(const MixerBuild& build) {
    const Config& config = build.config;
    const WeightScope& weights = build.weights;
    const std::int64_t hidden = config.integer("hidden_size");
    heads_ = config.integer("num_heads", 6);
    value_heads_ = config.integer("num_v_heads", heads_);
    divided(value_heads_, "num_v_heads", heads_, "num_heads");
    K_ = config.integer("head_dim", 256);
    V_ = expanded(K_, config, "expand_v", 2.0);
    qkv_ = QkvProjection(weights, hidden, heads_, heads_, value_heads_, K_, V_, config.boolean("use_output_gate", true));
    a_proj_ = Linear(weights, "a_proj", value_heads_, hidden);
    b_proj_ = Linear(weights, "b_proj", value_heads_, hidden);
    A_log_ = weights.floats("A_log", {value_heads_});
    dt_bias_ = weights.floats("dt_bias", {value_heads_});
    if (config.boolean("use_short_conv", true)) qkv_.load_convolutions(weights, {config, "conv_size", 4});
    load_inner_decay(build);
    readout_ = normed_readout(build, "o_norm.weight", V_, qkv_.value_dim());
    readout_.gate_act = Activation::sigmoid;
  }

  MixerLayout layout() const override { return decaying_state(value_heads_, K_, V_, qkv_.cache_shapes()); }

  void describe(Program& p) const override {
    const Value x = p.x();
    // log α_t = −exp(A_log)·softplus(a_proj x + dt_bias),   β_t = σ(b_proj x), per value head
    const Value log_decay = p.apply(DeltaDecay{A_log_, dt_bias_}, a_proj_(p, x, ValueType::exact));
    const Value beta = p.apply(Activation::sigmoid, b_proj_(p, x, ValueType::exact));
    auto [q, k, v, raw_q, raw_k, gate] = qkv_(p, x);
    if (!qkv_.convolved()) {
      for (Value* z : {&q, &k, &v}) *z = p.apply(Activation::silu, *z);
    }
    // p = σ(decay) k,   q ← q − D p
    if (correction_) q = p.combine(program::Add{-1}, q, p.combine(program::ScaleHeads{}, k, p.constant(correction_, {heads_})));
    const Value erase = p.show("erase", p.repeat_heads(erase_factor(p, k), 1, heads_, value_heads_));
    // q̂ = L2(q), k̂ = L2(k)
    q = p.apply(program::L2Norm{}, q);
    k = p.apply(program::L2Norm{}, k);

    // u_t = β_t (v_t − c_t k̂_t S_{t-1}),   S_t = α_t S_{t-1} + k̂_tᵀ u_t,   o_t = K^{-1/2} q̂_t S_t,   c k̂ = p̂ = L2(p)
    const program::DeltaRule memory{
        .q = q, .k = k, .v = v, .log_decay = log_decay, .beta = beta, .undecayed_erase = erase, .scale = inverse_sqrt(K_)};
    p.result = readout_(p, remember(p, memory, value_heads_, V_), gate);
  }

 private:
  void load_inner_decay(const MixerBuild& build) {
    const auto n = static_cast<std::size_t>(heads_);
    std::vector<float> sigma(n, 1.0F), correction;
    if (build.config.boolean("use_inner_decay", true)) {
      std::vector<float> shift, bend;
      sigma = build.weights.host("decay", {heads_});
      for (float& s : sigma) {
        s = 1 / (1 + std::exp(-s));
        shift.push_back(l2_norm_eps / (s * s));
        bend.push_back(l2_norm_eps / (s * s) - l2_norm_eps);
      }
      shift_ = build.weights.constant(shift);
      bend_ = build.weights.constant(bend);
      ones_ = {build.weights.constant(std::vector<float>(static_cast<std::size_t>(K_), 1)).data, DType::f32, {1, K_}};
    }
    if (!build.config.boolean("use_output_correction", true)) return;
    correction = build.weights.host("D", {heads_});
    for (std::size_t h = 0; h < n; ++h) correction[h] *= sigma[h];
    correction_ = build.weights.constant(correction);
  }

  /// c with L2(σk) = c L2(k), which is 1 but for the ε in both norms: c² = (‖k‖² + ε) / (‖k‖² + ε/σ²)
  Value erase_factor(Program& p, Value k) const {
    if (!shift_) return p.fill(1, {heads_});
    const Value size = p.linear_each_head(ones_, {}, p.combine(program::Gate{}, k, k));
    const Value below = p.with_axes(p.combine(program::Add{}, size, p.constant(shift_, {heads_})), {heads_});
    const Value inverse = p.combine(program::DivideHeads{0}, p.fill(1, {heads_, 1}), below);
    // ln c = ½ ln(1 − (ε/σ² − ε) / (‖k‖² + ε/σ²))
    const Value missing = p.combine(program::Gate{}, p.with_axes(inverse, {heads_}), p.constant(bend_, {heads_}));
    return p.apply(Activation::exp, p.apply(program::Times{0.5F}, p.apply(Activation::log_one_minus, missing)));
  }

  QkvProjection qkv_;
  std::int64_t heads_, value_heads_, K_, V_;
  Linear a_proj_, b_proj_;
  ConstTensor A_log_, dt_bias_, shift_, bend_, ones_, correction_;
  Readout readout_;
};

}  // namespace

std::unique_ptr<Mixer> make_comba(const MixerBuild& build) { return std::make_unique<Comba>(build); }

}  // namespace statescope

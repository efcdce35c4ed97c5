// Gated DeltaNet: decay, erase, write; and softmax linear attention (SLA) on it (spec §3.6, §6).
#include "engine/mixers/parts.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

class GatedDeltaNet final : public Mixer {
 public:
  explicit GatedDeltaNet(const MixerBuild& build) {
    const Config& config = build.config;
    const WeightScope& weights = build.weights;
    const std::int64_t hidden = config.integer("hidden_size");
    heads_ = config.integer("num_heads", 6);
    value_heads_ = config.integer("num_v_heads", heads_);
    divided(value_heads_, config.in_file("num_v_heads"), heads_, config.in_file("num_heads"));
    K_ = config.integer("head_dim", 256);
    V_ = config.has("value_head_dim") ? config.integer("value_head_dim") : expanded(K_, config, "expand_v", 2.0);
    beta_factor_ = config.boolean("allow_neg_eigval", false) ? 2.0f : 1.0f;
    qkv_ = QkvProjection(weights, hidden, heads_, heads_, value_heads_, K_, V_, config.boolean("use_gate", true));
    a_proj_ = Linear(weights, "a_proj", value_heads_, hidden);
    b_proj_ = Linear(weights, "b_proj", value_heads_, hidden);
    A_log_ = weights.floats("A_log", {value_heads_});
    dt_bias_ = weights.floats("dt_bias", {value_heads_});
    if (config.boolean("use_short_conv", true)) qkv_.load_convolutions(weights, {config, "conv_size", 4});
    head_gates_ = HeadGates::load(build, qkv_, hidden);
    readout_ = normed_readout(build, "o_norm.weight", V_, qkv_.value_dim());
    readout_.gate_act = activation_named(config, "output_gate_activation", "swish", {"swish", "silu", "sigmoid"});
  }

  MixerLayout layout() const override {
    MixerLayout layout = single_state(value_heads_, K_, V_, qkv_.cache_shapes());
    layout.decays = !head_gates_ || head_gates_->gdn_decay;
    layout.head_gates = head_gates_.has_value();
    if (head_gates_ && layout.decays)
      layout.recurrence = "S_t = α_t (S_{t−1} − β_t k_tᵀ (k_t S_{t−1})) + β_t k_tᵀ (G^K_t v_t) (SLA eq. 14)";
    if (head_gates_ && !layout.decays) layout.recurrence = "S_t = S_{t−1} − β_t k_tᵀ (k_t S_{t−1}) + β_t k_tᵀ (G^K_t v_t) (SLA eq. 14)";
    return layout;
  }

  void describe(Program& p) const override {
    const Value x = p.x();
    // log α_t = −exp(A_log)·softplus(a_proj x + dt_bias),   β_t = σ(b_proj x), per value head
    const bool decays = !head_gates_ || head_gates_->gdn_decay;  // [A14]: not in the literal SLA eq. 14
    const Value log_decay = decays ? p.apply(DeltaDecay{A_log_, dt_bias_}, a_proj_(p, x, ValueType::exact)) : p.fill(0, {value_heads_});
    Value beta = p.apply(Activation::sigmoid, b_proj_(p, x, ValueType::exact));
    if (beta_factor_ != 1) beta = p.combine(program::Add{}, beta, beta);
    auto [q, k, v, raw_q, raw_k, gate] = qkv_(p, x);
    std::optional<HeadGates::Gates> G;
    if (head_gates_ && !head_gates_->phi_stage) G = (*head_gates_)(p, x, raw_q, raw_k);
    if (!qkv_.convolved()) {
      // Without convolutions plain silu; the gates above have seen q and k before it.
      for (Value* z : {&q, &k, &v}) *z = p.apply(Activation::silu, *z);
    }
    if (head_gates_ && head_gates_->phi_stage) G = (*head_gates_)(p, x, q, k);
    // q̂ = L2(q), k̂ = L2(k)
    q = p.apply(program::L2Norm{}, q);
    k = p.apply(program::L2Norm{}, k);
    // SLA: the write gate scales the value target alone, the read gate q                                   (SLA eq. 14–16)
    const Value ungated = q;
    if (G) {
      v = p.combine(program::ScaleHeads{}, v, p.repeat_heads(G->k, 1, heads_, value_heads_));
      if (!head_gates_->post_norm) q = p.combine(program::ScaleHeads{}, q, G->q);
      G->q = p.repeat_heads(G->q, 1, heads_, value_heads_);
    }

    // S̄ = α_t S_{t-1},   u_t = β_t (v_t − k̂_t S̄),   S_t = S̄ + k̂_tᵀ u_t,   o_t = K^{-1/2} q̂_t S_t
    const program::DeltaRule memory{.q = q, .k = k, .v = v, .log_decay = log_decay, .beta = beta, .scale = inverse_sqrt(K_)};
    p.result = gated_output(p, memory, value_heads_, V_, readout_, gate, head_gates_, G, ungated);
  }

 private:
  QkvProjection qkv_;
  std::int64_t heads_, value_heads_, K_, V_;
  float beta_factor_;
  Linear a_proj_, b_proj_;
  ConstTensor A_log_, dt_bias_;
  std::optional<HeadGates> head_gates_;
  Readout readout_;
};

}  // namespace

std::unique_ptr<Mixer> make_gated_deltanet(const MixerBuild& build) { return std::make_unique<GatedDeltaNet>(build); }

}  // namespace statescope

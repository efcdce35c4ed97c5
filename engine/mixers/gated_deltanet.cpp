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
    divided(value_heads_, "num_v_heads", heads_, "num_heads");
    K_ = config.integer("head_dim", 256);
    V_ = expanded(K_, config, "expand_v", 2.0);
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

  bool folds_norm() const override { return !head_gates_; }
  MixerLayout layout() const override {
    MixerLayout layout = single_state(value_heads_, K_, V_, qkv_.cache_shapes());
    layout.decays = !head_gates_ || head_gates_->gdn_decay;
    layout.head_gates = head_gates_.has_value();
    return layout;
  }

  void forward(Context& ctx, ConstTensor x, MixerState& state, Tensor y) const override {
    Backend& backend = ctx.backend;
    // log α_t = −exp(A_log)·softplus(a_proj x + dt_bias),   β_t = σ(b_proj x), per value head
    Tensor log_decay = ctx.tensor({value_heads_}), beta = ctx.tensor({value_heads_});
    auto [q, k, v, raw_q, raw_k, gate] = qkv_(
        ctx, x, state,
        {a_proj_.onto(ctx, log_decay, x, DeltaDecay{A_log_, dt_bias_}), b_proj_.onto(ctx, beta, x, Activate{Activation::sigmoid, {}})});
    if (head_gates_ && !head_gates_->gdn_decay) backend.fill(log_decay, 0);  // [A14], the literal SLA eq. 14
    if (beta_factor_ != 1) backend.add(beta, beta, beta);
    std::optional<HeadGates::Gates> G;
    if (head_gates_ && !head_gates_->phi_stage) G = (*head_gates_)(ctx, x, raw_q, raw_k);
    if (!qkv_.convolved()) {
      // Without convolutions plain silu; the gates above have seen q and k before it.
      for (const Tensor& z : {q, k, v}) backend.activate(z, z, Activation::silu);
    }
    if (head_gates_ && head_gates_->phi_stage) G = (*head_gates_)(ctx, x, q, k);
    // q̂ = L2(q), k̂ = L2(k); where nothing comes between, the memory does it
    for (const Tensor& z : {q, k}) {
      if (G) backend.l2_norm(z, z);
    }
    const Ungated ungated(ctx, G.has_value(), q, state.memory[0]);
    // SLA: the write gate scales the value target alone, the read gate q                                   (SLA eq. 14–16)
    Tensor read_gate;
    if (G) {
      backend.scale_heads(v, v, repeat_heads(ctx, G->k, value_heads_));
      read_gate = repeat_heads(ctx, G->q, value_heads_);
      if (!head_gates_->post_norm) backend.scale_heads(q, q, G->q);
    }

    // S̄ = α_t S_{t-1},   u_t = β_t (v_t − k̂_t S̄),   S_t = S̄ + k̂_tᵀ u_t,   o_t = K^{-1/2} q̂_t S_t
    const GatedDeltaRule memory{.q = q, .k = k, .v = v, .log_decay = log_decay, .beta = beta, .scale = inverse_sqrt(K_)};
    if (!G && Readout::before_is_memorys(ctx)) {
      const Tensor read = remember(ctx, memory, state.memory[0], true, readout_.before(gate));
      return readout_.project(ctx, read, y);
    }
    const Tensor o = remember(ctx, memory, state.memory[0], !G);
    if (ctx.state_only) return;
    readout_(ctx, o, gate, y, G && head_gates_->post_norm ? read_gate : Tensor{});
    ungated.emit_effect(ctx, memory, readout_, gate, y);
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

// RetNet: multi-scale retention, and softmax linear attention (SLA) on it (spec §3.3, §6).
#include <cmath>

#include "engine/mixers/parts.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

class RetNet final : public Mixer {
 public:
  explicit RetNet(const MixerBuild& build) {
    const Config& config = build.config;
    const WeightScope& weights = build.weights;
    const std::int64_t hidden = config.integer("hidden_size");
    qkv_ = QkvProjection(build, 8, 1.0, 2.0, config.boolean("use_output_gate", true));
    heads_ = qkv_.q_heads;
    kv_heads_ = qkv_.k_heads;
    K_ = qkv_.K;
    require_pairs(K_, "key dim per head");
    // The reference's layer never builds convolutions from its config: the tensors decide.
    if (weights.has("q_conv1d.weight")) qkv_.load_convolutions(weights, 4);
    phi_ = activation_named(config, "feature_map", "identity", {"relu", "sigmoid", "silu", "swish"});
    head_gates_ = HeadGates::load(build, qkv_, hidden);
    readout_ = gated_readout(build, qkv_.V, qkv_.value_dim(), static_cast<bool>(qkv_.g_proj));
    // γ_h = 1 − 2^{−5−h}
    std::vector<float> log_gamma(static_cast<std::size_t>(heads_));
    for (std::int64_t h = 0; h < heads_; ++h) {
      log_gamma[static_cast<std::size_t>(h)] = static_cast<float>(std::log1p(-std::exp2(-5.0 - static_cast<double>(h))));
    }
    log_gamma_ = weights.constant(log_gamma);
  }

  MixerLayout layout() const override {
    MixerLayout layout = decaying_state(heads_, K_, qkv_.V, qkv_.cache_shapes());
    layout.head_gates = head_gates_.has_value();
    if (head_gates_) layout.recurrence = "S_t = γ S_{t−1} + G^K_t k_tᵀ v_t (SLA eq. 10)";
    return layout;
  }

  void describe(Program& p) const override {
    const Value x = p.x();
    auto [q, k, v, raw_q, raw_k, gate] = qkv_(p, x);
    std::optional<HeadGates::Gates> G;
    if (head_gates_ && !head_gates_->phi_stage) G = (*head_gates_)(p, x, raw_q, raw_k);
    // q = RoPE(φ(q)), k = RoPE(φ(k)), base 10000 on all K channels
    if (phi_ != Activation::identity) {
      q = p.apply(phi_, q);
      k = p.apply(phi_, k);
    }
    if (head_gates_ && head_gates_->phi_stage) G = (*head_gates_)(p, x, q, k);
    q = p.apply(program::Rope{10000.0, K_}, q);
    k = p.apply(program::Rope{10000.0, K_}, k);
    // SLA: k̃ = G^K k, q̃ = G^Q q                                                                  (SLA eq. 10, 11)
    const Value ungated = q;
    if (G) {
      k = p.combine(program::ScaleHeads{}, k, G->k);
      if (!head_gates_->post_norm) q = p.combine(program::ScaleHeads{}, q, G->q);
    }

    // S_t = γ_h S_{t-1} + k_tᵀ v_t,   o_t = K^{-1/2} q_t S_t
    const Value log_decay = p.constant(log_gamma_, {heads_});
    const program::OuterProduct memory{.q = q, .k = k, .v = v, .log_decay = log_decay, .scale = inverse_sqrt(K_)};
    p.result = gated_output(p, memory, heads_, qkv_.V, readout_, gate, head_gates_, G, ungated);
  }

 private:
  QkvProjection qkv_;
  std::int64_t heads_, kv_heads_, K_;
  Activation phi_;
  std::optional<HeadGates> head_gates_;
  ConstTensor log_gamma_;
  Readout readout_;
};

}  // namespace

std::unique_ptr<Mixer> make_retnet(const MixerBuild& build) { return std::make_unique<RetNet>(build); }

}  // namespace statescope

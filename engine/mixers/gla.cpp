// Gated linear attention, with the row-sparse update (SSE eq. 7, 8) and softmax linear attention (SLA) as options (spec §3.4, §5, §6).
#include <fmt/format.h>

#include <limits>

#include "engine/error.h"
#include "engine/mixers/parts.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

class Gla final : public Mixer {
 public:
  explicit Gla(const MixerBuild& build) {
    const Config& config = build.config;
    const WeightScope& weights = build.weights;
    const std::int64_t hidden = config.integer("hidden_size");
    qkv_ = QkvProjection(build, 4, 0.5, 1.0, config.boolean("use_output_gate", true));
    heads_ = qkv_.q_heads;
    kv_heads_ = qkv_.k_heads;
    K_ = qkv_.K;
    gk_proj_ = LowRank(weights, "gk_proj", kv_heads_ * K_, hidden, ToldSize(config, "gate_low_rank_dim", 16), true);
    normalizer_ = static_cast<float>(config.positive("gate_logit_normalizer", 16));
    clamp_min_ = static_cast<float>(config.number("clamp_min", -std::numeric_limits<double>::infinity(), true));
    if (clamp_min_ > 0) throw Error(fmt::format("config: \"clamp_min\" is {}, but no log decay is above 0", clamp_min_));
    if (config.boolean("use_short_conv", false)) qkv_.load_convolutions(weights, {config, "conv_size", 4});
    phi_ = activation_named(config, "feature_map", "identity", {"relu", "sigmoid", "silu", "swish"});
    const Config row_sparse = config.object("row_sparse");
    if (config.has("row_sparse")) row_topk_ = row_sparse.integer("topk", {}, 1, K_);
    skip_decay_ = row_sparse.boolean("skip_decay", true);
    head_gates_ = HeadGates::load(build, qkv_, hidden);
    readout_ = gated_readout(build, qkv_.V, qkv_.value_dim(), static_cast<bool>(qkv_.g_proj));
  }

  MixerLayout layout() const override {
    MixerLayout layout = decaying_state(heads_, K_, qkv_.V, qkv_.cache_shapes());
    layout.head_gates = head_gates_.has_value();
    if (head_gates_) layout.recurrence = "S_t = diag(α_t) S_{t−1} + G^K_t k_tᵀ v_t (SLA eq. 12)";
    return layout;
  }

  void describe(Program& p) const override {
    const Value x = p.x();
    // log α_t = logσ(gk_proj x) / 16 per key channel
    Value log_decay = p.apply(ForgetGate{normalizer_, clamp_min_}, gk_proj_(p, x, ValueType::exact));
    log_decay = p.with_axes(log_decay, {kv_heads_, K_});
    auto [q, k, v, raw_q, raw_k, gate] = qkv_(p, x);
    std::optional<HeadGates::Gates> G;
    if (head_gates_ && !head_gates_->phi_stage) G = (*head_gates_)(p, x, raw_q, raw_k);
    if (phi_ != Activation::identity) {
      q = p.apply(phi_, q);
      k = p.apply(phi_, k);
    }
    // k_r = exp(z_r) / Σ_{j∈R} exp(z_j) for the top-k rows R, else 0 and no decay                           (SSE eq. 7, 8; [A10])
    if (row_topk_ > 0) std::tie(k, log_decay) = p.row_sparse(k, log_decay, row_topk_, skip_decay_);
    if (head_gates_ && head_gates_->phi_stage) G = (*head_gates_)(p, x, q, k);
    // SLA: k̃ = G^K k, q̃ = G^Q q                                                                            (SLA eq. 12, 13)
    const Value ungated = q;
    if (G) {
      k = p.combine(program::ScaleHeads{}, k, G->k);
      if (!head_gates_->post_norm) q = p.combine(program::ScaleHeads{}, q, G->q);
    }

    // S_t = diag(α_t) S_{t-1} + k_tᵀ v_t,   o_t = K^{-1/2} q_t S_t
    const program::OuterProduct memory{.q = q, .k = k, .v = v, .log_decay = log_decay, .scale = inverse_sqrt(K_)};
    p.result = gated_output(p, memory, heads_, qkv_.V, readout_, gate, head_gates_, G, ungated);
  }

 private:
  QkvProjection qkv_;
  std::int64_t heads_, kv_heads_, K_, row_topk_ = 0;
  bool skip_decay_;
  LowRank gk_proj_;
  float normalizer_, clamp_min_;
  Activation phi_;
  std::optional<HeadGates> head_gates_;
  Readout readout_;
};

}  // namespace

std::unique_ptr<Mixer> make_gla(const MixerBuild& build) { return std::make_unique<Gla>(build); }

}  // namespace statescope

// Vanilla linear attention with its feature maps (spec §3.2), Performer's among them (spec §17.16).
#include "engine/mixers/feature_map.h"
#include "engine/mixers/parts.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

class LinearAttention final : public Mixer {
 public:
  explicit LinearAttention(const MixerBuild& build) {
    const Config& config = build.config;
    qkv_ = QkvProjection(build, 4, 1.0, 1.0);
    heads_ = qkv_.q_heads;
    kv_heads_ = qkv_.k_heads;
    const std::string kind = config.text("feature_map", "elementwise_product",
                                         {"identity", "relu", "elu", "elementwise_product", "t2r", "hedgehog", "dpfp", "performer"});
    phi_q_ = FeatureMap(build, kind, "feature_map_q", qkv_.K);
    // Tied maps are one tensor under two names; safetensors may keep only the first.
    phi_k_ = FeatureMap(build, kind, config.boolean("tie_feature_map_qk", false) ? "feature_map_q" : "feature_map_k", qkv_.K);
    norm_q_ = config.boolean("norm_q", false);
    norm_k_ = config.boolean("norm_k", false);
    normalised_ = config.boolean("norm_feature_map", false);
    scale_ = kind == "performer" ? 1 : inverse_sqrt(phi_q_.features());
    readout_ = normed_readout(build, "norm.weight", qkv_.V, qkv_.value_dim());
  }

  MixerLayout layout() const override {
    const std::int64_t F = phi_q_.features();
    MixerLayout layout = single_state(heads_, F, qkv_.V);
    if (normalised_) layout.memory.push_back({"z", {1, heads_, F, 1}});
    return layout;
  }

  void describe(Program& p) const override {
    // q = φ(x W_q), k = φ(x W_k), each divided by Σ + 1e-4 where asked
    auto [q, k, v, raw_q, raw_k, gate] = qkv_(p, p.x());
    q = phi_q_(p, q);
    k = phi_k_(p, k);
    if (norm_q_) q = p.apply(program::SumNorm{1e-4f}, q);
    if (norm_k_) k = p.apply(program::SumNorm{1e-4f}, k);

    // S_t = S_{t-1} + φ(k_t)ᵀ v_t,   o_t = F^{-1/2} φ(q_t) S_t; Performer's φ has that factor in it
    Value o = remember(p, program::OuterProduct{.q = q, .k = k, .v = v, .scale = scale_}, heads_, qkv_.V);
    if (normalised_) {
      // z_t = z_{t-1} + φ(k_t),   o_t /= F^{-1/2} φ(q_t)·z_t + 1e-10: the same memory with a column of ones for v
      const program::OuterProduct sums{.q = q, .k = k, .v = p.fill(1, {kv_heads_, 1}), .scale = scale_, .state = {1, {}}};
      const Value denominator = p.with_axes(p.remember(sums, heads_, 1, ValueType::exact), {heads_});
      o = p.combine(program::DivideHeads{1e-10f}, o, denominator);
    }
    p.result = readout_(p, o);
  }

 private:
  QkvProjection qkv_;
  std::int64_t heads_, kv_heads_;
  FeatureMap phi_q_, phi_k_;
  bool norm_q_, norm_k_, normalised_;
  float scale_;
  Readout readout_;
};

}  // namespace

std::unique_ptr<Mixer> make_linear_attention(const MixerBuild& build) { return std::make_unique<LinearAttention>(build); }

}  // namespace statescope

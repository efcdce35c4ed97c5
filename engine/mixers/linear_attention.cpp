// Vanilla linear attention with its feature maps (spec §3.2).
#include <fmt/format.h>

#include "engine/error.h"
#include "engine/mixers/parts.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

/// φ, per head: K channels in, `features(K)` out.
class FeatureMap {
 public:
  FeatureMap() = default;
  FeatureMap(const WeightScope& weights, std::string_view kind, std::string_view name, std::int64_t head_dim)
      : kind_(kind), head_dim_(head_dim) {
    if (kind_ == "elementwise_product") {
      first_ = Linear(weights, fmt::format("{}.layer1", name), head_dim, head_dim, true);
      second_ = Linear(weights, fmt::format("{}.layer2", name), head_dim, head_dim, true);
    } else if (kind_ == "hedgehog" || kind_ == "t2r") {
      first_ = Linear(weights, fmt::format("{}.layer", name), head_dim, head_dim, kind_ == "hedgehog");
    }
  }

  std::int64_t features() const { return kind_ == "hedgehog" ? 2 * head_dim_ : kind_ == "dpfp" ? 8 * head_dim_ : head_dim_; }

  /// x [T, H, K] → [T, H, F]
  Tensor operator()(Context& ctx, Tensor x) const {
    const std::int64_t heads = x.shape[1], rows = ctx.tokens * heads;
    Backend& backend = ctx.backend;
    if (kind_ == "identity") return x;
    if (kind_ == "relu") return backend.activate(x, x, Activation::relu), x;
    if (kind_ == "elu") return backend.activate(x, x, Activation::elu_plus_one), x;
    const Tensor flat = head_rows(ctx, x), out = ctx.workspace.tensor({rows, features()}, x.dtype);
    if (kind_ == "elementwise_product") {
      // φ(x) = (A₁x + b₁) ⊙ (A₂x + b₂)
      backend.gate(out, first_.exact(ctx, flat), second_.exact(ctx, flat), Activation::identity);
    } else if (kind_ == "t2r") {
      // φ(x) = relu(Ax)
      first_.into(ctx, out, flat);
      backend.activate(out, out, Activation::relu);
    } else if (kind_ == "hedgehog") {
      // φ(x) = softmax([y, −y]), y = 2(Ax + b)
      Tensor y = first_(ctx, flat), zero = ctx.workspace.tensor({rows, head_dim_});
      backend.fill(zero, 0);
      backend.add(out.columns(0, {head_dim_}), zero, y, 2);
      backend.add(out.columns(head_dim_, {head_dim_}), zero, y, -2);
      backend.softmax(out, out);
    } else {
      dpfp(ctx, out, flat);
    }
    return {out.data, out.dtype, {ctx.tokens, heads, features()}};
  }

 private:
  /// z = [relu(x), relu(−x)]; φ(x) = concat_j z ⊙ roll(z, j), j = 1 … 4
  void dpfp(Context& ctx, Tensor out, ConstTensor x) const {
    const std::int64_t n = 2 * head_dim_;
    Tensor z = ctx.workspace.tensor({x.rows(), n});
    const Tensor positive = z.columns(0, {head_dim_}), negative = z.columns(head_dim_, {head_dim_});
    ctx.backend.activate(positive, x, Activation::relu);
    ctx.backend.add(negative, positive, x, -1);  // relu(−x) = relu(x) − x
    for (std::int64_t j = 1; j <= 4; ++j) {
      Tensor part = out.columns((j - 1) * n, {n});
      // roll(z, j) moves entry i to i + j: the last j entries come first
      ctx.backend.copy(part.columns(0, {j}), z.columns(n - j, {j}));
      ctx.backend.copy(part.columns(j, {n - j}), z.columns(0, {n - j}));
      ctx.backend.gate(part, part, z, Activation::identity);
    }
  }

  std::string kind_;
  std::int64_t head_dim_ = 0;
  Linear first_, second_;
};

class LinearAttention final : public Mixer {
 public:
  explicit LinearAttention(const MixerBuild& build) {
    const Config& config = build.config;
    qkv_ = QkvProjection(build, 4, 1.0, 1.0);
    heads_ = qkv_.q_heads;
    kv_heads_ = qkv_.k_heads;
    const std::string kind =
        config.text("feature_map", "elementwise_product", {"identity", "relu", "elu", "elementwise_product", "t2r", "hedgehog", "dpfp"});
    phi_q_ = FeatureMap(build.weights, kind, "feature_map_q", qkv_.K);
    // Tied maps are one tensor under two names; safetensors may keep only the first.
    phi_k_ = FeatureMap(build.weights, kind, config.boolean("tie_feature_map_qk", false) ? "feature_map_q" : "feature_map_k", qkv_.K);
    norm_q_ = config.boolean("norm_q", false);
    norm_k_ = config.boolean("norm_k", false);
    normalised_ = config.boolean("norm_feature_map", false);
    readout_ = normed_readout(build, "norm.weight", qkv_.V, qkv_.value_dim());
  }

  MixerLayout layout() const override {
    const std::int64_t F = phi_q_.features();
    MixerLayout layout = single_state(heads_, F, qkv_.V);
    if (normalised_) layout.memory.push_back({"z", {1, heads_, F, 1}});
    return layout;
  }

  void forward(Context& ctx, ConstTensor x, MixerState& state, Tensor y) const override {
    Backend& backend = ctx.backend;
    // q = φ(x W_q), k = φ(x W_k), each divided by Σ + 1e-4 where asked
    Tensor q = phi_q_(ctx, qkv_.q_proj(ctx, x).with_row({heads_, qkv_.K})),
           k = phi_k_(ctx, qkv_.k_proj(ctx, x).with_row({kv_heads_, qkv_.K}));
    const Tensor v = qkv_.v_proj(ctx, x).with_row({kv_heads_, qkv_.V});
    if (norm_q_) backend.sum_norm(q, q, 1e-4f);
    if (norm_k_) backend.sum_norm(k, k, 1e-4f);

    // S_t = S_{t-1} + φ(k_t)ᵀ v_t,   o_t = F^{-1/2} φ(q_t) S_t
    const float scale = inverse_sqrt(phi_q_.features());
    Tensor o = remember(ctx, DecayedOuterProduct{.q = q, .k = k, .v = v, .scale = scale}, state.memory[0]);
    if (normalised_) normalise(ctx, q, k, scale, state.memory[1], o);
    if (ctx.state_only) return;
    readout_(ctx, o, {}, y);
  }

 private:
  /// z_t = z_{t-1} + φ(k_t),   o_t /= F^{-1/2} φ(q_t)·z_t + 1e-10: the same memory with a column of ones for v
  void normalise(Context& ctx, ConstTensor q, ConstTensor k, float scale, Tensor z, Tensor o) const {
    Tensor ones = ctx.tensor({kv_heads_, 1}), denominator = ctx.tensor({heads_, 1});
    ctx.backend.fill(ones, 1);
    ctx.backend.decayed_outer_product(
        {.q = q, .k = k, .v = ones, .scale = scale, .segments = ctx.one_segment(), .initial_state = z, .final_state = z, .o = denominator},
        ctx.chunk_size);
    ctx.backend.divide_heads(o, o, denominator.with_row({heads_}), 1e-10f);
  }

  QkvProjection qkv_;
  std::int64_t heads_, kv_heads_;
  FeatureMap phi_q_, phi_k_;
  bool norm_q_, norm_k_, normalised_;
  Readout readout_;
};

}  // namespace

std::unique_ptr<Mixer> make_linear_attention(const MixerBuild& build) { return std::make_unique<LinearAttention>(build); }

}  // namespace statescope

#include "engine/model/channel_mix.h"

namespace statescope {
namespace {

class ChannelMix final : public Ffn {
 public:
  ChannelMix(const WeightScope& weights, std::int64_t hidden, const ChannelMixPlan& plan)
      : hidden_(hidden), shift_(token_shift(weights, hidden)) {
    key_mu_ = weights.floats(plan.receptance ? "key.mu" : "x_k", {hidden});
    key_ = Linear(weights, plan.receptance ? "key.linear" : "key", plan.width, hidden);
    value_ = Linear(weights, "value", hidden, plan.width);
    if (!plan.receptance) return;
    receptance_mu_ = weights.floats("receptance.mu", {hidden});
    receptance_ = Linear(weights, "receptance.linear", hidden, hidden);
  }

  std::vector<Shape> cache_shapes() const override { return {shift_.cache_shape()}; }

  void forward(Context& ctx, ConstTensor x, Tensor y, std::span<const Tensor> caches) const override {
    Backend& backend = ctx.backend;
    const Workspace::Mark mark(ctx.workspace);
    // δ_t = x_{t−1} − x_t
    const Tensor delta = ctx.activation({hidden_}), mixed = ctx.activation({hidden_});
    backend.short_convolution({.x = x,
                               .weight = shift_.weight,
                               .bias = {},
                               .segments = {ctx.cu_seqlens(), {}},
                               .initial_cache = caches[0],
                               .final_cache = caches[0],
                               .y = delta});
    // x + δ ⊙ μ
    const auto mix = [&](ConstTensor mu) {
      backend.gate(mixed, delta, {mu.data, DType::f32, delta.shape, 0}, Activation::identity);
      backend.add(mixed, x, mixed);
    };
    // y = value( relu(key(x + δ ⊙ μ_k))² ), of RWKV-6 times σ(receptance(x + δ ⊙ μ_r))
    mix(key_mu_);
    const Tensor h = key_(ctx, mixed);
    backend.gate(h, h, h, Activation::relu);
    value_.into(ctx, y, h);
    if (!receptance_) return;
    mix(receptance_mu_);
    backend.gate(y, y, receptance_(ctx, mixed), Activation::sigmoid);
  }

  void keep(Context& ctx, ConstTensor last, std::span<const Tensor> caches) const override {
    ctx.backend.copy(Tensor(caches[0].data, DType::f32, {1, hidden_}), last);
  }

 private:
  std::int64_t hidden_;
  Conv shift_;
  ConstTensor key_mu_, receptance_mu_;
  Linear key_, value_, receptance_;
};

}  // namespace

std::unique_ptr<Ffn> make_channel_mix(const WeightScope& weights, std::int64_t hidden, const ChannelMixPlan& plan) {
  return std::make_unique<ChannelMix>(weights, hidden, plan);
}

}  // namespace statescope

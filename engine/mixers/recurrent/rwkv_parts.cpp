#include "engine/mixers/recurrent/rwkv_parts.h"

#include <fmt/format.h>

namespace statescope {

Lora::Lora(const WeightScope& weights, std::string_view name, std::int64_t out, std::int64_t in, ToldSize rank, Activation act_, bool bias)
    : act(act_) {
  const std::string first_name = fmt::format("{}.lora.0", name);
  first = Linear(weights, first_name, rank.of(weights, first_name + ".weight", 0), in);
  second = Linear(weights, fmt::format("{}.lora.2", name), out, first.out(), bias);
}

Value Lora::operator()(Program& p, Value x) const {
  const Value low = first(p, x, ValueType::exact);
  return second(p, act == Activation::identity ? low : p.apply(act, low), ValueType::exact);
}

Value shifted(Program& p, Value x, Value delta, Value mu) { return p.combine(program::Add{}, x, p.combine(program::Gate{}, delta, mu)); }

program::LayerNorm head_norm(const MixerBuild& build, std::string_view name, std::int64_t heads, std::int64_t V, float eps) {
  const std::int64_t width = heads * V;
  return {.weight = build.weights.floats(fmt::format("{}.weight", name), {width}),
          .bias = build.weights.floats(fmt::format("{}.bias", name), {width}),
          .group = V,
          .eps = eps};
}

Present::Present(const WeightScope& weights, std::string_view name, std::int64_t heads, std::int64_t K)
    : u(weights.floats(name, {heads, K})),
      ones(weights.constant(std::vector<float>(static_cast<std::size_t>(K), 1)).data, DType::f32, {1, K}) {}

Value Present::operator()(Program& p, Value q, Value k, Value v) const {
  const Value product = p.combine(program::Gate{}, p.combine(program::Gate{}, q, k), p.constant(u, {u.rows(), u.row_size()}));
  return p.combine(program::ScaleHeads{}, v, p.with_axes(p.linear_each_head(ones, {}, product), {u.rows()}));
}

}  // namespace statescope

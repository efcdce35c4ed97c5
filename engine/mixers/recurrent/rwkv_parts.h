// What RWKV-6 and RWKV-7 have in common (spec §17.10).
#pragma once

#include "engine/mixers/parts.h"

namespace statescope {

/// second(act(first x)): tensors `name`.lora.0 and `name`.lora.2, the rank is read from the shape.
struct Lora {
  Linear first, second;
  Activation act = Activation::identity;

  Lora() = default;
  Lora(const WeightScope& weights, std::string_view name, std::int64_t out, std::int64_t in, ToldSize rank, Activation act_, bool bias);
  explicit operator bool() const { return static_cast<bool>(second); }
  Value operator()(Program& p, Value x) const;
};

/// x + δ ⊙ μ
Value shifted(Program& p, Value x, Value delta, Value mu);

/// A norm of each head by itself, with the mean taken away: tensors `name`.weight and `name`.bias, of all heads.
program::LayerNorm head_norm(const MixerBuild& build, std::string_view name, std::int64_t heads, std::int64_t V, float eps);

/// (Σ_r q_r u_r k_r) v of each head: what the present token adds to its own reading, past the memory.
struct Present {
  ConstTensor u, ones;  // [H, K], [1, K]

  Present() = default;
  Present(const WeightScope& weights, std::string_view name, std::int64_t heads, std::int64_t K);
  Value operator()(Program& p, Value q, Value k, Value v) const;
};

}  // namespace statescope

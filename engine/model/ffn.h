// What stands between mixers: the SwiGLU MLP (spec §1.4) and the expert layers of Qwen3-Next (spec §8.1).
#pragma once

#include <memory>

#include "engine/mixers/parts.h"

namespace statescope {

class Ffn {
 public:
  virtual ~Ffn() = default;
  /// As a mixer's.
  virtual bool folds_norm() const { return false; }
  /// y [T, D] = f(x [T, D], already normalised).
  virtual void forward(Context& ctx, ConstTensor x, Tensor y) const = 0;
};

/// y = (silu(x · gateᵀ) ⊙ (x · upᵀ)) · downᵀ, tensors gate_proj, up_proj, down_proj.
std::unique_ptr<Ffn> make_swiglu(const WeightScope& weights, std::int64_t hidden, std::int64_t intermediate);

/// Σ_e w_e · SwiGLU_e(x) + σ(shared_expert_gate · x) · SwiGLU_shared(x): separate or packed experts.
std::unique_ptr<Ffn> make_experts(const WeightScope& weights, const Config& config);

}  // namespace statescope

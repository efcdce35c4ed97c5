// Activations as the CUDA kernels compute them.
#pragma once

#include "kernels/cuda/common/numbers.h"
#include "kernels/ops/elementwise.h"

namespace statescope::cuda {

/// σ(x) = 1 / (1 + e^{−x}), 0 where e^{−x} overflows. Two instructions of the unit for special functions, without care for numbers below
/// the normal ones.
inline __device__ float sigmoid(float x) {
  constexpr float log2_e = 1.4426950408889634F;
  float power, inverse;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(-log2_e * x));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(1 + power));
  return inverse;
}
inline __device__ float silu(float x) { return x * sigmoid(x); }

inline __device__ float activated(float x, Activation act) {
  switch (act) {
    case Activation::silu:
      return silu(x);
    case Activation::relu:
      return x < 0 ? 0 : x;
    case Activation::sigmoid:
      return sigmoid(x);
    case Activation::elu_plus_one:
      return x > 0 ? x + 1 : expf(x);
    case Activation::exp:
      return expf(x);
    case Activation::log_one_minus:
      return log1pf(-(x > 1 - 0x1p-24F ? 1 - 0x1p-24F : x));
    case Activation::tanh:
      return tanhf(x);
    case Activation::gelu:
      return 0.5F * x * erfcf(-0.70710678F * x);
    default:
      return x;
  }
}

/// Of adjacent values: one branch for all of them.
template <int Width>
__device__ Pack<Width> activated(Pack<Width> x, Activation act) {
  const auto each = [&](auto fn) {
#pragma unroll
    for (int i = 0; i < Width; ++i) x.at[i] = fn(x.at[i]);
    return x;
  };
  switch (act) {
    case Activation::silu:
      return each([](float z) { return silu(z); });
    case Activation::relu:
      return each([](float z) { return activated(z, Activation::relu); });
    case Activation::sigmoid:
      return each([](float z) { return sigmoid(z); });
    case Activation::elu_plus_one:
      return each([](float z) { return activated(z, Activation::elu_plus_one); });
    case Activation::exp:
      return each([](float z) { return activated(z, Activation::exp); });
    case Activation::log_one_minus:
      return each([](float z) { return activated(z, Activation::log_one_minus); });
    case Activation::tanh:
      return each([](float z) { return activated(z, Activation::tanh); });
    case Activation::gelu:
      return each([](float z) { return activated(z, Activation::gelu); });
    default:
      return x;
  }
}

/// The same with one exponential for all usual activations, and no branch among them: less code.
inline __device__ float activated_by_one(float x, Activation act) {
  if (act > Activation::elu_plus_one) return activated(x, act);
  const float e = expf(-fabsf(x)), sigma = __fdividef(x < 0 ? e : 1, 1 + e);
  const float y = act == Activation::silu ? x * sigma : act == Activation::sigmoid ? sigma : x;
  if (act == Activation::elu_plus_one) return x > 0 ? x + 1 : e;
  return act == Activation::relu && x < 0 ? 0 : y;
}

/// ln(1 + e) for e in [0, 1], to 1e-5 of it: a series where 1 + e would lose what e is.
inline __device__ float log_of_one_plus(float e) {
  constexpr float small = 1.0F / 64;
  return e < small ? e * (1 - e * (1.0F / 2 - e * (1.0F / 3))) : __logf(1 + e);
}

/// softplus(x) = ln(1 + e^x) = max(x, 0) + ln(1 + e^{−|x|})
inline __device__ float softplus(float x) { return (x < 0 ? 0 : x) + log_of_one_plus(__expf(-fabsf(x))); }

/// max(logσ(x) · scale, clamp_min), logσ(x) = −softplus(−x); compared so that a NaN stays one
inline __device__ float log_sigmoid_decay(float x, float scale, float clamp_min) {
  const float y = -softplus(-x) * scale;
  return y < clamp_min ? clamp_min : y;
}

/// −exp(A_log) · softplus(a + dt_bias)
inline __device__ float gated_delta_decay(float a, float A_log, float dt_bias) { return -expf(A_log) * softplus(a + dt_bias); }

}  // namespace statescope::cuda

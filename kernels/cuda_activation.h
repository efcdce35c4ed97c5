// Activations as the CUDA kernels compute them.
#pragma once

#include "kernels/cuda.h"
#include "kernels/elementwise.h"

namespace statescope::cuda {

/// σ(x) from e^{−|x|}, which cannot overflow; a quotient of numbers between 0 and 2 needs none of the care of a division.
inline __device__ float sigmoid(float x) {
  const float e = expf(-fabsf(x));
  return __fdividef(x < 0 ? e : 1, 1 + e);
}

inline __device__ float activated(float x, Activation act) {
  switch (act) {
    case Activation::silu:
      return x * sigmoid(x);
    case Activation::relu:
      return x < 0 ? 0 : x;
    case Activation::sigmoid:
      return sigmoid(x);
    case Activation::elu_plus_one:
      return x > 0 ? x + 1 : expf(x);
    default:
      return x;
  }
}

/// The same with one exponential for all of them, and no branch: less code.
inline __device__ float activated_by_one(float x, Activation act) {
  const float e = expf(-fabsf(x)), sigma = __fdividef(x < 0 ? e : 1, 1 + e);
  const float y = act == Activation::silu ? x * sigma : act == Activation::sigmoid ? sigma : x;
  if (act == Activation::elu_plus_one) return x > 0 ? x + 1 : e;
  return act == Activation::relu && x < 0 ? 0 : y;
}

/// softplus(x) = ln(1 + e^x) = max(x, 0) + ln(1 + e^{−|x|})
inline __device__ float softplus(float x) { return (x < 0 ? 0 : x) + log1pf(expf(-fabsf(x))); }

/// max(logσ(x) · scale, clamp_min), logσ(x) = −softplus(−x); compared so that a NaN stays one
inline __device__ float log_sigmoid_decay(float x, float scale, float clamp_min) {
  const float y = -softplus(-x) * scale;
  return y < clamp_min ? clamp_min : y;
}

/// −exp(A_log) · softplus(a + dt_bias)
inline __device__ float gated_delta_decay(float a, float A_log, float dt_bias) { return -expf(A_log) * softplus(a + dt_bias); }

}  // namespace statescope::cuda

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

}  // namespace statescope::cuda

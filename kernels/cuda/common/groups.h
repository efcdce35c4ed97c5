// Norms and softmax over groups of numbers.
#pragma once

#include "kernels/cuda/common/activation.h"
#include "kernels/cuda/common/numbers.h"

namespace statescope::cuda {

/// y = x · (Σ x² / divisor + eps)^{−1/2} ⊙ (weight + offset), where there is a weight.
struct InverseRoot {
  float divisor, eps;
  const float* weight;
  float offset;
  __device__ float term(float x) const { return x * x; }
  __device__ float factor(float sum) const { return 1 / sqrtf(sum / divisor + eps); }
  __device__ float value(float x, std::int64_t i, float factor) const {
    return weight != nullptr ? x * factor * (weight[i] + offset) : x * factor;
  }
};

/// The gate that multiplies the result of a norm: act(gate).
template <template <class> class Rows>
struct OutputGate {
  Rows<const void> rows;  // absent: 1
  Activation act = Activation::identity;
  template <int Width>
  __device__ Pack<Width> factors(std::int64_t t, std::int64_t i) const {
    return activated(rows.template load<Width>(t, i), act);
  }
};

template <int Width, class Combine>
__device__ Pack<Width> each(Pack<Width> a, const Pack<Width>& b, Combine combine) {
#pragma unroll
  for (int j = 0; j < Width; ++j) a.at[j] = combine(a.at[j], b.at[j]);
  return a;
}

struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};

struct Times {
  __device__ float operator()(float a, float b) const { return a * b; }
};

/// The larger number; a NaN loses.
struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// short_groups.cu: groups that threads keep in registers, read and written once. False, and nothing done, where a shape is not supported.

/// Groups of 64, 128, 256 or 512 numbers of bf16 rows, or whole float32 rows into bf16 ones.
bool normalise_short_groups(const char* name, Tensor y, ConstTensor x, std::int64_t n, const InverseRoot& norm, ConstTensor gate,
                            Activation act, cudaStream_t stream);
/// bf16 rows; groups as above.
bool softmax_short_groups(Tensor y, ConstTensor x, std::int64_t n, float temperature, cudaStream_t stream);
/// pair[:, 0] = softmax(shared), pair[:, 1] = softmax(sparse + more) over groups of n.
bool softmax_pair_short_groups(Tensor pair, ConstTensor shared, ConstTensor sparse, ConstTensor more, std::int64_t n, cudaStream_t stream);

}  // namespace statescope::cuda

// Reductions over a warp and over a block. Included by .cu files alone.
#pragma once

namespace statescope::cuda {

/// Combines x of all lanes of a warp; every lane gets the result.
template <class Number, class Combine>
__device__ Number combined(Number x, Combine combine) {
  constexpr int warp_size = 32;
#pragma unroll
  for (int offset = warp_size / 2; offset > 0; offset /= 2) x = combine(x, __shfl_xor_sync(~0U, x, offset));
  return x;
}
/// The sum.
template <class Number>
__device__ Number sum_of_warp(Number x) {
  return combined(x, [](Number a, Number b) { return a + b; });
}

/// Combines x of the `Threads` threads that own a group (a warp, or a whole block); all of them get the result.
template <unsigned Threads, class Combine>
__device__ float combined(float x, Combine combine) {
  constexpr int warp_size = 32;
  x = combined(x, combine);
  if constexpr (Threads > warp_size) {
    __shared__ float parts[Threads / warp_size];
    if (threadIdx.x % warp_size == 0) parts[threadIdx.x / warp_size] = x;
    __syncthreads();
    x = parts[0];
    for (unsigned warp = 1; warp < Threads / warp_size; ++warp) x = combine(x, parts[warp]);
    __syncthreads();  // before the next call writes to parts
  }
  return x;
}

}  // namespace statescope::cuda

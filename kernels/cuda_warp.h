// What the lanes of a warp put together. Included by .cu files alone.
#pragma once

namespace statescope::cuda {

/// x of all lanes of a warp put together, in every lane.
template <class Number, class Combine>
__device__ Number combined(Number x, Combine combine) {
  constexpr int warp_size = 32;
#pragma unroll
  for (int offset = warp_size / 2; offset > 0; offset /= 2) x = combine(x, __shfl_xor_sync(~0U, x, offset));
  return x;
}
/// Its sum.
template <class Number>
__device__ Number sum_of_warp(Number x) {
  return combined(x, [](Number a, Number b) { return a + b; });
}

}  // namespace statescope::cuda

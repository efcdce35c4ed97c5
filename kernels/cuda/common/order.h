// Scores in an order without ties. Included by .cu files alone.
#pragma once

#include <cstdint>

#include "kernels/cuda/common/warp.h"

namespace statescope::cuda {

/// A number for score n of a row: the larger, the earlier its place. No two of a row are equal and none is 0 or `before_all`.
using Order = unsigned long long;
constexpr Order before_all = ~Order{0};

/// The upper half grows with the score (a NaN: 0, +0 and −0 alike), the lower half falls with n: ties go to the lowest index.
inline __device__ Order order_of(float score, std::uint32_t n) {
  const std::uint32_t bits = __float_as_uint(score + 0.0F), sign = 0x80000000U;
  const std::uint32_t size = isnan(score) ? 0 : (bits & sign) != 0 ? ~bits : bits | sign;
  return (Order{size} << 32) | ~n;
}

inline __device__ std::int32_t index_of(Order order) { return static_cast<std::int32_t>(~static_cast<std::uint32_t>(order)); }

/// By one warp: the first in order after `last` among scores [N].
inline __device__ Order next_in_order(const float* score, std::uint32_t N, std::uint32_t lane, Order last) {
  constexpr std::uint32_t warp_size = 32;
  Order next = 0;
  for (std::uint32_t n = lane; n < N; n += warp_size) {
    const Order order = order_of(score[n], n);
    if (order < last && order > next) next = order;
  }
  return combined(next, [](Order a, Order b) { return a > b ? a : b; });
}

}  // namespace statescope::cuda

// Softmax attention of a few tokens whose heads read the same keys: all heads of a key are multiplied with it at once, so that it is read
// from memory once. Only for softmax_attention.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/ops/memory_parts.h"
#include "kernels/ops/softmax_attention.h"

namespace statescope {

/// Whether this form is the faster one: many heads of a key, which all see the same, and few tokens.
bool shares_keys(const SoftmaxAttention& op);

/// softmax_attention.h of such operands, already checked.
void attend_with_shared_keys(const SoftmaxAttention& op);

/// The softmax of one query as it stands after some tiles of keys: o is Σ e^{score − peak} v, not yet divided by `total`.
struct RunningSoftmax {
  static constexpr float infinity = std::numeric_limits<float>::infinity();
  float peak = -infinity;
  float total = 0;

  /// score ← e^{score − peak} with a peak that has seen this tile too; o follows the peak.
  void add(float* score, std::int64_t n, float* o, std::int64_t V) {
    const float new_peak = std::max(peak, largest(score, n));
    if (new_peak == -infinity) return std::fill_n(score, n, 0.0F), void();
    if (new_peak > peak) {
      scale_row(o, std::exp(peak - new_peak), V);
      total *= std::exp(peak - new_peak);
      peak = new_peak;
    }
    total += exp_shifted(score, score, peak, n);
  }
};

}  // namespace statescope

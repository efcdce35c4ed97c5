#pragma once

#include <cstdint>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {

/// How well the tokens in [from, to) were predicted by those before them.
struct LossSeries {
  static constexpr Accuracy accuracy = kRecomputed;
  std::int64_t from = 0, to = 0;
  std::vector<float> loss;     // [n] −ln p of the token that stands there, nat; NaN for the run's first
  std::vector<float> entropy;  // [n] of the prediction after it, nat
};

struct LossSeriesQuestion {
  std::int64_t from = 0, to = 0;
  using Answer = LossSeries;
  bool operator==(const LossSeriesQuestion&) const = default;
};

}  // namespace statescope

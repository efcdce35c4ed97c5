#pragma once

#include <cstdint>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {

/// The same summary along the run.
struct RankSeries {
  static constexpr Accuracy accuracy = accurate_to(1e-4, "the value");
  static constexpr std::int64_t kMostTokens = 64;
  std::int64_t heads = 0;
  std::vector<std::int64_t> token;         // [n] evenly, the last one included
  std::vector<float> entropy, rank, norm;  // [n, H]
};

struct RankSeriesQuestion {
  std::int64_t layer = 0;
  using Answer = RankSeries;
  bool operator==(const RankSeriesQuestion&) const = default;
};

}  // namespace statescope

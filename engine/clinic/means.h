// Means of figures, some of which may not exist (NaN).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

namespace statescope {

inline double mean_of(std::span<const double> values) {
  return values.empty() ? std::numeric_limits<double>::quiet_NaN()
                        : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Of those that exist.
inline double mean_of_known(std::span<const double> values) {
  double sum = 0, count = 0;
  for (const double x : values) {
    if (std::isnan(x)) continue;
    sum += x;
    ++count;
  }
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

inline double median_of(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return values.size() % 2 == 1 ? *middle : std::midpoint(*std::max_element(values.begin(), middle), *middle);
}

}  // namespace statescope

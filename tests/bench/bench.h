// What the benchmarks share.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace statescope::bench {

/// Seconds of one call: the median of 15, after one that is not counted.
template <class Fn>
double median_seconds(const Fn& fn) {
  std::vector<double> seconds;
  for (int i = 0; i < 16; ++i) {
    const auto start = std::chrono::steady_clock::now();
    fn();
    if (i > 0) seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + 7, seconds.end());
  return seconds[7];
}

}  // namespace statescope::bench

// What the benchmarks share.
#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>
#include <vector>

namespace statescope::bench {

/// Of one call.
template <class Fn>
double seconds(const Fn& fn) {
  const auto start = std::chrono::steady_clock::now();
  fn();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Of one call, the CPU time of all threads of this program.
template <class Fn>
double cpu_seconds(const Fn& fn) {
  const auto used = [] {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = used();
  fn();
  return used() - start;
}

/// The value that `part` of all lie below; 0.5: the median.
inline double share(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<std::size_t>(part * static_cast<double>(values.size())))];
}

/// Seconds of one call: the median of 15, after one that is not counted.
template <class Fn>
double median_seconds(const Fn& fn) {
  seconds(fn);
  std::vector<double> all;
  for (int i = 0; i < 15; ++i) all.push_back(seconds(fn));
  return share(std::move(all), 0.5);
}

}  // namespace statescope::bench

#include "engine/analysis/interval.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace statescope {
namespace {

constexpr double z = 1.959963984540054;  // the normal distribution's 97.5 % quantile

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

Estimate wilson(double successes, std::int64_t n) {
  const auto N = static_cast<double>(n);
  const double p = successes / N;
  // (p + z²/2n ± z √(p(1−p)/n + z²/4n²)) / (1 + z²/n)
  const double centre = p + z * z / (2 * N), half = z * std::sqrt(p * (1 - p) / N + z * z / (4 * N * N)), scale = 1 + z * z / N;
  return {p, std::clamp((centre - half) / scale, 0.0, p), std::clamp((centre + half) / scale, p, 1.0)};
}

double standard_error(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const double mean = mean_of(values);
  double squares = 0;
  for (double value : values) squares += (value - mean) * (value - mean);
  const auto n = static_cast<double>(values.size());
  return std::sqrt(squares / (n - 1) / n);
}

Estimate clustered(std::span<const double> fractions) {
  const double mean = mean_of(fractions), half = z * standard_error(fractions);
  if (half == 0) return wilson(mean * static_cast<double>(fractions.size()), static_cast<std::int64_t>(fractions.size()));
  return {mean, std::max(0.0, mean - half), std::min(1.0, mean + half)};
}

}  // namespace statescope

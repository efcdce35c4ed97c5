#include "engine/analysis/write_analysis.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/analysis/parts.h"

namespace statescope {
namespace {

/// M of values [M, size].
template <class Number>
std::int64_t count_of(const char* what, std::span<Number> values, std::int64_t size) {
  check_that(size > 0, what);
  const std::int64_t M = static_cast<std::int64_t>(values.size()) / size;
  check_size(what, values, M * size);
  return M;
}

std::span<const float> row_of(std::span<const float> values, std::int64_t index, std::int64_t size) {
  return values.subspan(static_cast<std::size_t>(index * size), static_cast<std::size_t>(size));
}

/// Σ_j |ω_j|
double absolute_sum(std::span<const float> omega) {
  double sum = 0;
  for (const double w : omega) sum += std::abs(w);
  return sum;
}

/// ω_r ≠ 0 and |ω_r| ≥ τ Σ_j |ω_j|
bool counts(double w, double tau, double sum) { return w != 0 && std::abs(w) >= tau * sum; }

WriteSpread spread(std::span<const float> omega, double tau) {
  const double sum = absolute_sum(omega), length = norm(omega), K = static_cast<double>(omega.size());
  if (sum == 0) return {};
  if (std::isnan(sum)) return {sum, sum};
  const auto rows = std::count_if(omega.begin(), omega.end(), [&](float w) { return counts(w, tau, sum); });
  return {static_cast<double>(rows) / K, sum * sum / (K * length * length)};
}

std::vector<double> norms(std::span<const float> values, std::int64_t size) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < count_of("norms", values, size); ++i) result.push_back(norm(row_of(values, i, size)));
  return result;
}

}  // namespace

std::vector<float> row_write_magnitude(std::span<const float> omega, std::span<const float> v, std::int64_t rows, std::int64_t columns) {
  const std::int64_t M = count_of("write magnitude: omega", omega, rows);
  check_size("write magnitude: v", v, M * columns);
  std::vector<float> result;
  for (std::int64_t i = 0; i < M; ++i) {
    const double length = norm(row_of(v, i, columns));
    for (const double w : row_of(omega, i, rows)) result.push_back(static_cast<float>(std::abs(w) * length));
  }
  return result;
}

std::vector<WriteSpread> write_spread(std::span<const float> omega, std::int64_t rows, double tau) {
  std::vector<WriteSpread> result;
  for (std::int64_t i = 0; i < count_of("write spread: omega", omega, rows); ++i) result.push_back(spread(row_of(omega, i, rows), tau));
  return result;
}

double occupancy(std::span<const WriteSpread> written, std::int64_t partitions) {
  check_that(static_cast<std::int64_t>(written.size()) <= partitions, "occupancy: more writes than partitions");
  double sum = 0;
  for (const WriteSpread& write : written) sum += write.ratio;
  return sum / static_cast<double>(partitions);
}

std::vector<double> frobenius_norms(std::span<const float> states, std::int64_t rows, std::int64_t columns) {
  return norms(states, rows * columns);
}

std::vector<double> update_norms(std::span<const float> states, std::span<const float> before, std::int64_t rows, std::int64_t columns) {
  const std::int64_t M = count_of("update norms: states", states, rows * columns);
  check_size("update norms: before", before, M * rows * columns);
  std::vector<double> result;
  for (std::int64_t i = 0; i < M; ++i) {
    double squares = 0;
    for (std::int64_t j = i * rows * columns; j < (i + 1) * rows * columns; ++j) {
      const double change = static_cast<double>(states[static_cast<std::size_t>(j)]) - before[static_cast<std::size_t>(j)];
      squares += change * change;
    }
    result.push_back(std::sqrt(squares));
  }
  return result;
}

std::vector<double> row_norms(std::span<const float> states, std::int64_t rows, std::int64_t columns) {
  count_of("row norms: states", states, rows * columns);
  return norms(states, columns);
}

std::vector<double> readout_shares(std::span<const float> reads, std::int64_t columns) {
  std::vector<double> shares = norms(reads, columns);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (sum != 0) std::for_each(shares.begin(), shares.end(), [sum](double& share) { share /= sum; });
  return shares;
}

std::int64_t age_of_last_write(std::span<const std::int32_t> written, std::int64_t t) {
  const auto next = std::upper_bound(written.begin(), written.end(), t);
  return next == written.begin() ? kNeverWritten : t - *std::prev(next);
}

std::vector<std::int64_t> row_ages(std::span<const float> omega, std::span<const std::int32_t> written, std::int64_t rows, std::int64_t t,
                                   double tau) {
  check_size("row ages: omega", omega, static_cast<std::int64_t>(written.size()) * rows);
  std::vector<std::int64_t> ages(static_cast<std::size_t>(rows), kNeverWritten);
  for (std::size_t i = 0; i < written.size() && written[i] <= t; ++i) {
    const auto write = row_of(omega, static_cast<std::int64_t>(i), rows);
    const double sum = absolute_sum(write);
    for (std::size_t r = 0; r < ages.size(); ++r) {
      if (counts(write[r], tau, sum)) ages[r] = t - written[i];
    }
  }
  return ages;
}

}  // namespace statescope

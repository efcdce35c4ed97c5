#include "engine/analysis/legendre.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace statescope {

double off_legendre(std::span<const float> A, std::span<const float> B) {
  const std::size_t N = B.size();
  if (N == 0 || A.size() != N * N) return std::numeric_limits<double>::infinity();
  const auto root = [](std::size_t n) { return std::sqrt(2.0 * static_cast<double>(n) + 1); };
  double most = 0;
  const auto compare = [&](double found, double expected, double size) { most = std::max(most, std::abs(found - expected) / size); };
  for (std::size_t n = 0; n < N; ++n) {
    const double diagonal = static_cast<double>(n + 1);
    compare(B[n], root(n), root(n));
    for (std::size_t k = 0; k < N; ++k) {
      const double expected = n > k ? -root(n) * root(k) : n == k ? -diagonal : 0;
      compare(A[n * N + k], expected, n > k ? -expected : diagonal);
    }
  }
  return most;
}

bool is_legendre(std::span<const float> A, std::span<const float> B) { return off_legendre(A, B) <= 1e-3; }

double legendre_signal(std::span<const double> X, double s) {
  // (n + 1) P_{n+1}(x) = (2n + 1) x P_n(x) − n P_{n−1}(x)
  const double x = 2 * std::exp(-s) - 1;
  double sum = 0, before = 0, P = 1;
  for (std::size_t i = 0; i < X.size(); ++i) {
    const auto n = static_cast<double>(i);
    sum += X[i] * std::sqrt(2 * n + 1) * P;
    const double next = ((2 * n + 1) * x * P - n * before) / (n + 1);
    before = P;
    P = next;
  }
  return sum;
}

}  // namespace statescope

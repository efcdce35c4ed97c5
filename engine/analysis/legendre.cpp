#include "engine/analysis/legendre.h"

#include <cmath>
#include <cstddef>

namespace statescope {

bool is_legendre(std::span<const float> A, std::span<const float> B) {
  const std::size_t N = B.size();
  if (N == 0 || A.size() != N * N) return false;
  const auto root = [](std::size_t n) { return std::sqrt(2.0 * static_cast<double>(n) + 1); };
  const auto near = [](double found, double expected) { return std::abs(found - expected) <= 1e-3 * std::abs(expected); };
  for (std::size_t n = 0; n < N; ++n) {
    if (!near(B[n], root(n))) return false;
    for (std::size_t k = 0; k < N; ++k) {
      const double expected = n > k ? -root(n) * root(k) : n == k ? -static_cast<double>(n + 1) : 0;
      if (!near(A[n * N + k], expected)) return false;
    }
  }
  return true;
}

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

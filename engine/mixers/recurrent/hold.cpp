#include "engine/mixers/recurrent/hold.h"

#include <algorithm>
#include <cmath>

namespace statescope {
namespace {

/// A square matrix of n rows.
using Matrix = std::vector<double>;

Matrix product(const Matrix& a, const Matrix& b, std::size_t n) {
  Matrix c(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < n; ++k) {
      const double factor = a[i * n + k];
      for (std::size_t j = 0; factor != 0 && j < n; ++j) c[i * n + j] += factor * b[k * n + j];
    }
  }
  return c;
}

/// e^M: the Taylor series of M / 2^s, squared s times; s so that the series converges fast.
Matrix exponential(Matrix M, std::size_t n) {
  double size = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double row = 0;
    for (std::size_t j = 0; j < n; ++j) row += std::abs(M[i * n + j]);
    size = std::max(size, row);
  }
  constexpr int terms = 16, most_squarings = 1024;
  const int squarings = size > 0.5 && std::isfinite(size) ? std::min(std::ilogb(size) + 2, most_squarings) : 0;
  for (double& x : M) x = std::ldexp(x, -squarings);
  Matrix sum(n * n), term(n * n);
  for (std::size_t i = 0; i < n; ++i) sum[i * n + i] = term[i * n + i] = 1;
  for (int k = 1; k <= terms; ++k) {
    term = product(term, M, n);
    for (double& x : term) x /= k;
    std::transform(sum.begin(), sum.end(), term.begin(), sum.begin(), std::plus<>());
  }
  for (int s = 0; s < squarings; ++s) sum = product(sum, sum, n);
  return sum;
}

}  // namespace

Held zero_order_hold(const std::vector<float>& A, const std::vector<float>& B, double dt) {
  // exp( Δ [A B; 0 0] ) = [Ā B̄; 0 1]
  const std::size_t N = B.size(), n = N + 1;
  Matrix M(n * n);
  for (std::size_t i = 0; i < N; ++i) {
    std::transform(A.begin() + static_cast<std::ptrdiff_t>(i * N), A.begin() + static_cast<std::ptrdiff_t>((i + 1) * N),
                   M.begin() + static_cast<std::ptrdiff_t>(i * n), [&](float a) { return dt * a; });
    M[i * n + N] = dt * B[i];
  }
  const Matrix held = exponential(std::move(M), n);
  Held result{std::vector<double>(N * N), std::vector<double>(N)};
  for (std::size_t i = 0; i < N; ++i) {
    for (std::size_t j = 0; j < N; ++j) result.A[i * N + j] = held[i * n + j];
    result.B[i] = held[i * n + N];
  }
  return result;
}

}  // namespace statescope

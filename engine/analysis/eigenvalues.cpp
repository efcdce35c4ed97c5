#include "engine/analysis/eigenvalues.h"

#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace statescope {
namespace {

using Eigenvalues = std::vector<std::complex<double>>;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double kTrusted = 1e-3;

/// By the QR algorithm. The eigenvalue λ of right and left eigenvectors x and y, yx = 1, moves by at most ‖x‖ ‖y‖ ‖E‖ where A is A + E.
Eigenvalues of_dense(const Matrix& A) {
  const Eigen::EigenSolver<Eigen::MatrixXd> solved(A);
  const Eigen::MatrixXcd right = solved.eigenvectors(), left = right.inverse();
  const double rounding = static_cast<double>(A.rows()) * std::numeric_limits<double>::epsilon() * A.norm();
  Eigenvalues all;
  for (Eigen::Index i = 0; i < A.rows(); ++i) {
    const std::complex<double> lambda = solved.eigenvalues()[i];
    const double moved = rounding * right.col(i).norm() * left.row(i).norm();
    const bool trusted = solved.info() == Eigen::Success && moved <= kTrusted * std::abs(lambda);  // false where it is NaN
    all.push_back(trusted ? lambda : std::complex<double>(std::nan(""), std::nan("")));
  }
  return all;
}

}  // namespace

Eigenvalues eigenvalues(std::span<const float> A) {
  const auto N = static_cast<Eigen::Index>(std::lround(std::sqrt(static_cast<double>(A.size()))));
  if (N * N != std::ssize(A)) throw std::invalid_argument("eigenvalues: the matrix is not square");
  const Matrix M = Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(A.data(), N, N).cast<double>();
  const auto is_zero = [&](bool below) {  // on one side of the diagonal; NaN is not
    for (Eigen::Index i = 0; i < N * N; ++i) {
      const Eigen::Index row = i / N, column = i % N;
      if ((below ? row > column : row < column) && M(row, column) != 0) return false;
    }
    return true;
  };
  Eigenvalues all;
  if (is_zero(true) || is_zero(false)) {
    for (Eigen::Index i = 0; i < N; ++i) all.emplace_back(M(i, i));
  } else if (M.allFinite()) {
    all = of_dense(M);
  } else {
    all.assign(static_cast<std::size_t>(N), std::complex<double>(std::nan(""), std::nan("")));
  }
  std::ranges::stable_sort(all, [](const std::complex<double>& a, const std::complex<double>& b) {
    if (std::isnan(a.real()) || std::isnan(b.real())) return !std::isnan(a.real()) && std::isnan(b.real());
    return a.real() != b.real() ? a.real() > b.real() : a.imag() > b.imag();
  });
  return all;
}

}  // namespace statescope

#include "kernels/ops/state_analysis.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/ops/linear.h"

namespace statescope {
namespace {

void check(const char* operation, const char* result, ConstTensor y, ConstTensor z, const Shape& expected) {
  if (z.shape.rank() == 3 && z.contiguous() && y.contiguous() && y.shape == expected) return;
  throw std::invalid_argument(std::string(operation) + ": " + result + " " + y.shape.to_string() + ", z " + z.shape.to_string());
}

Shape expected_cosine(ConstTensor z) { return z.shape.rank() == 3 ? Shape{z.rows(), z.shape[1], z.shape[1]} : Shape{}; }
Shape expected_sigma(ConstTensor z) { return z.shape.rank() == 3 ? Shape{z.rows(), std::min(z.shape[1], z.shape[2])} : Shape{}; }

/// The eigenvalues of ZᵀZ, or of ZZᵀ if that is smaller, ascending; z [R, V].
Eigen::VectorXd squared_singular_values(const float* z, std::int64_t R, std::int64_t V) {
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::MatrixXd Z = Eigen::Map<const RowMajor>(z, R, V).cast<double>();
  Eigen::MatrixXd gram = Eigen::MatrixXd::Zero(std::min(R, V), std::min(R, V));
  if (V <= R) {
    gram.selfadjointView<Eigen::Lower>().rankUpdate(Z.transpose());
  } else {
    gram.selfadjointView<Eigen::Lower>().rankUpdate(Z);
  }
  return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(gram, Eigen::EigenvaluesOnly).eigenvalues();
}

}  // namespace

void check_row_cosine(ConstTensor cosine, ConstTensor z) { check("row_cosine", "cosine", cosine, z, expected_cosine(z)); }
void check_singular_values(ConstTensor sigma, ConstTensor z) { check("singular_values", "sigma", sigma, z, expected_sigma(z)); }

void row_cosine(Tensor cosine, ConstTensor z) {
  check_row_cosine(cosine, z);
  const std::int64_t R = z.shape[1], V = z.shape[2];
  parallel_for(z.rows(), [&](std::int64_t b) {
    constexpr float shortest = 1e-12F;
    static thread_local std::vector<float> inverse;
    inverse.resize(static_cast<std::size_t>(R));
    const float* rows = z.f32(b);
    float* C = cosine.f32(b);
    for (std::int64_t r = 0; r < R; ++r) {
      const double norm = Eigen::Map<const Eigen::VectorXf>(rows + r * V, V).cast<double>().norm();
      inverse[static_cast<std::size_t>(r)] = norm < shortest ? 0 : static_cast<float>(1 / norm);
    }
    gemm({.m = R, .n = R, .k = V, .a = rows, .lda = V, .transpose_a = false, .b = rows, .ldb = V, .transpose_b = true, .c = C, .ldc = R});
    for (std::int64_t i = 0; i < R; ++i) {
      for (std::int64_t j = 0; j < R; ++j) C[i * R + j] *= inverse[static_cast<std::size_t>(i)] * inverse[static_cast<std::size_t>(j)];
    }
  });
}

void singular_values(Tensor sigma, ConstTensor z) {
  check_singular_values(sigma, z);
  const std::int64_t R = z.shape[1], V = z.shape[2], n = std::min(R, V);
  parallel_for(z.rows(), [&](std::int64_t b) {
    float* out = sigma.f32(b);
    if (!Eigen::Map<const Eigen::VectorXf>(z.f32(b), R * V).allFinite()) {
      std::fill(out, out + n, std::numeric_limits<float>::quiet_NaN());
      return;
    }
    const Eigen::VectorXd squared = squared_singular_values(z.f32(b), R, V);
    for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(std::sqrt(std::max(squared[n - 1 - i], 0.0)));
  });
}

}  // namespace statescope

#include "kernels/ops/state_analysis.h"

#include <Eigen/SVD>
#include <cmath>

#include "tests/catch.h"
#include "tests/kernels/random_tensors.h"

namespace statescope::state_analysis_test {
using namespace statescope::testing;

namespace {

Eigen::MatrixXd matrix(const Numbers& z, std::int64_t b) {
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const RowMajor>(z.row(b), z.shape[1], z.shape[2]).cast<double>();
}

Numbers sigma_of(const Numbers& z) {
  Numbers sigma = poisoned({z.shape[0], std::min(z.shape[1], z.shape[2])});
  singular_values(sigma.view(), z.view());
  return sigma;
}

Numbers cosine_of(const Numbers& z) {
  Numbers cosine = poisoned({z.shape[0], z.shape[1], z.shape[1]});
  row_cosine(cosine.view(), z.view());
  return cosine;
}

}  // namespace

TEST_CASE("singular values: those of a full decomposition in double precision") {
  Random random(1);
  for (const auto& [R, V] : {std::pair{1, 1}, {1, 7}, {7, 1}, {16, 16}, {80, 16}, {60, 64}, {65, 33}}) {
    const Numbers z = random.uniform({3, R, V}), sigma = sigma_of(z);
    for (std::int64_t b = 0; b < 3; ++b) {
      const Eigen::VectorXd expected = Eigen::JacobiSVD<Eigen::MatrixXd>(matrix(z, b)).singularValues();
      for (std::int64_t i = 0; i < expected.size(); ++i) CHECK(std::abs(sigma.row(b)[i] - expected[i]) <= 1e-6 * expected[0]);
    }
  }
}

TEST_CASE("singular values: orthogonal rows, rank one, nothing, and what is not finite") {
  Numbers z({4, 3, 3}, 0.0F);
  for (std::int64_t i = 0; i < 3; ++i) {
    z.row(0)[4 * i] = 2;
    for (std::int64_t j = 0; j < 3; ++j) z.row(1)[3 * i + j] = 1;
  }
  z.row(3)[5] = std::numeric_limits<float>::infinity();
  const Numbers sigma = sigma_of(z);
  for (std::int64_t i = 0; i < 3; ++i) {
    CHECK(sigma.row(0)[i] == 2);
    CHECK(std::abs(sigma.row(1)[i] - (i == 0 ? 3 : 0)) < 1e-6);
    CHECK(sigma.row(2)[i] == 0);
    CHECK(std::isnan(sigma.row(3)[i]));
  }
  CHECK_THROWS_AS(singular_values(Numbers({4, 2}).view(), z.view()), std::invalid_argument);
  CHECK(sigma_of(Numbers({0, 3, 3})).values.empty());
}

TEST_CASE("row cosine: against double precision; rows of zeros give 0") {
  Random random(2);
  for (const auto& [R, V] : {std::pair{1, 1}, {5, 3}, {64, 16}, {130, 60}}) {
    Numbers z = random.uniform({2, R, V});
    if (R > 1) std::fill_n(z.row(1) + V, V, 1e-14F);
    const Numbers cosine = cosine_of(z);
    for (std::int64_t b = 0; b < 2; ++b) {
      const Eigen::MatrixXd rows = matrix(z, b);
      for (std::int64_t i = 0; i < R; ++i) {
        for (std::int64_t j = 0; j < R; ++j) {
          const double norms = rows.row(i).norm() * rows.row(j).norm();
          const bool zero = rows.row(i).norm() < 1e-12 || rows.row(j).norm() < 1e-12;
          const double error = cosine.row(b)[i * R + j] - (zero ? 0 : rows.row(i).dot(rows.row(j)) / norms);
          if (!(std::abs(error) < 1e-6)) FAIL("row " << i << ", " << j << ": " << error);
        }
      }
    }
  }
  CHECK_THROWS_AS(row_cosine(Numbers({1, 2, 3}).view(), Numbers({1, 2, 3}).view()), std::invalid_argument);
}

}  // namespace statescope::state_analysis_test

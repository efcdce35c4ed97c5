// Eigenvalues of matrices that are not symmetric, and where rounding leaves none.
#include "engine/analysis/eigenvalues.h"

#include <cmath>
#include <stdexcept>

#include "tests/catch.h"
#include "tests/engine/analysis/hippo.h"

namespace statescope::test::eigenvalues_test {
namespace {

using Complex = std::complex<double>;

}  // namespace

TEST_CASE("eigenvalues: by hand, the largest real part first") {
  // [0 −2; 2 0] turns, [a b; −b a] turns and shrinks
  const std::vector<Complex> turning = eigenvalues(std::vector<float>{0, -2, 2, 0});
  REQUIRE(turning.size() == 2);
  CHECK(std::abs(turning[0] - Complex(0, 2)) < 1e-12);
  CHECK(std::abs(turning[1] - Complex(0, -2)) < 1e-12);
  const std::vector<Complex> three = eigenvalues(std::vector<float>{-3, 0, 0, 1, -0.5F, 4, 0, -4, -0.5F});
  REQUIRE(three.size() == 3);
  CHECK(std::abs(three[0] - Complex(-0.5, 4)) < 1e-12);
  CHECK(std::abs(three[1] - Complex(-0.5, -4)) < 1e-12);
  CHECK(std::abs(three[2] - Complex(-3)) < 1e-12);
  CHECK(eigenvalues(std::vector<float>{7}) == std::vector<Complex>{7});
  CHECK(eigenvalues({}).empty());
  CHECK_THROWS_AS(eigenvalues(std::vector<float>(6)), std::invalid_argument);
}

TEST_CASE("eigenvalues: of a triangular matrix its diagonal, however far from normal; else those that rounding does not reach") {
  constexpr std::size_t N = 64;
  Hippo hippo(N);
  const std::vector<Complex> exact = eigenvalues(hippo.A);
  for (std::size_t n = 0; n < N; ++n) CHECK(exact[n] == Complex(-static_cast<double>(n + 1)));
  // An entry above the diagonal: the QR algorithm has to be asked, and this matrix amplifies its rounding beyond any use.
  hippo.A[1] = 1e-7F;
  const std::vector<Complex> rounded = eigenvalues(hippo.A);
  REQUIRE(rounded.size() == N);
  CHECK(std::isnan(rounded.back().real()));
  const auto trusted = [](const std::vector<Complex>& all) {
    return std::ranges::count_if(all, [](const Complex& lambda) { return !std::isnan(lambda.real()); });
  };
  CHECK(trusted(rounded) < 32);
  Hippo small(5);
  small.A[1] = 1e-7F;
  CHECK(trusted(eigenvalues(small.A)) == 5);
  CHECK(std::isnan(eigenvalues(std::vector<float>{1, std::nanf(""), 2, 3})[0].real()));
}

}  // namespace statescope::test::eigenvalues_test

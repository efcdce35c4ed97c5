// What logits say about the next token, against double precision.
#include "kernels/ops/predictions.h"

#include <cmath>

#include "tests/catch.h"
#include "tests/kernels/random_tensors.h"

namespace statescope::predictions_test {
using namespace statescope::testing;

namespace {

double probability(const Numbers& z, std::int64_t t, std::int64_t v) {
  double sum = 0;
  for (std::int64_t i = 0; i < z.shape[1]; ++i) sum += std::exp(static_cast<double>(z.row(t)[i]) - z.row(t)[v]);
  return 1 / sum;
}

}  // namespace

TEST_CASE("next_token_nll: minus the logarithm of the softmax") {
  for (const std::int64_t V : {1, 7, 1024, 1025, 5000}) {
    const Numbers z = Random(1).uniform({3, V}, -30, 30);
    const std::vector<std::int32_t> ids{0, static_cast<std::int32_t>(V / 2), static_cast<std::int32_t>(V - 1)};
    Numbers nll = poisoned({3});
    next_token_nll(nll.view(), z.view(), ids.data());
    for (std::int64_t t = 0; t < 3; ++t)
      CHECK(nll[t] == Approx(-std::log(probability(z, t, ids[static_cast<std::size_t>(t)]))).margin(1e-6));
  }
}

TEST_CASE("next_token_nll: what cannot be has no likelihood, NaN is NaN, and an id outside is refused") {
  Numbers z = Random(1).uniform({2, 40}, -3, 3), nll = poisoned({2});
  z.row(0)[5] = -std::numeric_limits<float>::infinity();
  z.row(1)[7] = std::nanf("");
  const std::vector<std::int32_t> ids{5, 0}, outside{5, 40};
  next_token_nll(nll.view(), z.view(), ids.data());
  CHECK(nll[0] == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(nll[1]));
  CHECK_THROWS_AS(next_token_nll(nll.view(), z.view(), outside.data()), std::out_of_range);
  CHECK_THROWS_AS(next_token_nll(Numbers({3}).view(), z.view(), ids.data()), std::invalid_argument);
}

TEST_CASE("total_variation: half of what probabilities differ by") {
  for (const std::int64_t V : {1, 7, 1024, 1025, 3000}) {
    Random random(2);
    const Numbers a = random.uniform({2, V}, -9, 9), b = random.uniform({2, V}, -9, 9);
    Numbers distance = poisoned({2}), none = poisoned({2});
    total_variation(distance.view(), a.view(), b.view());
    total_variation(none.view(), a.view(), a.view());
    for (std::int64_t t = 0; t < 2; ++t) {
      double sum = 0;
      for (std::int64_t v = 0; v < V; ++v) sum += std::abs(probability(a, t, v) - probability(b, t, v)) / 2;
      CHECK(distance[t] == Approx(sum).margin(1e-6));
      CHECK(none[t] == 0);
    }
  }
  CHECK_THROWS_AS(total_variation(Numbers({2}).view(), Numbers({2, 3}).view(), Numbers({2, 4}).view()), std::invalid_argument);
}

TEST_CASE("row_norms: the length of each row") {
  const Numbers x = Random(3).uniform({4, 60}, -2, 2);
  Numbers norms = poisoned({4});
  row_norms(norms.view(), x.view());
  for (std::int64_t t = 0; t < 4; ++t) {
    double squares = 0;
    for (std::int64_t i = 0; i < 60; ++i) squares += static_cast<double>(x.row(t)[i]) * x.row(t)[i];
    CHECK(norms[t] == Approx(std::sqrt(squares)));
  }
}

}  // namespace statescope::predictions_test

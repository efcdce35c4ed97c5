#include "engine/analysis/head_gate_analysis.h"

#include <algorithm>
#include <cmath>

#include "tests/catch.h"
#include "tests/kernels/random_tensors.h"

namespace statescope::test::head_gate_analysis_test {

using Catch::Matchers::WithinAbs;
using testing::Random;

namespace {

std::vector<double> softmax(const std::vector<double>& logits, double lambda) {
  std::vector<double> p;
  double sum = 0;
  for (const double z : logits) sum += p.emplace_back(std::exp(lambda * z));
  for (double& x : p) x /= sum;
  return p;
}

std::vector<double> random_logits(Random& random, std::int64_t heads) {
  std::vector<double> logits;
  for (std::int64_t h = 0; h < heads; ++h) logits.push_back(random.uniform(-2, 2));
  return logits;
}

std::vector<float> floats(const std::vector<double>& values) { return {values.begin(), values.end()}; }

/// softmax gates [T, H]
std::vector<float> random_gates(Random& random, std::int64_t T, std::int64_t heads) {
  std::vector<float> gates;
  for (std::int64_t t = 0; t < T; ++t) {
    for (const double g : softmax(random_logits(random, heads), 1)) gates.push_back(static_cast<float>(g));
  }
  return gates;
}

}  // namespace

TEST_CASE("head gates: entropy, winner and margin by hand") {
  const std::vector<float> gates{0.25F, 0.25F, 0.25F, 0.25F, 0.125F, 0.5F, 0.25F, 0.125F, 0, 0, 0, 1};
  const auto got = head_gates(gates, 4);
  REQUIRE(got.size() == 3);
  CHECK_THAT(got[0].entropy, WithinAbs(1, 1e-12));  // equal logits
  CHECK(got[0].winner == 0);
  CHECK(got[0].margin == 0);
  CHECK_THAT(got[1].entropy, WithinAbs(1.75 / 2, 1e-12));
  CHECK(got[1].winner == 1);
  CHECK(got[1].margin == 0.25);
  CHECK(got[2].entropy == 0);
  CHECK(got[2].winner == 3);
  CHECK(got[2].margin == 1);
  const HeadGate only = head_gates(std::vector<float>{1}, 1).at(0);
  CHECK(only.entropy == 0);
  CHECK(std::isnan(only.margin));
}

TEST_CASE("information flow: by hand, and by its definition for windows of a run") {
  const std::vector<float> q{0.5F, 0.5F, 1, 0}, k{0.75F, 0.25F, 0, 1, 0.5F, 0.5F};
  CHECK(information_flow(q, k, 2) == std::vector<float>{0.5F, 0.5F, 0.5F, 0.75F, 0, 0.5F});
  CHECK(own_information_flow(q, q, 2) == std::vector<float>{0.5F, 1});
  // Gates of 1 / H let 1 / H through.
  CHECK(information_flow(std::vector<float>(4, 0.25F), std::vector<float>(8, 0.25F), 4) == std::vector<float>(2, 0.25F));

  Random random(5);
  const std::int64_t T = 20, H = 5;
  const std::vector<float> gate_q = random_gates(random, T, H), gate_k = random_gates(random, T, H);
  const std::vector<float> flow = information_flow(std::span(gate_q).subspan(10 * H), std::span(gate_k).subspan(3 * H, 7 * H), H);
  const std::vector<float> own = own_information_flow(gate_q, gate_k, H);
  REQUIRE(flow.size() == 70);
  for (std::int64_t t = 0; t < T; ++t) {
    for (std::int64_t s = 0; s < T; ++s) {
      double expected = 0;
      for (std::int64_t h = 0; h < H; ++h) {
        expected += static_cast<double>(gate_q[static_cast<std::size_t>(t * H + h)]) * gate_k[static_cast<std::size_t>(s * H + h)];
      }
      if (t >= 10 && s >= 3 && s < 10) {
        const float got = flow[static_cast<std::size_t>((t - 10) * 7 + s - 3)];
        CHECK_THAT(got, WithinAbs(expected, 1e-7));
        CHECK((got > 0 && got <= 1));
      }
      if (s == t) CHECK_THAT(own[static_cast<std::size_t>(t)], WithinAbs(expected, 1e-7));
    }
  }
}

TEST_CASE("sharpened gates are the softmax of the scaled logits") {
  Random random(6);
  for (const std::int64_t heads : {1, 2, 4, 18}) {
    const std::vector<double> logits = random_logits(random, heads);
    for (const double lambda : kSharpness) {
      const std::vector<double> got = sharpened(floats(softmax(logits, 1)), lambda), expected = softmax(logits, lambda);
      REQUIRE(got.size() == expected.size());
      for (std::size_t h = 0; h < got.size(); ++h) CHECK_THAT(got[h], WithinAbs(expected[h], 2e-6));
    }
  }
  CHECK(sharpened(std::vector<float>{0.5F, 0, 0.5F}, 0.25) == std::vector<double>{0.5, 0, 0.5});
}

TEST_CASE("entropy falls as logits grow, from near 1 to 0; equal gates stay equal") {
  Random random(7);
  for (int round = 0; round < 50; ++round) {
    const std::vector<double> logits = random_logits(random, 2 + round % 7);
    const SharpnessCurve curve = entropy_curve(floats(softmax(logits, 1)));
    CHECK(std::is_sorted(curve.begin(), curve.end(), std::greater<>()));
    CHECK(curve.front() > curve.back());
    for (std::size_t i = 0; i < curve.size(); ++i) {
      double expected = 0;
      for (const double p : softmax(logits, kSharpness[i])) expected -= p * std::log(p) / std::log(static_cast<double>(logits.size()));
      CHECK_THAT(curve[i], WithinAbs(expected, 1e-5));
    }
  }
  for (const double entropy : entropy_curve(std::vector<float>(6, 1.0F / 6))) CHECK_THAT(entropy, WithinAbs(1, 1e-12));
  CHECK(entropy_curve(std::vector<float>{0.0625F, 0.875F, 0.0625F}).back() < 1e-9);
}

TEST_CASE("flow tends to whether both gates name the same head") {
  const std::vector<float> one{0.125F, 0.75F, 0.125F}, same{0.25F, 0.5F, 0.25F}, other{0.75F, 0.125F, 0.125F};
  const SharpnessCurve to_one = flow_curve(one, same), to_zero = flow_curve(one, other);
  CHECK(std::is_sorted(to_one.begin(), to_one.end()));
  CHECK(std::is_sorted(to_zero.begin(), to_zero.end(), std::greater<>()));
  CHECK_THAT(to_one.back(), WithinAbs(1, 1e-4));
  CHECK_THAT(to_zero.back(), WithinAbs(0, 1e-4));
  CHECK_THAT(to_one[2], WithinAbs(information_flow(one, same, 3).at(0), 1e-7));  // λ = 1: the run's own
  for (const double flow : flow_curve(std::vector<float>(4, 0.25F), std::vector<float>(4, 0.25F))) CHECK_THAT(flow, WithinAbs(0.25, 1e-12));
}

TEST_CASE("head gates: sizes that do not fit are refused") {
  const std::vector<float> six(6, 0.5F), four(4, 0.5F);
  CHECK_THROWS_AS(head_gates(six, 4), std::invalid_argument);
  CHECK_THROWS_AS(head_gates(six, 0), std::invalid_argument);
  CHECK_THROWS_AS(information_flow(six, four, 3), std::invalid_argument);
  CHECK_THROWS_AS(own_information_flow(six, four, 2), std::invalid_argument);
  CHECK_THROWS_AS(flow_curve(six, four), std::invalid_argument);
  CHECK_THROWS_AS(sharpened(six, 0), std::invalid_argument);
}

}  // namespace statescope::test::head_gate_analysis_test

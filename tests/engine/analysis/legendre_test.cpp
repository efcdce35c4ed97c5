// Coefficients of Legendre polynomials: HiPPO's matrix, and the signal that its state stands for (spec §17.17).
#include "engine/analysis/legendre.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "engine/answers/answers.h"
#include "engine/mixers/recurrent/hold.h"
#include "tests/catch.h"
#include "tests/engine/analysis/evidence_of.h"
#include "tests/engine/analysis/hippo.h"

namespace statescope::test::legendre_test {
TEST_CASE("Legendre: HiPPO's matrix is known, and others are told from it") {
  Hippo hippo(9);
  CHECK(is_legendre(hippo.A, hippo.B));
  CHECK_FALSE(is_legendre(std::span(hippo.A).first(80), hippo.B));
  CHECK_FALSE(is_legendre({}, {}));
  hippo.A[9 * 4 + 2] *= 1.01F;
  CHECK_FALSE(is_legendre(hippo.A, hippo.B));
  CHECK(off_legendre(hippo.A, hippo.B) == Approx(0.01).epsilon(1e-4));
  hippo = Hippo(9);
  hippo.A[9 * 2 + 4] = 0.1F;
  CHECK_FALSE(is_legendre(hippo.A, hippo.B));
}

TEST_CASE("Legendre: one coefficient is one polynomial") {
  for (const double s : {0.0, 0.3, 2.0}) {
    const double x = 2 * std::exp(-s) - 1;
    CHECK(legendre_signal(std::vector<double>{1}, s) == Approx(1));
    CHECK(legendre_signal(std::vector<double>{0, 1}, s) == Approx(std::sqrt(3.0) * x).margin(1e-12));
    CHECK(legendre_signal(std::vector<double>{0, 0, 1}, s) == Approx(std::sqrt(5.0) * (3 * x * x - 1) / 2).margin(1e-12));
    CHECK(legendre_signal(std::vector<double>{0, 0, 0, 1}, s) == Approx(std::sqrt(7.0) * (5 * x * x * x - 3 * x) / 2).margin(1e-12));
  }
}

TEST_CASE("Legendre: a state that has read a slow signal gives it back, the later part better than the earlier") {
  constexpr std::size_t N = 24;
  const Hippo hippo(N);
  const double dt = 0.02;
  const Held held = zero_order_hold(hippo.A, hippo.B, dt);
  const auto u = [&](std::int64_t t) { return std::sin(0.05 * static_cast<double>(t)) + 0.3; };
  std::vector<double> X(N);
  constexpr std::int64_t T = 400;
  for (std::int64_t t = 0; t < T; ++t) {
    const std::vector<double> before = X;
    for (std::size_t n = 0; n < N; ++n) {
      X[n] = held.B[n] * u(t);
      for (std::size_t m = 0; m < N; ++m) X[n] += held.A[n * N + m] * before[m];
    }
  }
  for (const std::int64_t ago : {2, 10, 50, 100})
    CHECK(std::abs(legendre_signal(X, (static_cast<double>(ago) + 0.5) * dt) - u(T - 1 - ago)) < 0.03);
}

TEST_CASE("answers: what a channel's coefficients say of its input; other matrices and other layers say nothing") {
  constexpr std::int64_t N = 10, kTokens = 21;
  Editable edited = hippo_model();
  SmallEvidence run(edited.checkpoint(), kTokens);
  const RememberedQuestion question{.layer = 1, .channel = 3, .token = 15, .from = 2, .to = kTokens};
  const Remembered all = answer(question, run.evidence);
  REQUIRE(std::ssize(all.entered) == kTokens - 2);
  CHECK(all.step == Approx(std::exp(double{edited.floats("model.layers.1.s4.kernel.log_dt")[3]})));
  const LayerState state = run.evidence.state(1, 15);
  std::vector<double> X;
  for (std::int64_t n = 0; n < N; ++n) X.push_back(state.matrix(0, 0)[n * 40 + 3]);
  for (std::int64_t s = 2; s < kTokens; ++s) {
    const auto at = static_cast<std::size_t>(s - 2);
    CHECK(all.entered[at] == run.evidence.channel(1, "v")->values[static_cast<std::size_t>(s * 40 + 3)]);
    if (s > 15) {
      CHECK(std::isnan(all.remembered[at]));
    } else {
      CHECK(all.remembered[at] == Approx(legendre_signal(X, (static_cast<double>(15 - s) + 0.5) * all.step)));
    }
  }
  CHECK_THROWS_WITH(answer(RememberedQuestion{.layer = 0, .token = 30, .from = 0, .to = 5}, run.evidence),
                    "there is no token 30 (tokens are 0 to 20)");
  SmallEvidence other(s4_config("hippo"), kTokens), diagonal(s4_config("diag"), kTokens), gla(small_config("gla"), kTokens);
  CHECK_THROWS_WITH(answer(question, other.evidence), Catch::Matchers::StartsWith("The matrix of layer 1 is up to "));
  CHECK(answer(question, diagonal.evidence).entered.empty());
  CHECK(answer(question, gla.evidence).entered.empty());
}

}  // namespace statescope::test::legendre_test

// Which rows are written and how old they are, against the updates and decays that the other answers give.
#include <cmath>

#include "engine/analysis/write_analysis.h"
#include "engine/answers/answers.h"
#include "engine/error.h"
#include "tests/catch.h"
#include "tests/engine/analysis/evidence_of.h"

namespace statescope::test::answers_writes_test {
namespace {

constexpr std::int64_t kTokens = 29;

/// ω of a token, [slots, K].
std::vector<float> weights_of(Evidence& evidence, std::int64_t head, std::int64_t token) {
  return answer(UpdateQuestion{.layer = 0, .head = head, .token = token}, evidence).write_weight;
}

}  // namespace

TEST_CASE("answers: rows that tokens write and the ages of rows are those of the updates, in outer products, SSE and the delta rule") {
  for (const json& config : {small_config("gla"), sse_config("gla"), small_config("gated_deltanet")}) {
    SmallEvidence run(config, kTokens);
    const LayerInfo& layer = run.evidence.layer(0);
    const std::int64_t K = layer.rows, last = kTokens - 1;
    const RowAges ages = answer(RowAgesQuestion{0, 1, last}, run.evidence);
    const WriteSpreads spreads = answer(WriteSpreadQuestion{0, 1, 3, kTokens}, run.evidence);
    REQUIRE(ages.slots == layer.slots());
    REQUIRE(std::ssize(ages.written) == layer.slots() * K);
    REQUIRE(std::ssize(spreads.effective) == layer.slots() * (kTokens - 3));
    std::vector<std::int32_t> expected(ages.written.size(), -1);
    for (std::int64_t t = 0; t < kTokens; ++t) {
      const std::vector<float> omega = weights_of(run.evidence, 1, t);
      for (std::int64_t slot = 0; slot < layer.slots(); ++slot) {
        double sum = 0, squares = 0;
        for (std::int64_t r = 0; r < K; ++r) {
          const double w = std::abs(omega[static_cast<std::size_t>(slot * K + r)]);
          sum += w;
          squares += w * w;
        }
        for (std::int64_t r = 0; r < K; ++r) {
          const auto at = static_cast<std::size_t>(slot * K + r);
          if (omega[at] != 0 && std::abs(omega[at]) >= kWriteThreshold * sum) expected[at] = static_cast<std::int32_t>(last - t);
        }
        if (t < 3) continue;
        const float effective = spreads.effective[static_cast<std::size_t>(slot * (kTokens - 3) + t - 3)];
        if (sum > 0) CHECK(effective == Approx(sum * sum / squares).epsilon(1e-4));
        if (std::isnan(effective)) CHECK(sum == 0);
      }
    }
    CHECK(ages.written == expected);
  }
}

TEST_CASE("answers: a row is half gone where its decay since then is one half, never without decay") {
  SmallEvidence gla(small_config("gla"), 200);
  const RowAges ages = answer(RowAgesQuestion{0, 0, 199}, gla.evidence);
  const Decay decay = answer(DecayQuestion{0, 0, 0, 0, 200}, gla.evidence);
  REQUIRE(decay.channels == ages.rows);
  for (std::int64_t r = 0; r < ages.rows; ++r) {
    const std::int32_t age = ages.halved[static_cast<std::size_t>(r)];
    const auto left_after = [&](std::int64_t n) {  // Δ_{t,t−n}
      return std::exp(decay.log_sum[static_cast<std::size_t>(199 * ages.rows + r)] -
                      decay.log_sum[static_cast<std::size_t>((199 - n) * ages.rows + r)]);
    };
    if (age < 0 || age > 199) continue;
    CHECK(left_after(age) <= 0.5 + 1e-6);
    CHECK(left_after(age - 1) > 0.5 - 1e-6);
  }
  SmallEvidence never(small_config("delta_net"), 20);
  for (const std::int32_t age : answer(RowAgesQuestion{0, 0, 19}, never.evidence).halved) CHECK(age == -1);
}

TEST_CASE("answers: writes of what does not exist are refused") {
  SmallEvidence gla(small_config("gla"), 5), softmax(small_config("transformer"), 5);
  CHECK_THROWS_AS(answer(RowAgesQuestion{0, 9, 4}, gla.evidence), Error);
  CHECK_THROWS_AS(answer(WriteSpreadQuestion{0, 0, 2, 9}, gla.evidence), Error);
  CHECK_THROWS_AS(answer(WriteSpreadQuestion{0, 0, 2, 2}, gla.evidence), Error);
  CHECK_THROWS_AS(answer(RowAgesQuestion{0, 0, 4}, softmax.evidence), Error);
}

}  // namespace statescope::test::answers_writes_test

// Lanes along a run against the run's own states, routing, gates and logits, in every family.
#include <cmath>

#include "engine/answers/answers.h"
#include "tests/catch.h"
#include "tests/engine/analysis/evidence_of.h"

namespace statescope::test::answers_series_test {
namespace {

constexpr std::int64_t kTokens = 31;

/// ‖a − b‖ of one slot over all heads; b empty: ‖a‖.
double distance(const LayerState& a, const LayerState& b, std::int64_t slot) {
  const std::int64_t n = a.heads * a.rows * a.columns;
  double squares = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = a.matrix(slot, 0)[i] - (b.values.empty() ? 0.0 : double{b.matrix(slot, 0)[i]});
    squares += x * x;
  }
  return std::sqrt(squares);
}

}  // namespace

TEST_CASE("series: norms of states and updates are those of the run's states, from any token on, in every family") {
  int layers = 0;
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    SmallEvidence asked(small.config, kTokens);
    for (std::int64_t l = 0; l < asked.model->layers(); ++l) {
      for (const std::int64_t from : {std::int64_t{0}, std::int64_t{17}}) {
        const LayerSeries series = answer(LayerSeriesQuestion{.layer = l, .from = from, .to = kTokens}, asked.evidence);
        const std::int64_t n = kTokens - from;
        CHECK(std::ssize(series.residual_norm) == n);
        if (!asked.evidence.layer(l).has_state()) {
          CHECK(series.state_norm.empty());
          continue;
        }
        ++layers;
        REQUIRE(std::ssize(series.state_norm) == series.slots * n);
        for (const std::int64_t t : {from, from + 1, kTokens - 1}) {
          const auto [before, after] = asked.evidence.states_around(l, t);
          for (std::int64_t slot = 0; slot < series.slots; ++slot) {
            const auto at = static_cast<std::size_t>(slot * n + t - from);
            const double norm = distance(after, {}, slot);
            CHECK(series.state_norm[at] == Approx(norm).epsilon(1e-4).margin(1e-9));
            CHECK(std::abs(series.update_norm[at] - distance(after, before, slot)) <= 1e-4 * norm + 1e-9);
          }
        }
      }
    }
  }
  CHECK(layers > 60);
}

TEST_CASE("series: routing and head gates have an entropy where the layer has them, and a winner") {
  SmallEvidence routed(sse_config("gla"), kTokens);
  const LayerSeries of_routing = answer(LayerSeriesQuestion{.layer = 0, .from = 3, .to = 9}, routed.evidence);
  REQUIRE(of_routing.routing_entropy.size() == 6);
  for (const float entropy : of_routing.routing_entropy) CHECK((entropy >= 0 && entropy <= 1));
  CHECK(of_routing.gate_entropy_q.empty());
}

TEST_CASE("series: the loss is −ln of the probability that the run gave to the token, the first has none") {
  SmallEvidence asked(small_config("gla"), kTokens);
  const Predictions truth = answer(PredictionsQuestion{.from = 0, .to = kTokens, .ids = {}}, asked.evidence);
  for (const std::int64_t from : {std::int64_t{0}, std::int64_t{1}, std::int64_t{20}}) {
    const LossSeries series = answer(LossSeriesQuestion{.from = from, .to = kTokens}, asked.evidence);
    REQUIRE(std::ssize(series.loss) == kTokens - from);
    REQUIRE(series.entropy.size() == series.loss.size());
    for (std::int64_t t = from; t < kTokens; ++t) {
      const auto at = static_cast<std::size_t>(t - from);
      CHECK(series.entropy[at] == truth.entropy[static_cast<std::size_t>(t)]);
      if (t == 0)
        CHECK(std::isnan(series.loss[at]));
      else
        CHECK(series.loss[at] == Approx(-std::log(truth.next_probability[static_cast<std::size_t>(t - 1)])).epsilon(1e-5));
    }
  }
}

TEST_CASE("series: what lies outside of the run is left out") {
  SmallEvidence asked(small_config("gla"), kTokens);
  CHECK(answer(LayerSeriesQuestion{.layer = 0, .from = 25, .to = 999}, asked.evidence).to == kTokens);
  CHECK(answer(LossSeriesQuestion{.from = 40, .to = 50}, asked.evidence).loss.empty());
  CHECK_THROWS_WITH(answer(LayerSeriesQuestion{.layer = 99, .from = 0, .to = 1}, asked.evidence),
                    "there is no layer 99 (layers are 0 to 1)");
}

}  // namespace statescope::test::answers_series_test

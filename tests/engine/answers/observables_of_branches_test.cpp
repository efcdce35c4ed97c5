// What can be asked by name of a run whose states or rules an intervention has changed.
#include "tests/engine/analysis/branch_evidence.h"
#include "tests/engine/answers/observables_asked.h"

namespace statescope::test::observables_of_runs {

TEST_CASE("branches: norms along the run, updates, writes, decay and the delta rule hold where states were changed") {
  const std::vector<std::string> changes{"zero head 1 at 12", "scale state by -2 at 15", "import run 1 at 20"};
  for (const json& config : {small_config("gla"), sse_config("gla"), sse_config("gdn"), small_config("delta_net"), small_config("retnet"),
                             small_config("mom", {{"head_dim", 16}})}) {
    INFO(config.dump());
    BranchEvidence branch(config, changes, kTokens);
    SmallEvidence own(config, kTokens);
    Evidence& evidence = branch.evidence;
    const std::int64_t l = 0, slots = evidence.layer(l).slots();
    const LayerSeries series = answer(LayerSeriesQuestion{l, 5, kTokens}, evidence);
    for (const std::int64_t t : {11, 12, 13, 15, 16, 20, 21, 32}) {
      INFO("after token " << t);
      const auto [before, after] = evidence.states_around(l, t);
      const std::int64_t each = after.heads * after.rows * after.columns;
      for (std::int64_t slot = 0; slot < slots; ++slot) {
        const auto at = static_cast<std::size_t>(slot * (kTokens - 5) + t - 5);
        std::vector<double> S(static_cast<std::size_t>(each)), change(S);
        for (std::int64_t i = 0; i < each; ++i) {
          S[static_cast<std::size_t>(i)] = after.matrix(slot, 0)[i];
          change[static_cast<std::size_t>(i)] = double{after.matrix(slot, 0)[i]} - before.matrix(slot, 0)[i];
        }
        const double norm = norm_of(S.data(), each);
        CHECK(series.state_norm[at] == Approx(norm).epsilon(1e-4).margin(1e-6));
        CHECK(series.update_norm[at] == Approx(norm_of(change.data(), each)).epsilon(1e-3).margin(1e-4 * norm + 1e-6));
      }
      for (std::int64_t head = 0; head < after.heads; ++head) {
        const Update update = answer(UpdateQuestion{.layer = l, .head = head, .token = t}, evidence);
        const std::int64_t cells = after.rows * after.columns;
        double error = 0, size = 0;
        for (std::int64_t i = 0; i < slots * cells; ++i) {
          const auto at = static_cast<std::size_t>(i);
          const double sum =
              double{before.matrix(i / cells, head)[i % cells]} + update.decayed[at] + update.erased[at] + update.written[at];
          error += std::pow(sum - after.matrix(i / cells, head)[i % cells], 2);
          size += std::pow(sum, 2) + std::pow(double{before.matrix(i / cells, head)[i % cells]}, 2);
        }
        CHECK(std::sqrt(error) <= 1e-4 * std::sqrt(size) + 1e-9);
      }
    }
    // Up to the first change all is as before it. An intervention is no write, and no decay of the gates.
    const std::int64_t head = 0;
    const WriteSpreads spread = answer(WriteSpreadQuestion{l, head, 0, 13}, evidence),
                       own_spread = answer(WriteSpreadQuestion{l, head, 0, 13}, own.evidence);
    CHECK(std::ranges::equal(spread.effective, own_spread.effective, [](float a, float b) { return same(a, b); }));
    const Decay decay = answer(DecayQuestion{l, 0, head, 0, kTokens}, evidence);
    if (decay.axis != Decay::Axis::none) CHECK(std::ranges::is_sorted(decay.token, std::ranges::less_equal{}));
    for (const float half : decay.half_life) CHECK(half > 0);
    for (const float width : decay.width) CHECK(!std::isnan(width));
    const DeltaRule rule = answer(DeltaRuleQuestion{l, 0, head}, evidence);
    CHECK(std::ranges::adjacent_find(rule.token) == rule.token.end());
    const History all = answer(HistoryQuestion{.layer = l, .slot = 0, .head = 1, .row = -1, .token = 25}, evidence);
    CHECK(all.sum == Approx(all.shown).epsilon(1e-4));
    const Asked asked(evidence, l, 10, 25);
    CHECK(asked.number("state_norm", 12, 1) == 0);  // head 1 of the first slot
    CHECK(asked.number("slot_age", 12) == 0);
  }
}

TEST_CASE("branches: a balance over different numbers of partitions is refused in a line; all else is told") {
  BranchEvidence branch(sse_config("gla"), {"topk 3 from 12"}, kTokens);
  const std::vector<std::string> balance{"balance_loss"}, routing{"selected_mass", "routing_margin"};
  CHECK_THROWS_WITH(answer(ObservablesQuestion{0, 0, kTokens, balance}, branch.evidence),
                    Catch::Matchers::StartsWith("an intervention has changed how many partitions"));
  CHECK(answer(ObservablesQuestion{0, 0, 12, balance}, branch.evidence).quantities.size() == 1);
  const Observables found = answer(ObservablesQuestion{0, 0, kTokens, routing}, branch.evidence);
  const auto written = branch.evidence.routing(0);
  for (std::int64_t t = 0; t < kTokens; ++t) {
    double mass = 0;
    for (std::int64_t n = 0; n < written->partitions; ++n) mass += written->selected_at(t, n) ? written->gate_at(t, n) : 0;
    CHECK(same(found.quantities[0].values[static_cast<std::size_t>(t)], mass));
  }
}

}  // namespace statescope::test::observables_of_runs

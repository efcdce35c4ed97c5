// A needle's fate: by hand, and its books balance in every family.
#include "engine/analysis/needle_fate.h"

#include <cmath>

#include "engine/run/run.h"
#include "tests/catch.h"
#include "tests/engine/small_models.h"

namespace statescope::test {
namespace {

/// Two slots of one head, 2 rows, 1 column. The needle is token 2; slot 0 is visited by 2, 3 and 7, slot 1 by 2 alone.
MemoryTrace by_hand(MemoryRule rule) {
  MemoryTrace trace{.rule = rule, .H = 1, .K = 2, .V = 1, .decay_width = 1, .slots = std::vector<SlotVisits>(2)};
  const float half = std::log(0.5F);
  trace.slots[0] = {
      .token = {2, 3, 7}, .q = {1, 0, 0, 1, 1, 1}, .k = {1, 0, 0, 1, 1, 0}, .v = {8, 4, 2}, .log_decay = {0, half, half}, .o = {}};
  trace.slots[1] = {.token = {2}, .q = {1, 0}, .k = {1, 0}, .v = {6}, .log_decay = {0}, .o = {}};
  if (rule == MemoryRule::delta) {
    trace.slots[0].beta = {1, 1, 0.5F};
    trace.slots[1].beta = {1};
  }
  return trace;
}

}  // namespace

TEST_CASE("needle fate: what is kept, what decay and the delta rule took, and where the question looks, by hand") {
  for (const MemoryRule rule : {MemoryRule::outer_product, MemoryRule::delta}) {
    const bool delta = rule == MemoryRule::delta;
    const std::vector<NeedleFate> fates = needle_fates(by_hand(rule), {2, 3}, 7);
    REQUIRE(fates.size() == 2);
    const NeedleFate &first = fates[0], &second = fates[1];
    CHECK((first.slot == 0 && first.written == 8 && first.visited));
    // 8, halved at 3 and at 7; then the delta rule takes half of row 0.
    CHECK(first.kept == Approx(delta ? 0.125 : 0.25));
    CHECK(first.decayed == Approx(0.75));
    CHECK(first.erased == Approx(delta ? 0.125 : 0.0).margin(1e-9));
    REQUIRE(first.events.size() == (delta ? 3U : 2U));
    CHECK((first.events[0].token == 3 && first.events[0].cause == Loss::decay && first.events[0].lost == Approx(0.5)));
    if (delta) CHECK((first.events[2].token == 7 && first.events[2].cause == Loss::erase && first.events[2].lost == Approx(0.125)));
    // q = (1, 1) reads rows 0 and 1: 2 + 2 of the needle's and row 1's, and what 7 wrote: 2, or ½ (2 − 2).
    CHECK(first.read_share == Approx(delta ? 1.0 / 4 : 2.0 / 6));
    CHECK((second.slot == 1 && second.written == 6 && second.kept == 1 && !second.visited && second.events.empty()));
    const NeedleSummary all = summary(fates);
    CHECK(all.unvisited == Approx(36.0 / 100));
    CHECK(all.kept == Approx((64 * first.kept + 36) / 100));
    CHECK(all.text().find("where the question does not look") != std::string::npos);
  }
  CHECK_THROWS_AS(needle_fates(by_hand(MemoryRule::delta), {2, 8}, 7), std::invalid_argument);
  CHECK(needle_fates(by_hand(MemoryRule::delta), {4, 5}, 7).empty());
  CHECK(summary({}).kept == 0);
}

TEST_CASE("needle fate: kept, decayed and erased add up to what was written, in every family") {
  int heads = 0;
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    const auto checkpoint = random_checkpoint(Config(small.config), 5);
    Run run(Model::load(checkpoint, make_cpu_backend(1)));
    run.read(some_ids(60), 60);
    MemoryTracer tracer(checkpoint, 1);
    for (std::int64_t l = 0; l < run.model().layers(); ++l) {
      for (const MemoryTrace& trace : tracer.trace(l, run.residual(l, 0, 60), 60)) {
        if (trace.decay_axis == DecayAxis::columns && trace.decay_width > 1) continue;
        for (const NeedleFate& fate : needle_fates(trace, {10, 14}, 59)) {
          CHECK(fate.kept + fate.decayed + fate.erased == Approx(1).margin(1e-6));
          CHECK((fate.written > 0 && fate.kept >= 0 && fate.decayed >= -1e-9));
          if (trace.rule == MemoryRule::outer_product) CHECK(std::abs(fate.erased) < 1e-9);
          for (std::size_t i = 1; i < fate.events.size(); ++i) CHECK(fate.events[i - 1].lost >= fate.events[i].lost);
          ++heads;
        }
      }
    }
  }
  CHECK(heads > 100);
}

}  // namespace statescope::test

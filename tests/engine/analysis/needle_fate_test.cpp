// A needle's fate: by hand, and its books balance in every family.
#include "engine/analysis/needle_fate.h"

#include <algorithm>
#include <cmath>

#include "engine/run/run.h"
#include "tests/catch.h"
#include "tests/engine/model/small_models.h"

namespace statescope::test::needle_fate_test {
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

TEST_CASE("needle fate: what is kept, what took the rest, and where the question looks, by hand") {
  for (const MemoryRule rule : {MemoryRule::outer_product, MemoryRule::delta}) {
    const bool delta = rule == MemoryRule::delta;
    const std::vector<NeedleFate> fates = fates_of(needle_places(by_hand(rule), {2, 3}, 7));
    REQUIRE(fates.size() == 2);
    const NeedleFate &first = fates[0], &second = fates[1];
    CHECK((first.slot == 0 && first.written == 8 && first.read));
    // 8, halved at 3 and at 7; then the delta rule takes half of row 0.
    CHECK(first.kept == Approx(delta ? 0.125 : 0.25));
    CHECK(first.decayed == Approx(0.75));
    CHECK(first.erased == Approx(delta ? 0.125 : 0.0).margin(1e-9));
    // The needle's key is row 0. There 7 wrote as much as is left, 2, or under the delta rule ½ · 2 beside 1; 3 wrote to row 1 alone.
    CHECK(first.overwritten == Approx(first.kept / 2));
    CHECK((first.misrouted == 0 && first.readable() == Approx(first.kept / 2)));
    REQUIRE(first.events.size() == (delta ? 4U : 3U));
    CHECK((first.events[0].token == 3 && first.events[0].cause == Loss::decay && first.events[0].lost == Approx(0.5)));
    CHECK((first.events[1].token == 7 && first.events[1].cause == Loss::decay && first.events[1].lost == Approx(0.25)));
    CHECK(std::count_if(first.events.begin(), first.events.end(), [&](const LossEvent& event) {
            return event.token == 7 && event.cause == Loss::overwrite && event.lost == Approx(first.overwritten);
          }) == 1);
    // q = (1, 1) reads rows 0 and 1: 2 + 2 of the needle's and row 1's, and what 7 wrote: 2, or ½ (2 − 2).
    CHECK(first.read_share == Approx(delta ? 1.0 / 4 : 2.0 / 6));
    CHECK((second.slot == 1 && second.written == 6 && second.kept == 1 && !second.read && second.misrouted == 1));
    REQUIRE(second.events.size() == 1);
    CHECK((second.events[0].cause == Loss::misroute && second.events[0].token == 7 && second.readable() == 0));

    const NeedleSummary all = summary(fates);
    CHECK(all.misrouted == Approx(36.0 / 100));
    CHECK(all.readable == Approx(64 * first.readable() / 100));
    CHECK(all.text().find(": decay took 0.48, misrouting 0.36, ") != std::string::npos);
  }
  CHECK_THROWS_AS(needle_places(by_hand(MemoryRule::delta), {2, 8}, 7), std::invalid_argument);
  CHECK(needle_places(by_hand(MemoryRule::delta), {4, 5}, 7).empty());
  CHECK((summary({}).readable == 0 && summary({}).decayed == 0));
}

TEST_CASE("needle fate: a token that comes to a slot and does not read there is misrouted") {
  MemoryTrace trace = by_hand(MemoryRule::outer_product);
  std::fill_n(trace.slots[0].q.begin() + 4, 2, 0.0F);  // 7 only writes
  const NeedleFate fate = needle_places(trace, {2, 3}, 7).at(0).fate;
  CHECK((!fate.read && fate.misrouted == Approx(0.25) && fate.overwritten == 0 && fate.read_share == 0));
}

TEST_CASE("needle verdict: layers count the same, heads by what was written; the largest loss is first") {
  const std::vector<NeedleFate> fates = fates_of(needle_places(by_hand(MemoryRule::outer_product), {2, 3}, 7, 1));
  const NeedleVerdict of_both = verdict(std::vector<std::vector<NeedleFate>>{{}, fates, fates});
  CHECK(of_both.summary.readable == Approx(summary(fates).readable));
  REQUIRE(of_both.losses.size() == 6);  // in each layer decay, overwriting and misrouting
  double lost = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    lost += of_both.losses[i].lost;
    CHECK((i == 0 || of_both.losses[i - 1].lost >= of_both.losses[i].lost));
  }
  CHECK(lost == Approx(1 - of_both.summary.readable));
  const NeedleLoss& worst = of_both.losses[0];
  CHECK((worst.layer == 1 && worst.slot == 0 && worst.cause == Loss::decay && worst.token == 3 && worst.lost == Approx(0.75 * 0.64 / 2)));
  CHECK((of_both.losses[2].cause == Loss::misroute && of_both.losses[2].lost == Approx(0.36 / 2)));
  CHECK(verdict({}).losses.empty());
}

namespace {

/// Every head of every memory with coefficients in every family: check(trace, fates of the needle with all events, question).
template <class Check>
void in_every_family(TokenRange needle, std::int64_t question, const Check& check) {
  constexpr std::int64_t tokens = 60;
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    const auto checkpoint = random_checkpoint(Config(small.config), 5);
    Run run(Model::load(checkpoint, make_cpu_backend(1)));
    run.read(some_ids(tokens), tokens);
    MemoryTracer tracer(checkpoint, 1);
    for (std::int64_t l = 0; l < run.model().layers(); ++l) {
      for (const MemoryTrace& trace : tracer.trace(l, run.residual(l, 0, tokens), tokens, nullptr, {}, run.companion(l, 0, tokens))) {
        if (trace.decay_axis == DecayAxis::columns && trace.decay_width > 1) continue;
        for (const NeedleFate& fate : fates_of(needle_places(trace, needle, question, std::string::npos))) check(trace, fate);
      }
    }
  }
}

}  // namespace

TEST_CASE("needle fate: all events together are what is missing to 1, in every family") {
  int heads = 0, misrouted = 0, overwritten = 0;
  in_every_family({10, 14}, 59, [&](const MemoryTrace& trace, const NeedleFate& fate) {
    CHECK(fate.kept + fate.decayed + fate.erased == Approx(1).margin(1e-6));
    double lost = 0;
    for (std::size_t i = 0; i < fate.events.size(); ++i) {
      lost += fate.events[i].lost;
      CHECK((fate.events[i].lost > 0 && fate.events[i].token >= 14));
      if (i > 0) CHECK(fate.events[i - 1].lost >= fate.events[i].lost);
    }
    CHECK(lost + fate.readable() == Approx(1).margin(1e-6));
    CHECK((fate.written > 0 && fate.readable() >= 0 && fate.overwritten >= 0));
    if (trace.rule == MemoryRule::outer_product) CHECK(std::abs(fate.erased) < 1e-9);
    ++heads;
    misrouted += fate.misrouted > 0 ? 1 : 0;
    overwritten += fate.overwritten > 0 ? 1 : 0;
  });
  CHECK((heads > 100 && misrouted > 10 && overwritten > 100));
}

TEST_CASE("needle fate: survival is 1 right after writing and falls only by listed events, in every family") {
  int falls = 0;
  in_every_family({10, 14}, 59, [&](const MemoryTrace& trace, const NeedleFate& fate) {
    const Survival curve = survival(trace, fate.slot, fate.head, 10, 14);
    const auto behind = std::lower_bound(curve.token.begin(), curve.token.end(), 14) - curve.token.begin();
    auto j = static_cast<std::size_t>(behind - 1);
    CHECK(curve.kept[j] / fate.written == 1);
    for (++j; j < curve.token.size() && curve.token[j] <= 59; ++j) {
      double listed = 0;
      for (const LossEvent& event : fate.events) {
        if (event.token == curve.token[j] && (event.cause == Loss::decay || event.cause == Loss::erase)) listed += event.lost;
      }
      const double fall = (curve.kept[j - 1] - curve.kept[j]) / fate.written;
      CHECK(std::abs(fall - listed) < 1e-9);
      falls += fall > 1e-9 ? 1 : 0;
    }
  });
  CHECK(falls > 1000);
}

TEST_CASE("interference: by its definition, from the coefficients of every row, in every family") {
  int compared = 0;
  in_every_family({10, 14}, 45, [&](const MemoryTrace& trace, const NeedleFate& fate) {
    if (!fate.read || fate.head > 0) return;
    const std::int64_t K = trace.K, V = trace.V;
    const SlotVisits& visits = trace.slots[static_cast<std::size_t>(fate.slot)];
    const auto value = [&](std::size_t j, std::int64_t column) {
      return visits.v[j * static_cast<std::size_t>(trace.H * V) + static_cast<std::size_t>(fate.head * V + column)];
    };
    // What the visits `in` left of the state after `token`, row by row; of a selective scan cell by cell.
    const auto state = [&](std::int64_t token, const auto& in) {
      std::vector<double> S(static_cast<std::size_t>(K * V));
      for (std::int64_t i = 0; trace.of_cells() && i < K * V; ++i) {
        const std::vector<double> c = cell_provenance(trace, fate.slot, fate.head, i / V, i % V, visits.until(token));
        for (std::size_t j = 0; j < c.size(); ++j) S[static_cast<std::size_t>(i)] += in(visits.token[j]) ? c[j] * value(j, i % V) : 0;
      }
      for (std::int64_t r = 0; !trace.of_cells() && r < K; ++r) {
        const Contributions c = row_provenance(trace, fate.slot, fate.head, r, token);
        for (std::size_t j = 0; j < c.token.size(); ++j) {
          for (std::int64_t i = 0; i < V && in(c.token[j]); ++i) S[static_cast<std::size_t>(r * V + i)] += c.coefficient[j] * value(j, i);
        }
      }
      return S;
    };
    // ‖AᵀB‖_F; of a selective scan, whose channels are read each by itself, of its diagonal
    const auto product = [&](const std::vector<double>& A, const std::vector<double>& B) {
      double squares = 0;
      for (std::int64_t i = 0; i < V; ++i) {
        for (std::int64_t l = 0; l < V; ++l) {
          if (trace.of_cells() && l != i) continue;
          double sum = 0;
          for (std::int64_t r = 0; r < K; ++r) sum += A[static_cast<std::size_t>(r * V + i)] * B[static_cast<std::size_t>(r * V + l)];
          squares += sum * sum;
        }
      }
      return std::sqrt(squares);
    };
    const auto needle = [](std::int32_t token) { return 10 <= token && token < 14; };
    const auto later = [](std::int32_t token) { return token >= 14; };
    const std::vector<double> C0 = state(13, needle);
    const Interference found = interference(trace, fate.slot, fate.head, 45, 10, 14);
    CHECK(found.needle == Approx(product(C0, state(45, needle)) / fate.written).epsilon(1e-5).margin(1e-9));
    CHECK(found.later == Approx(product(C0, state(45, later)) / fate.written).epsilon(1e-5).margin(1e-9));
    double all = 0;
    for (const double added : found.added) all += added;
    CHECK(found.later <= all * (1 + 1e-9));
    CHECK((found.token.empty() || (found.token.front() >= 14 && found.token.back() <= 45)));
    ++compared;
  });
  CHECK(compared > 20);
}

}  // namespace statescope::test::needle_fate_test

// Who wrote the states of S4 and S4D and the levels of log-linear attention, and what became of a needle there.
#include <cmath>
#include <complex>
#include <numeric>

#include "engine/analysis/parts.h"
#include "engine/answers/answers.h"
#include "engine/answers/levels.h"
#include "engine/answers/needle_places.h"
#include "engine/answers/state_space.h"
#include "engine/mixers/recurrent/hold.h"
#include "tests/catch.h"
#include "tests/engine/analysis/branch_evidence.h"

namespace statescope::test::state_space_answers_test {
namespace {

constexpr std::int64_t kTokens = 33;
constexpr TokenRange kNeedle{5, 8};
constexpr std::int64_t kQuestion = 30;

void check_sum(const History& history) { CHECK(std::abs(history.sum - history.shown) <= 1e-4 * std::abs(history.shown) + 1e-7); }

/// What the needle's tokens put into a cell of slots [0, slots) together.
double of_needle(const HistoryQuestion& question, std::int64_t slots, Evidence& evidence) {
  double sum = 0;
  HistoryQuestion one = question;
  for (one.slot = 0; one.slot < slots; ++one.slot) {
    const History history = answer(one, evidence);
    for (std::size_t i = 0; i < history.token.size(); ++i) {
      if (history.token[i] >= kNeedle.begin && history.token[i] < kNeedle.end) sum += double{history.contribution[i]};
    }
  }
  return sum;
}

/// S_{t−1} + decayed + erased + written = S_t in every cell.
Update checked_update(std::int64_t layer, std::int64_t head, std::int64_t t, Evidence& evidence) {
  Update update = answer(UpdateQuestion{.layer = layer, .head = head, .token = t}, evidence);
  const HeadState before = evidence.head_state(layer, head, t - 1), after = evidence.head_state(layer, head, t);
  double error = 0;
  for (std::size_t i = 0; i < after.values.size(); ++i) {
    const double all = double{before.values[i]} + update.decayed[i] + update.erased[i] + update.written[i];
    error = std::max(error, std::abs(all - after.values[i]));
  }
  CHECK(error <= 1e-5 * norm(after.values) + 1e-7);
  return update;
}

/// ‖Σ_s A_{t,s} x_s‖ of a level in head 3, A of the attention map and x = v / dt.
double read_by_attention(std::int64_t level, std::int64_t t, Evidence& evidence) {
  const AttentionMap map =
      answer(AttentionQuestion{.layer = 1, .head = 3, .rows = {t, 1, 1}, .columns = {0, 1, t + 1}, .slot = level}, evidence);
  const ChannelRows &v = *evidence.channel(1, "v"), &dt = *evidence.channel(1, "dt");
  const std::int64_t H = v.shape[0], V = v.shape[1];
  double squares = 0;
  for (std::int64_t c = 0; c < V; ++c) {
    double o = 0;
    for (std::int64_t s = 0; s <= t; ++s)
      o += double{map.weight[static_cast<std::size_t>(s)]} * v.values[static_cast<std::size_t>((s * H + 3) * V + c)] /
           dt.values[static_cast<std::size_t>(s * H + 3)];
    squares += o * o;
  }
  return std::sqrt(squares);
}

}  // namespace

TEST_CASE("state space: a token's coefficient in a cell is that of Ā^(t−s) B̄") {
  SmallEvidence diagonal(s4_config("diag"), kTokens), dense(s4_config("hippo"), kTokens);
  const std::int64_t t = kTokens - 1, n = 3, c = 7;
  const StateSpaceParameters complex = state_space_parameters(1, diagonal.evidence), real = state_space_parameters(1, dense.evidence);
  const auto at = static_cast<std::size_t>(c * complex.states + n);
  const std::complex<double> A(-std::exp(double{complex.A[at]}), complex.A_imag[at]);
  const HeldState held = zero_order_hold(A, complex.step(c));
  const History re = answer(HistoryQuestion{.layer = 1, .slot = 0, .row = n, .column = c, .token = t}, diagonal.evidence),
                im = answer(HistoryQuestion{.layer = 1, .slot = 1, .row = n, .column = c, .token = t}, diagonal.evidence),
                cell = answer(HistoryQuestion{.layer = 1, .row = n, .column = c, .token = t}, dense.evidence);
  REQUIRE(std::ssize(re.token) == kTokens);
  for (std::int64_t s = 0; s < kTokens; ++s) {
    const auto i = static_cast<std::size_t>(s);
    const std::complex<double> expected = std::pow(held.A, static_cast<double>(t - s)) * held.B;
    CHECK(std::complex<double>(re.coefficient[i], im.coefficient[i]).real() == Approx(expected.real()).margin(1e-5 * std::abs(held.B)));
    CHECK(im.coefficient[i] == Approx(expected.imag()).margin(1e-5 * std::abs(held.B)));
    CHECK((re.written[i] == Approx(held.B.real()) && im.written[i] == Approx(held.B.imag())));
    // Ā^l B̄ is what the first l + 1 steps write without what the first l do
    const double step = real.step(c);
    const std::vector<double> more = zero_order_hold(real.A, real.B, step * static_cast<double>(t - s + 1)).B,
                              less = zero_order_hold(real.A, real.B, step * static_cast<double>(t - s)).B;
    CHECK(cell.coefficient[i] == Approx(more[n] - less[n]).margin(1e-6));
  }
}

TEST_CASE("state space: in a branch too, after an intervention of every kind, tokens add up to the states and to what is read") {
  const std::vector<std::vector<std::string>> cases{{"scale row 2 by 3 at 12", "scale state by -0.5 at 15"},
                                                    {"import run 1 at 12", "scale row 1 by 0.5 at 20"},
                                                    {"zero state at 12"},
                                                    {"import run 1 token 20 at 12", "zero row 3 at 12", "import run 1 at 25"}};
  for (const char* mode : {"diag", "hippo"}) {
    for (const std::vector<std::string>& lines : cases) {
      BranchEvidence branch(s4_config(mode), lines, kTokens);
      INFO(mode << ": " << lines.front());
      for (const std::int64_t t : {11, 12, 13, 15, 16, 20, 25, 32}) {
        INFO("after token " << t);
        for (std::int64_t slot = 0; slot < branch.evidence.layer(1).slots(); ++slot) {
          for (const std::int64_t row : {1, 2, 3, -1})
            check_sum(answer(HistoryQuestion{.layer = 1, .slot = slot, .row = row, .token = t}, branch.evidence));
          check_sum(answer(HistoryQuestion{.layer = 1, .slot = slot, .row = 2, .column = 9, .token = t}, branch.evidence));
        }
        const History read = answer(HistoryQuestion{.layer = 1, .token = t, .read = true}, branch.evidence);
        check_sum(read);
        CHECK(norm(checked_update(1, 0, t, branch.evidence).erased) == 0);
        if (lines.front() == "import run 1 at 12" && t > 12) CHECK((read.token.front() == 12 && read.token[1] == 13));
      }
      const std::vector<NeedlePlace> places = needle_places(1, kNeedle, kQuestion, 100, branch.evidence);
      REQUIRE(places.size() == 1);
      CHECK(places[0].fate.kept + places[0].fate.decayed == Approx(1));
      if (!lines.front().starts_with("scale")) CHECK(places[0].fate.kept == 0);
    }
  }
}

TEST_CASE("levels: in a branch too, after an intervention of every kind, those that a level holds add up to it, and to what is read") {
  const std::vector<std::vector<std::string>> cases{{"scale row 2 by 3 at 12", "scale head 3 by 0.5 at 15"},
                                                    {"import run 1 at 12", "scale row 1 by 0.5 at 20"},
                                                    {"zero state at 12"},
                                                    {"scale state by -2 at 12", "import run 1 at 25"},
                                                    {"freeze decay from 12 until 20"}};
  for (const std::vector<std::string>& lines : cases) {
    BranchEvidence branch(log_linear_config(), lines, kTokens);
    INFO(lines.front());
    for (const std::int64_t t : {11, 12, 13, 15, 16, 20, 25, 32}) {
      checked_update(1, 3, t, branch.evidence);
      for (std::int64_t level = 0; level < 7; ++level) {
        INFO("level " << level << " of token " << t);
        for (const std::int64_t row : {1, 2, -1})
          check_sum(answer(HistoryQuestion{.layer = 1, .slot = level, .head = 3, .row = row, .token = t}, branch.evidence));
        check_sum(answer(HistoryQuestion{.layer = 1, .slot = level, .head = 3, .row = 2, .column = 9, .token = t}, branch.evidence));
        const History read = answer(HistoryQuestion{.layer = 1, .slot = level, .head = 3, .token = t, .read = true}, branch.evidence);
        check_sum(read);
        if (lines.front().starts_with("scale row"))
          CHECK(read_by_attention(level, t, branch.evidence) == Approx(read.shown).epsilon(1e-4).margin(1e-9));
      }
    }
    for (const NeedlePlace& place : needle_places(1, kNeedle, kQuestion, 100, branch.evidence)) {
      CHECK(place.fate.kept + place.fate.decayed == Approx(1));
      if (!lines.front().starts_with("scale row") && !lines.front().starts_with("freeze"))
        CHECK(place.fate.kept == Approx(0).margin(1e-12));
    }
  }
}

TEST_CASE("needle: in a state space and in levels, what is left of it is what its tokens still contribute to all cells") {
  for (const json& config : {s4_config("diag"), s4_config("hippo"), log_linear_config({{"n_groups", 2}})}) {
    SmallEvidence run(config, kTokens);
    const LayerInfo& layer = run.evidence.layer(1);
    INFO(config.dump());
    for (const NeedlePlace& place : needle_places(1, kNeedle, kQuestion, 100, run.evidence)) {
      HistoryQuestion cell{.layer = 1, .head = place.fate.head, .token = kQuestion};
      double squares = 0;
      const bool levels = has_levels(layer);
      for (cell.row = 0; cell.row < layer.rows; ++cell.row) {
        for (cell.column = 0; cell.column < layer.columns; ++cell.column) {
          // The parts of a complex state are apart; levels add up.
          for (cell.slot = 0; cell.slot < (levels ? 1 : layer.slots()); ++cell.slot) {
            const double all = levels ? of_needle(cell, 6, run.evidence) : 0;
            double one = all;
            if (!levels) {
              const History history = answer(cell, run.evidence);
              for (std::int64_t s = kNeedle.begin; s < kNeedle.end; ++s) one += double{history.contribution[static_cast<std::size_t>(s)]};
            }
            squares += one * one;
          }
        }
      }
      CHECK(place.fate.kept * place.fate.written == Approx(std::sqrt(squares)).epsilon(1e-4));
      CHECK(place.fate.erased == 0);
      CHECK((place.fate.read && place.fate.decayed > 0 && place.fate.overwritten > 0));
      double lost = 0;
      for (const LossEvent& event : place.fate.events) lost += event.lost;
      CHECK(lost + place.fate.readable() == Approx(1));
    }
  }
}

TEST_CASE("needle: its part of what the question reads of a state space is that of its tokens") {
  for (const char* mode : {"diag", "hippo"}) {
    SmallEvidence run(s4_config(mode), kTokens);
    const NeedleFate fate = needle_places(1, kNeedle, kQuestion, 1, run.evidence).at(0).fate;
    const StateSpaceRun space(1, run.evidence);
    double of_needle = 0, all = 0;
    for (std::int64_t c = 0; c < space.space.channels; ++c) {
      const ChannelRule rule(space.space, c);
      double o = 0, part = 0;
      space.walk_back(rule, c, kQuestion, false, 0, [&](std::int64_t s, const std::vector<double>& X, bool) {
        const double read = std::inner_product(X.begin(), X.end(), rule.C.begin(), 0.0) * space.entered(s, c);
        o += read;
        if (s >= kNeedle.begin && s < kNeedle.end) part += read;
      });
      of_needle += part * o;
      all += o * o;
    }
    CHECK(fate.read_share == Approx(of_needle / all).epsilon(1e-4));
  }
}

TEST_CASE("state space: what is read of the real parts and of the imaginary parts is told apart") {
  SmallEvidence run(s4_config("diag"), kTokens);
  const StateSpaceRun space(1, run.evidence);
  const HeadState after = run.evidence.head_state(1, 0, kQuestion);
  for (const std::int64_t slot : {0, 1}) {
    double squares = 0;
    for (std::int64_t c = 0; c < space.space.channels; ++c) {
      const std::vector<double> X = states_of_channel(after, c), C = ChannelRule(space.space, c).C;
      double o = 0;
      for (std::int64_t n = slot * space.space.states; n < (slot + 1) * space.space.states; ++n)
        o += X[static_cast<std::size_t>(n)] * C[static_cast<std::size_t>(n)];
      squares += o * o;
    }
    const History read = answer(HistoryQuestion{.layer = 1, .slot = slot, .token = kQuestion, .read = true}, run.evidence);
    check_sum(read);
    CHECK(read.shown == Approx(std::sqrt(squares)).epsilon(1e-4));
  }
}

TEST_CASE("state space: diagonal states decay as their weights say, in the view, in observe and where a token is split") {
  SmallEvidence run(s4_config("diag"), kTokens), dense(s4_config("hippo"), kTokens);
  const StateSpaceParameters space = state_space_parameters(1, run.evidence);
  const Decay decay = answer(DecayQuestion{.layer = 1, .slot = 1, .from = 0, .to = kTokens}, run.evidence);
  REQUIRE(decay.axis == Decay::Axis::rows);
  const Observables observed = answer(ObservablesQuestion{.layer = 1, .from = 3, .to = 4, .names = {"decay"}}, run.evidence);
  REQUIRE(observed.quantities.size() == 1);
  for (std::int64_t n = 0; n < space.states; ++n) {
    double mean = 0;
    for (std::int64_t c = 0; c < space.channels; ++c)
      mean -=
          space.step(c) * std::exp(double{space.A[static_cast<std::size_t>(c * space.states + n)]}) / static_cast<double>(space.channels);
    const auto at = static_cast<std::size_t>(n);
    CHECK(decay.log_decay[at] == Approx(mean));
    CHECK(decay.half_life[at] == Approx(-std::log(2.0) / mean));
    CHECK(observed.quantities[0].values[at] == Approx(std::exp(mean)));
  }
  CHECK_THROWS_WITH(answer(DecayQuestion{.layer = 1, .from = 0, .to = kTokens}, dense.evidence),
                    Catch::Matchers::StartsWith("The coefficients of layer 1 do not decay one by one"));
  CHECK(answer(ObservablesQuestion{.layer = 1, .from = 3, .to = 4, .names = {"decay"}}, dense.evidence).quantities.empty());
}

TEST_CASE("levels: what a token takes, moves and writes; which rows it writes, and how old they are") {
  SmallEvidence run(log_linear_config(), kTokens);
  const LayerInfo& layer = run.evidence.layer(1);
  const std::vector<float>& k = run.evidence.channel(1, "k")->values;
  const auto cells = static_cast<std::size_t>(layer.rows * layer.columns);
  // Token 8 merges levels 0 to 3, which held 0 to 7, into level 4.
  const Update update = checked_update(1, 2, 8, run.evidence);
  for (const std::int64_t level : {0, 1, 2, 3, 4}) {
    const auto first = static_cast<std::size_t>(level) * cells;
    CHECK((norm(std::span(update.erased).subspan(first, cells)) > 0) == (level < 4));
    CHECK((norm(std::span(update.written).subspan(first, cells)) > 0) == (level == 0 || level == 4));
  }
  CHECK(norm(checked_update(1, 2, 0, run.evidence).decayed) == 0);
  const WriteSpreads spreads = answer(WriteSpreadQuestion{1, 2, 4, 9}, run.evidence);
  CHECK(spreads.slots == layer.slots());
  for (std::size_t i = 0; i < 5; ++i) CHECK((spreads.effective[i] > 1 && std::isnan(spreads.effective[5 + i])));
  const RowAges ages = answer(RowAgesQuestion{1, 2, 13}, run.evidence);  // level 0: 13, 1: 12, 3: 8 to 11, 4: 0 to 7
  CHECK((ages.written[0] == 0 && ages.written[static_cast<std::size_t>(layer.rows)] == 1));
  for (std::int64_t r = 0; r < layer.rows; ++r) {
    CHECK(ages.written[static_cast<std::size_t>(2 * layer.rows + r)] == -1);
    const std::int32_t of_third = ages.written[static_cast<std::size_t>(3 * layer.rows + r)];
    CHECK((of_third == -1 || (of_third >= 2 && of_third <= 5)));
  }
  const Observables observed =
      answer(ObservablesQuestion{.layer = 1, .from = 8, .to = 9, .names = {"write_weight", "decay", "write_ratio"}}, run.evidence);
  REQUIRE(observed.quantities.size() == 3);
  CHECK(observed.quantities[0].values[0] == k[static_cast<std::size_t>(8 * std::ssize(k) / kTokens)]);
}

TEST_CASE("levels: what a token reads of all of them is the sum over tokens, each with the λ of its level") {
  SmallEvidence run(log_linear_config({{"n_groups", 2}}), kTokens);
  const LayerInfo& layer = run.evidence.layer(1);
  const LevelsTrace levels = trace_of_levels(1, 0, layer.heads, run.evidence);
  const MemoryTrace& all = levels.trace;
  const ChannelRows& scale = *run.evidence.channel(1, "level_scale");
  for (const std::int64_t t : {0, 7, 8, 30}) {
    const MemoryTrace read = levels_as_read(levels, 1, 0, t, run.evidence).trace;
    for (std::int64_t head = 0; head < layer.heads; ++head) {
      const HeadState state = run.evidence.head_state(1, head, t);
      const Contributions parts = implicit_attention(read, 0, head, t);
      double error = 0, size = 0;
      for (std::int64_t c = 0; c < layer.columns; ++c) {
        double o = 0, sum = 0;
        for (std::int64_t level = 0; level < layer.slots(); ++level) {
          for (std::int64_t r = 0; r < layer.rows; ++r)
            o += double{scale.values[static_cast<std::size_t>((t * layer.heads + head) * layer.slots() + level)]} *
                 all.slots[0].q[static_cast<std::size_t>((t * layer.heads + head) * layer.rows + r)] *
                 state.matrix(level)[r * layer.columns + c];
        }
        for (std::int64_t s = 0; s <= t; ++s)
          sum += parts.coefficient[static_cast<std::size_t>(s)] *
                 read.slots[0].v[static_cast<std::size_t>((s * layer.heads + head) * layer.columns + c)];
        error += (o - sum) * (o - sum);
        size += o * o;
      }
      CHECK(std::sqrt(error) <= 1e-5 * std::sqrt(size));
    }
  }
  CHECK(needle_places(1, kNeedle, 30, 1, run.evidence).at(0).fate.slot == 5);  // 7 = 00111₂ and 30 = 11110₂ differ first in bit 4
}

}  // namespace statescope::test::state_space_answers_test

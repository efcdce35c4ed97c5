// In every family with a state: who wrote it, what a token reads of it, and what became of a needle there. None is left out without a word.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "engine/analysis/parts.h"
#include "engine/answers/answers.h"
#include "tests/catch.h"
#include "tests/engine/analysis/evidence_of.h"

namespace statescope::test::every_family_test {
namespace {

constexpr std::int64_t kTokens = 29;

/// Largest of |Σ − what is there| over its norm.
struct Errors {
  double cell = 0, row = 0, whole = 0, read = 0;
};

double size_of(const float* values, std::int64_t n) { return norm({values, static_cast<std::size_t>(n)}); }

void check_sum(double& worst, const History& history, double size) {
  REQUIRE(history.token.size() == history.contribution.size());
  CHECK(std::ranges::is_sorted(history.token));
  const double error = std::abs(history.sum - history.shown);
  CHECK(error <= 1e-4 * size + 1e-9);
  if (size > 1e-9) worst = std::max(worst, error / size);
}

/// Of one slot and head, after a token: cells and the row are as large as `size_of` says of the state itself.
void check_place(SmallEvidence& asked, HistoryQuestion question, const HeadState& state, Errors& errors) {
  const float* S = state.matrix(question.slot);
  for (const std::int64_t row : {std::int64_t{0}, state.rows / 2, state.rows - 1}) {
    question.row = row;
    const double size = size_of(S + row * state.columns, state.columns);
    for (const std::int64_t column : {std::int64_t{0}, state.columns - 1}) {
      question.column = column;
      const History cell = answer(question, asked.evidence);
      CHECK(cell.shown == S[row * state.columns + column]);
      check_sum(errors.cell, cell, size);
    }
    question.column = -1;
    const History of_row = answer(question, asked.evidence);
    CHECK(of_row.shown == Approx(size));
    check_sum(errors.row, of_row, size);
  }
  question.row = -1;
  const History whole = answer(question, asked.evidence);
  CHECK(whole.shown == Approx(size_of(S, state.rows * state.columns)));
  check_sum(errors.whole, whole, whole.shown);
  question.read = true;
  const History read = answer(question, asked.evidence);
  check_sum(errors.read, read, read.shown);
}

void check_layer(SmallEvidence& asked, std::int64_t l, Errors& errors) {
  const LayerInfo& layer = asked.evidence.layer(l);
  for (const std::int64_t token : {std::int64_t{0}, kTokens - 1}) {
    for (const std::int64_t head : std::set<std::int64_t>{0, layer.heads - 1}) {
      const HeadState state = asked.evidence.head_state(l, head, token);
      for (std::int64_t slot = 0; slot < state.slots; ++slot) {
        INFO("layer " << l << ", slot " << slot << ", head " << head << ", token " << token);
        check_place(asked, {.layer = l, .slot = slot, .head = head, .token = token}, state, errors);
      }
    }
  }
}

}  // namespace

TEST_CASE("every family: the history of a cell is the cell, of a read what is read; what keeps no state says so") {
  Errors errors;
  for (const std::string& name : golden_cases()) {
    INFO(name);
    SmallEvidence asked(open_checkpoint(golden_root() / name), kTokens);
    for (std::int64_t l = 0; l < asked.model->layers(); ++l) {
      if (asked.evidence.layer(l).has_state())
        check_layer(asked, l, errors);
      else
        CHECK_THROWS_WITH(answer(HistoryQuestion{.layer = l}, asked.evidence),
                          Catch::Matchers::ContainsSubstring(") keeps no matrix state, "));
    }
  }
  CHECK((errors.cell < 1e-4 && errors.row < 1e-4 && errors.whole < 1e-4 && errors.read < 1e-4));
}

TEST_CASE("every family: a needle has a fate in each layer with a state, whose parts add up to 1") {
  const NeedleQuestion question{.begin = 5, .end = 8, .question = kTokens - 2};
  std::set<std::string> with_fate, without;
  for (const std::string& name : golden_cases()) {
    INFO(name);
    SmallEvidence asked(open_checkpoint(golden_root() / name), kTokens);
    const NeedleStory story = answer(question, asked.evidence);
    for (std::int64_t l = 0; l < asked.model->layers(); ++l) {
      INFO("layer " << l);
      const LayerInfo& layer = asked.evidence.layer(l);
      const NeedleStory::LayerFate& fate = story.layers[static_cast<std::size_t>(l)];
      CHECK(fate.has_memory == layer.has_state());
      (layer.has_state() ? with_fate : without).insert(layer.memory);
      if (!fate.has_memory) continue;
      CHECK(fate.clear + fate.decayed + fate.erased + fate.overwritten + fate.misrouted == Approx(1));
      CHECK((fate.kept.front() == Approx(1) && !fate.curves.empty()));
    }
  }
  CHECK(with_fate ==
        std::set<std::string>{"WKV", "decayed outer product", "gated delta rule", "log-linear attention", "selective scan", "state space"});
  CHECK(without == std::set<std::string>{"no memory", "short convolution", "softmax attention"});
}

}  // namespace statescope::test::every_family_test

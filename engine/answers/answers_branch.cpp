// What a branch has that the one which it left has not.
#include <algorithm>

#include "engine/answers/answers.h"

namespace statescope {
namespace {

constexpr std::int64_t kPredictionsAtOnce = 16;

}  // namespace

BranchPredictions answer(const BranchPredictionsQuestion&, Evidence& evidence) {
  BranchPredictions all;
  const std::int64_t first = all.from = evidence.info().branch.from;
  for (std::int64_t from = first; from < evidence.tokens(); from += kPredictionsAtOnce) {
    const std::int64_t to = std::min(from + kPredictionsAtOnce, evidence.tokens());
    const RunDifference difference = evidence.difference(from, to);
    all.kl.insert(all.kl.end(), difference.kl.begin(), difference.kl.end());
    all.logits.insert(all.logits.end(), difference.logits.begin(), difference.logits.end());
    if (all.changed < 0) all.changed = difference.changed.value_or(-1);
    all.parted = difference.parted.value_or(-1);
    evidence.tell(static_cast<double>(to - first) / static_cast<double>(evidence.tokens() - first));
  }
  return all;
}

BranchStates answer(const BranchStatesQuestion& question, Evidence& evidence) {
  BranchStates all;
  const std::int64_t layers = evidence.model().layers();
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const StateDifference state = evidence.state_difference(layer, question.token);
    all.left.push_back(state.a);
    all.here.push_back(state.b);
    all.difference.push_back(state.difference);
    evidence.tell(static_cast<double>(layer + 1) / static_cast<double>(layers));
  }
  return all;
}

}  // namespace statescope

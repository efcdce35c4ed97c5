#include "engine/answers/state_edits.h"

#include <algorithm>

namespace statescope {

std::vector<StateEdit> state_edits(std::int64_t layer, std::int64_t head, Evidence& evidence) {
  std::vector<StateEdit> edits;
  const auto rows = static_cast<std::size_t>(evidence.layer(layer).rows);
  for (const Stretch& stretch : evidence.course(layer)) {
    const auto& [scaled, imported] = stretch.edits;
    if (scaled.empty() && !imported) continue;
    StateEdit& edit = edits.emplace_back(StateEdit{stretch.to - 1, std::vector<double>(rows, 1.0), {}});
    for (const ScaleState& scale : scaled) {
      for (std::size_t r = 0; r < rows && (!scale.head || *scale.head == head); ++r)
        if (!scale.row || *scale.row == static_cast<std::int64_t>(r)) edit.factors[r] *= scale.factor;
    }
    if (imported || std::ranges::any_of(scaled, [](const ScaleState& scale) { return scale.factor < 0; }))
      edit.replaced = evidence.head_state(layer, head, edit.token);
  }
  return edits;
}

}  // namespace statescope

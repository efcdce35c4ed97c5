// What interventions did to one head of a layer's states.
#pragma once

#include <optional>
#include <vector>

#include "engine/analysis/evidence.h"

namespace statescope {

struct StateEdit {
  std::int64_t token = 0;             // behind which it was
  std::vector<double> factors;        // [K] of the rows
  std::optional<HeadState> replaced;  // by these: nothing of earlier tokens is left; also where a factor is below 0 (MemoryTrace)
};
/// Ascending; tokens are the same for all heads, and so is whether states were replaced.
std::vector<StateEdit> state_edits(std::int64_t layer, std::int64_t head, Evidence& evidence);

}  // namespace statescope

// A view's questions answered at once, where no window waits for them.
#pragma once

#include <vector>

#include "engine/analysis/evidence.h"
#include "engine/findings/findings.h"

namespace statescope {

/// What cannot be answered is said in its place. Throws Error where the evidence's progress was cancelled: Cancelled.
Findings answers(const std::vector<Question>& questions, Evidence& evidence);

/// The first layer that routes, else the first with a state.
std::int64_t interesting_layer(const ModelInfo& model);

}  // namespace statescope

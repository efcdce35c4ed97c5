// Where a needle lies in a layer, and what became of it there, in every family.
#pragma once

#include "engine/analysis/evidence.h"
#include "engine/analysis/needle_fate.h"

namespace statescope {

/// Most written first; none where the layer keeps no state. The levels of log-linear attention are one memory, whose place is the level
/// that holds the needle's last token at the question, and what the question reads of it is weighed by λ; a state space is one memory,
/// whose real and imaginary parts are one (spec §12.12). Throws Error.
std::vector<NeedlePlace> needle_places(std::int64_t layer, TokenRange needle, std::int64_t question, std::size_t events, Evidence& evidence,
                                       const std::function<void(double fraction)>& tell = {});

}  // namespace statescope

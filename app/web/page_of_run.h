// A page of a run alone: views that move together, token by token.
#pragma once

#include <string>
#include <vector>

#include "app/web/page.h"

namespace statescope {

/// Views of runs along the tokens of the first one's. With `left_out`, views that have nothing to show are left out, and it gets why: a
/// line each; without, and where none of them shows anything, that is an error. Throws Error; Cancelled.
Page page_of_run(const std::vector<FigurePanel>& panels, Recorder& recorder, std::vector<std::string>* left_out = nullptr);

}  // namespace statescope

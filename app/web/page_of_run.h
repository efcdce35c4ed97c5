// A page of a run alone: views that move together, token by token.
#pragma once

#include <string>
#include <vector>

#include "app/web/page.h"

namespace statescope {

/// The views that a run of the model opens with, as the window names them: "routing", "state".
std::vector<std::string> opening_views(const ModelInfo& model);

/// Views of runs along the tokens of the first one's. Throws Error; Cancelled.
Page page_of_run(const std::vector<FigurePanel>& panels, Recorder& recorder);

}  // namespace statescope

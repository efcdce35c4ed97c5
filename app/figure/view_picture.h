// Panels that are views of a run.
#pragma once

#include <memory>

#include "app/figure/panel.h"
#include "app/figure/runs.h"

namespace statescope {

/// The panel's view with all that it asks answered. Throws Error where there is nothing to show; Cancelled.
std::unique_ptr<PanelPicture> make_view_picture(const FigurePanel& panel, FigureRuns& runs);

/// The panel with its run's own places in it: layer and tokens as numbers from 0, the prompt itself.
FigurePanel settled(const FigurePanel& panel, FigureRuns& runs);

}  // namespace statescope

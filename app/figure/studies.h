// What a figure shows of several runs, or of score files, by name.
#pragma once

#include <memory>

#include "app/figure/panel.h"
#include "app/figure/runs.h"

namespace statescope {

/// The study that the panel names, worked out. Throws Error where there is none, or it lacks what it needs; "cancelled".
std::unique_ptr<PanelPicture> make_study(const FigurePanel& panel, FigureRuns& runs);

}  // namespace statescope

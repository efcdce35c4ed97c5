// A view as a file for a paper.
#pragma once

#include <QString>

#include "views/view.h"

namespace statescope {

struct FigureSize {
  double width_mm = 89, height_mm = 60;
  double type_pt = 7;  // of what a view writes in its usual size
};

/// Draws what the view has last built in the light theme, as PDF or SVG (vectors, heatmaps as one picture) or PNG (600 dpi), after the
/// ending of `path`; nothing is left half-written. Throws Error where the ending is another one or the file cannot be written.
void write_figure(const View& view, const FigureSize& size, const QString& path);

}  // namespace statescope

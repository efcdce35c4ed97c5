// Colours of figures, and how they are seen.
#pragma once

#include <QImage>
#include <array>

#include "app/figure/spec.h"
#include "views/canvas.h"

namespace statescope {

/// From the smallest number to the largest, ever lighter.
const std::array<Color, 256>& figure_table(FigureColors colors);
/// Of signed numbers likewise, 0 in the middle; null: diverging, which a printer without colours makes ambiguous.
const std::array<Color, 256>* figure_signs(FigureColors colors);

/// Of people without red, green or blue cones, or of a printer without colours.
enum class FigureEyes { protan, deutan, tritan, grey };
QImage seen_by(const QImage& image, FigureEyes eyes);

}  // namespace statescope

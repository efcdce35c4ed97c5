// Colours as eyes without red, green or blue cones see them.
#pragma once

#include <array>

#include "views/canvas.h"

namespace statescope {

/// Red, green, blue of linear sRGB, 0 … 1.
using Light = std::array<double, 3>;

Light light_of(Color color);
/// Rounded to what a screen has.
Color color_of(const Light& light);

enum class ColorVision { usual, protanopia, deuteranopia, tritanopia };
/// What it looks like to them (Machado, Oliveira and Fernandes 2009, severity 1).
Light seen_with(ColorVision vision, const Light& light);

/// Relative luminance, 0 … 1: all that a print without colours keeps.
double luminance(const Light& light);

}  // namespace statescope

// From numbers to colours. Maps are interpolated in OKLab, so equal steps of the value look equally large.
#pragma once

#include <array>

#include "views/canvas.h"

namespace statescope {

/// The colour of `map` at t in 0 … 1 (clamped). NaN has no colour: canvases hatch it.
Color color_at(ColorMap map, float t);

/// The same in 256 steps, for textures and images.
const std::array<Color, 256>& color_table(ColorMap map);

/// Where `value` lies on the scale: 0 … 255, clamped; `value` is not NaN.
int color_index(const ColorScale& scale, float value);

/// WCAG 2.1: 1 (equal) … 21 (black on white). Alpha is ignored.
float contrast_ratio(Color a, Color b);

/// Black or white, whichever is easier to read on `fill`: always above 4.5 : 1.
Color readable_on(Color fill);

/// `color` at `opacity` times its own.
Color faded(Color color, float opacity);

/// What `color` looks like on an opaque ground.
Color over(Color color, Color ground);

}  // namespace statescope

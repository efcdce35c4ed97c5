// How lines are told apart: by colour and, where paper may be grey, by dashes and markers as well.
#pragma once

#include <cstdint>
#include <span>

#include "views/view.h"

namespace statescope {

/// `number`: of a dash and a marker; −1: unbroken, without a marker.
struct LineLook {
  Color color;
  std::int64_t number = -1;
};

/// Through the points, with the look's dash.
void draw_line(Canvas& canvas, std::span<const Point> points, const LineLook& look, float width, const Frame& frame);
/// `radius`: half its width, about, in units.
void draw_marker(Canvas& canvas, Point at, const LineLook& look, float radius, const Frame& frame);

/// Lines of views have dashes and markers on paper alone: a window has colours.
LineLook on(const Frame& frame, const LineLook& look);

}  // namespace statescope

#include "views/line_look.h"

#include <cmath>
#include <numbers>
#include <vector>

namespace statescope {
namespace {

using Points = std::vector<Point>;

/// Lengths of ink and gap, in turn; empty: an unbroken line.
std::span<const float> dash_pattern(std::int64_t number) {
  static constexpr float dashes[] = {7, 3}, dots[] = {2, 2.5f}, mixed[] = {8, 2.5f, 2, 2.5f};
  static constexpr std::span<const float> patterns[] = {{}, dashes, dots, mixed};
  return number < 0 ? patterns[0] : patterns[number % 4];
}

/// A regular polygon whose first corner stands `turn` of a circle after the right.
Points polygon(Point at, int corners, double turn, float radius) {
  Points points;
  for (int i = 0; i < corners; ++i) {
    const double angle = 2 * std::numbers::pi * (turn + static_cast<double>(i) / corners);
    points.push_back({at.x + radius * static_cast<float>(std::cos(angle)), at.y + radius * static_cast<float>(std::sin(angle))});
  }
  return points;
}

}  // namespace

LineLook on(const Frame& frame, const LineLook& look) { return {look.color, frame.shown.cursor ? -1 : look.number}; }

void draw_line(Canvas& canvas, std::span<const Point> points, const LineLook& look, float width, const Frame& frame) {
  const float s = frame.scale;
  const std::span<const float> pattern = dash_pattern(look.number);
  if (pattern.empty()) return canvas.path(points, look.color, width);
  std::size_t part = 0;
  float left = pattern[0] * s;  // of the part that is being drawn
  Points ink{points.front()};
  for (std::size_t i = 1; i < points.size(); ++i) {
    Point from = points[i - 1];
    for (float rest = std::hypot(points[i].x - from.x, points[i].y - from.y); rest > 0;) {
      const float step = std::min(left, rest), share = step / rest;
      from = {std::lerp(from.x, points[i].x, share), std::lerp(from.y, points[i].y, share)};
      rest -= step;
      left -= step;
      if (part % 2 == 0) ink.push_back(from);
      if (left > 0) continue;
      if (part % 2 == 0) canvas.path(ink, look.color, width);
      part = (part + 1) % pattern.size();
      left = pattern[part] * s;
      ink.assign(1, from);
    }
  }
  if (part % 2 == 0 && ink.size() > 1) canvas.path(ink, look.color, width);
}

void draw_marker(Canvas& canvas, Point at, const LineLook& look, float radius, const Frame& frame) {
  if (look.number < 0) return;
  const float r = radius * frame.scale;
  const auto filled = [&](int corners, double turn, float half) { canvas.path(polygon(at, corners, turn, half), look.color, 0, true); };
  const auto crossed = [&](float x, float y) {
    canvas.line({at.x - x, at.y - y}, {at.x + x, at.y + y}, look.color, 0.43f * r);
    canvas.line({at.x - y, at.y + x}, {at.x + y, at.y - x}, look.color, 0.43f * r);
  };
  switch (look.number % 7) {
    case 0:
      return filled(16, 0, r);
    case 1:
      return filled(4, 0.125, 1.3f * r);
    case 2:
      return filled(3, -0.25, 1.4f * r);
    case 3:
      return filled(4, 0, 1.4f * r);
    case 4:
      return filled(3, 0.25, 1.4f * r);
    case 5:
      return crossed(r, r);
    default:
      return crossed(1.3f * r, 0);
  }
}

}  // namespace statescope

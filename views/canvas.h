// All that a view may draw with. Implementations: the screen, paper (PDF, SVG, PNG) and text, in app/canvas/.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace statescope {

class DeviceRows;

/// sRGB, 0 … 255 each.
struct Color {
  std::uint8_t r = 0, g = 0, b = 0, a = 255;
  bool operator==(const Color&) const = default;
};

/// Logical units: 1 is a pixel at 1× and 1/96 inch on paper. y grows downwards.
struct Point {
  float x = 0, y = 0;
};
struct Size {
  float w = 0, h = 0;
};
struct Rect {
  float x = 0, y = 0, w = 0, h = 0;
  float right() const { return x + w; }
  float bottom() const { return y + h; }
  bool contains(Point p) const { return p.x >= x && p.x < right() && p.y >= y && p.y < bottom(); }
};

/// A place for data along axes. `all` is where all of them would lie: the same place, unless a reader has enlarged them.
struct Plot : Rect {
  Rect all;

  Plot() = default;
  Plot(Rect shown) : Rect(shown), all(shown) {}
  Plot(Rect shown, Rect all_) : Rect(shown), all(all_) {}
  Plot(float left, float top, float width, float height) : Plot(Rect{left, top, width, height}) {}
  bool shows_part() const { return all.w > w || all.h > h; }
};

enum class Font { label, value };  // proportional; monospaced with tabular figures
enum class Align { left, center, right };

struct TextStyle {
  Font font = Font::label;
  float size = 13;  // height of the em, logical units
  Color color = {};
  Align align = Align::left;  // where the given point lies; vertically it is the middle of the line
  bool bold = false;
};

enum class ColorMap { viridis, cividis, diverging, diverging_dark };  // diverging_dark: its middle is the dark ground

/// From numbers to colours: `low` is the first colour of the map, `high` the last; NaN is drawn hatched grey, or, `blank`, not at all.
/// Logarithmic: equal ratios are equal steps, low > 0, and what is not above it has the first colour.
struct ColorScale {
  ColorMap map = ColorMap::viridis;
  float low = 0, high = 1;
  bool logarithmic = false;
  bool blank = false;
  bool operator==(const ColorScale&) const = default;
};

/// `rows` × `columns` cells, row-major, as one image: never one rectangle per cell.
struct Heatmap {
  std::int64_t rows = 0, columns = 0;
  std::span<const float> values;
  ColorScale scale;
  std::shared_ptr<const DeviceRows> on_device = {};  // which hold the same values too, from number `first` on; null: nothing does
  std::int64_t first = 0;
};

/// A place among the numbers of a view: in one of its sheets (sheet.h), a place on each axis. It comes back to the view (View::tooltip,
/// View::on_hit).
struct Hit {
  static constexpr std::int64_t all = -1, here = -2;  // every place on the axis; the cursor's
  std::int64_t sheet = 0;
  std::array<std::int64_t, 3> at{all, all, all};

  Hit() = default;
  constexpr Hit(std::int64_t in, std::int64_t first, std::int64_t second = all, std::int64_t third = all)
      : sheet(in), at{first, second, third} {}
  /// Whether it has a place on each of the first `axes`.
  bool names(std::size_t axes) const {
    for (std::size_t axis = 0; axis < axes; ++axis)
      if (at[axis] < 0) return false;
    return true;
  }
  auto operator<=>(const Hit&) const = default;
};

/// A region that answers the pointer: a grid of `rows` × `columns` equal cells. The first answers as `first`, the others as further places
/// on the axes that go down and across.
struct HitGrid {
  Hit first;
  std::int64_t rows = 1, columns = 1;
  std::size_t down = 0, across = 1;
};

class Canvas {
 public:
  virtual ~Canvas() = default;

  virtual Size size() const = 0;
  /// How many cells of a heatmap, side by side, a unit has room for.
  virtual float fineness() const { return 1; }
  /// Width of `text` in logical units.
  virtual float text_width(std::string_view text, const TextStyle& style) const = 0;

  virtual void fill_rect(Rect rect, Color color, float corner = 0) = 0;
  virtual void stroke_rect(Rect rect, Color color, float width, float corner = 0) = 0;
  virtual void line(Point from, Point to, Color color, float width) = 0;
  /// A polyline through the points, or, when `filled`, the closed polygon (which must be convex).
  virtual void path(std::span<const Point> points, Color color, float width, bool filled = false) = 0;
  /// A smooth curve leaving and arriving horizontally: the ribbons of routing.
  virtual void ribbon(Point from, Point to, Color color, float width) = 0;
  virtual void text(Point at, std::string_view text, const TextStyle& style) = 0;
  virtual void heatmap(Rect rect, const Heatmap& cells) = 0;
  virtual void push_clip(Rect rect) = 0;
  virtual void pop_clip() = 0;
  /// Later regions lie above earlier ones. Paper keeps none.
  virtual void hit(Rect rect, const HitGrid& region) = 0;
  /// What lies in `plot` can be enlarged in it, along one axis or both, while the rest of the drawing stays (Frame::in_sight).
  virtual void zooms(Rect /*plot*/, bool /*across*/, bool /*down*/) {}
  /// Something has no room and is left out, or is cut short: a window says so in its own way, a figure is not made of that size.
  virtual void left_out() {}
};

}  // namespace statescope

// Whether a drawing has the room that it needs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/canvas/text_canvas.h"

namespace statescope {

/// A bar of colours as it was drawn, with what stands beside it.
struct DrawnBar {
  Rect rect;
  ColorScale scale;
  struct Mark {
    float share = 0;  // 0 at the bar's foot, 1 at its top
    std::string text;
  };
  std::vector<Mark> marks = {};
};

/// Measures texts as paper has them, and hears of what a view leaves out.
class RoomCanvas final : public TextCanvas {
 public:
  /// `family`: of type; empty: the shipped ones.
  RoomCanvas(Size size, std::string family) : TextCanvas(size), family_(std::move(family)) {}

  float text_width(std::string_view text, const TextStyle& style) const override;
  void fill_rect(Rect, Color, float) override {}
  void stroke_rect(Rect, Color, float, float) override {}
  void line(Point, Point, Color, float) override {}
  void path(std::span<const Point>, Color, float, bool) override {}
  void ribbon(Point, Point, Color, float) override {}
  void heatmap(Rect rect, const Heatmap& cells) override;
  void hit(Rect, const HitGrid&) override {}
  void left_out() override { left_out_ = true; }

  /// All is there, within its place, and no text lies over another.
  bool has_room() const;
  bool has_left_out() const { return left_out_; }
  /// A text that lies over another, or beyond its place, in words; empty: there is none.
  std::string collision() const;
  /// Whether some colours show signed numbers.
  bool diverging() const { return diverging_; }
  /// Of the colours, upright and narrow.
  std::optional<DrawnBar> bar() const;

 private:
  std::string family_;
  bool left_out_ = false, diverging_ = false;
  std::optional<DrawnBar> bar_;  // without marks
};

}  // namespace statescope

// Whether a drawing has the room that it needs.
#pragma once

#include <optional>
#include <string>

#include "app/canvas/text_canvas.h"

namespace statescope {

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
  /// Where the bar of the colours stands, upright and narrow.
  std::optional<Rect> bar() const { return bar_; }

 private:
  std::string family_;
  bool left_out_ = false, diverging_ = false;
  std::optional<Rect> bar_;
};

}  // namespace statescope

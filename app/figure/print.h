// How a figure's texts are set: numbers and the symbols of equations as a paper has them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "views/canvas.h"

namespace statescope {

/// "−0.5", "1.2×10⁻⁶", and no "−0.00": of a text that is a number, or, within words, behind a space.
std::string printed_numbers(std::string_view text, bool words);

/// A part of a text: on the line (0), above (1) or below (−1) it.
struct SetPart {
  std::string text;
  int level = 0;
  bool operator==(const SetPart&) const = default;
};
/// "S_{t−1}", "σ_i", "G^Q": letters of equations with what stands below and above them. Words with such signs, as names of models have, are
/// one part.
std::vector<SetPart> set_parts(std::string_view text);

/// Draws on another canvas, with texts so set.
class PrintCanvas final : public Canvas {
 public:
  explicit PrintCanvas(Canvas& paper) : paper_(paper) {}

  Size size() const override { return paper_.size(); }
  float fineness() const override { return paper_.fineness(); }
  float text_width(std::string_view text, const TextStyle& style) const override;
  void fill_rect(Rect rect, Color color, float corner) override { paper_.fill_rect(rect, color, corner); }
  void stroke_rect(Rect rect, Color color, float width, float corner) override { paper_.stroke_rect(rect, color, width, corner); }
  void line(Point from, Point to, Color color, float width) override { paper_.line(from, to, color, width); }
  void path(std::span<const Point> points, Color color, float width, bool filled) override { paper_.path(points, color, width, filled); }
  void ribbon(Point from, Point to, Color color, float width) override { paper_.ribbon(from, to, color, width); }
  void text(Point at, std::string_view text, const TextStyle& style) override;
  void heatmap(Rect rect, const Heatmap& cells) override { paper_.heatmap(rect, cells); }
  void push_clip(Rect rect) override { paper_.push_clip(rect); }
  void pop_clip() override { paper_.pop_clip(); }
  void hit(Rect rect, const HitGrid& region) override { paper_.hit(rect, region); }
  void left_out() override { paper_.left_out(); }

 private:
  Canvas& paper_;
};

}  // namespace statescope

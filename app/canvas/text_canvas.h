// A canvas that writes down what was drawn, one line per primitive: for tests, and for looking at a view without a display.
#pragma once

#include <string>
#include <vector>

#include "views/canvas.h"
#include "views/hits.h"

namespace statescope {

class TextCanvas : public Canvas {
 public:
  /// A text as it was placed: `rect` is its box (0.6 em per character wide, one em high), `clip` the clip it was drawn under.
  struct Placed {
    Rect rect, clip;
    std::string text;
  };

  explicit TextCanvas(Size size) : size_(size), clips_{{0, 0, size.w, size.h}} {}

  Size size() const override { return size_; }
  float text_width(std::string_view text, const TextStyle& style) const override;
  void fill_rect(Rect rect, Color color, float corner) override;
  void stroke_rect(Rect rect, Color color, float width, float corner) override;
  void line(Point from, Point to, Color color, float width) override;
  void path(std::span<const Point> points, Color color, float width, bool filled) override;
  void ribbon(Point from, Point to, Color color, float width) override;
  void text(Point at, std::string_view text, const TextStyle& style) override;
  void heatmap(Rect rect, const Heatmap& cells) override;
  void push_clip(Rect rect) override;
  void pop_clip() override;
  void hit(Rect rect, const HitGrid& region) override;
  void zooms(Rect plot, bool across, bool down) override { hits_.add_plot(plot, across, down); }

  /// One line per primitive, in the order of drawing.
  const std::vector<std::string>& lines() const { return lines_; }
  const std::vector<Placed>& texts() const { return texts_; }
  const HitRegions& hits() const { return hits_; }
  /// Clips pushed and not yet popped.
  std::size_t open_clips() const { return clips_.size() - 1; }

 private:
  Size size_;
  std::vector<Rect> clips_;  // the first is the whole canvas
  std::vector<std::string> lines_;
  std::vector<Placed> texts_;
  HitRegions hits_;
};

}  // namespace statescope

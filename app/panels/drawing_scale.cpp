#include "app/panels/drawing_scale.h"

#include <algorithm>
#include <cmath>

namespace statescope {
namespace {

constexpr float kStep = 0.05f, kNearly = 0.995f;

/// Draws nothing: only where plots are is asked.
class PlotCanvas final : public Canvas {
 public:
  explicit PlotCanvas(const Canvas& like) : like_(like) {}

  /// Of the largest plot; where there is none, of all that answers the pointer.
  float picture() const { return largest_ > 0 ? largest_ : answering_; }
  bool has_plot() const { return largest_ > 0; }
  Size size() const override { return like_.size(); }
  float fineness() const override { return like_.fineness(); }
  float text_width(std::string_view text, const TextStyle& style) const override { return like_.text_width(text, style); }
  void zooms(Rect plot, bool, bool) override { largest_ = std::max(largest_, plot.w * plot.h); }

  void fill_rect(Rect, Color, float) override {}
  void stroke_rect(Rect, Color, float, float) override {}
  void line(Point, Point, Color, float) override {}
  void path(std::span<const Point>, Color, float, bool) override {}
  void ribbon(Point, Point, Color, float) override {}
  void text(Point, std::string_view, const TextStyle&) override {}
  void heatmap(Rect, const Heatmap&) override {}
  void push_clip(Rect) override {}
  void pop_clip() override {}
  void hit(Rect rect, const HitGrid&) override { answering_ += rect.w * rect.h; }

 private:
  const Canvas& like_;
  float largest_ = 0, answering_ = 0;
};

}  // namespace

float DrawingScale::of(const View& view, const Canvas& canvas, Rect area, const Frame& frame) {
  if (frame.shown.hints || frame.scale <= 1) return frame.scale;
  const Subject subject{&view, view.mode(), area.w, area.h, frame.scale};
  if (subject == known_) return scale_;
  const auto picture_at = [&](float scale, bool fills) {
    PlotCanvas plots(canvas);
    Frame at = frame;
    at.scale = scale;
    at.shown.fills = fills;
    view.draw(plots, area, at);
    return plots;
  };
  const PlotCanvas before = picture_at(1, false);
  if (!before.has_plot()) return frame.scale;  // or nothing to show yet
  const auto is_as_large = [&](int steps) {
    return picture_at(1 + static_cast<float>(steps) * kStep, frame.shown.fills).picture() >= kNearly * before.picture();
  };
  auto steps = static_cast<int>(std::lround((frame.scale - 1) / kStep));
  while (steps > 0 && !is_as_large(steps)) --steps;
  known_ = subject;
  return scale_ = 1 + static_cast<float>(steps) * kStep;
}

}  // namespace statescope

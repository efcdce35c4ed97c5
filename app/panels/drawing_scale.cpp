#include "app/panels/drawing_scale.h"

#include <algorithm>
#include <cmath>

namespace statescope {
namespace {

constexpr float kStep = 0.05f, kNearly = 0.97f;

/// Draws nothing: only where plots are is asked.
class PlotCanvas final : public Canvas {
 public:
  explicit PlotCanvas(const Canvas& like) : like_(like) {}

  float largest() const { return largest_; }
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
  void hit(Rect, const HitGrid&) override {}

 private:
  const Canvas& like_;
  float largest_ = 0;
};

}  // namespace

float DrawingScale::of(const View& view, const Canvas& canvas, Rect area, const Frame& frame) {
  if (frame.shown.hints || frame.scale <= 1) return frame.scale;
  const Subject subject{&view, view.mode(), area.w, area.h, frame.scale};
  if (subject == known_) return scale_;
  const auto largest_at = [&](float scale) {
    PlotCanvas plots(canvas);
    Frame at = frame;
    at.scale = scale;
    view.draw(plots, area, at);
    return plots.largest();
  };
  const float least = kNearly * largest_at(1);
  if (least <= 0) return frame.scale;  // no plot, or nothing to show yet
  auto steps = static_cast<int>(std::lround((frame.scale - 1) / kStep));
  while (steps > 0 && largest_at(1 + static_cast<float>(steps) * kStep) < least) --steps;
  known_ = subject;
  return scale_ = 1 + static_cast<float>(steps) * kStep;
}

}  // namespace statescope

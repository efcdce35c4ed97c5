// A canvas over QPainter: PNG (QImage), PDF (QPdfWriter), SVG (QSvgGenerator), and a plain widget where there is no OpenGL.
#pragma once

#include <QImage>
#include <QPainter>
#include <array>
#include <vector>

#include "views/canvas.h"
#include "views/hits.h"

namespace statescope {

/// What it is drawn for, and what a figure has otherwise than the window.
struct PaperStyle {
  QString family = {};                                 // of type; empty: the shipped ones
  float line_width = 1;                                // of lines and outlines, times what is asked for
  const std::array<Color, 256>* magnitudes = nullptr;  // instead of viridis
  const std::array<Color, 256>* signs = nullptr;       // instead of the diverging colours
  bool outlines = false;                               // of type, in place of letters
  float fineness = 1;                                  // Canvas::fineness
  bool moving = false;                                 // drawn again at every step: pixels, as fast as they come
};

class PaperCanvas : public Canvas {
 public:
  /// Draws with `painter`, which must be active and outlive the canvas; its transformation takes logical units to the device, so who wants
  /// a figure of 89 mm on a 1200 dpi writer scales the painter by 1200 / 96. `hits`, if given, collects the regions that answer the
  /// pointer. Type sizes are rounded to whole logical units. Needs a QGuiApplication.
  PaperCanvas(QPainter& painter, Size size, HitRegions* hits = nullptr, PaperStyle style = {});
  ~PaperCanvas() override;
  PaperCanvas(const PaperCanvas&) = delete;
  PaperCanvas& operator=(const PaperCanvas&) = delete;

  Size size() const override { return size_; }
  float fineness() const override { return style_.fineness; }
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
  void zooms(Rect plot, bool across, bool down) override;

 private:
  QPainter& painter_;
  Size size_;
  HitRegions* hits_;
  PaperStyle style_;
  std::vector<Rect> clips_;  // the first is the whole canvas
};

/// One pixel per cell, or `enlarge` × `enlarge` where a picture of single pixels would be smoothed by its viewer. NaN is hatched if the
/// picture has room for it, else grey.
QImage heatmap_image(const Heatmap& cells, int enlarge, const std::array<Color, 256>& colors);

/// The shipped typeface of that style at `style.size` pixels, the system's where it is missing; or that of `family`.
QFont paper_font(const TextStyle& style, const QString& family = {});

}  // namespace statescope

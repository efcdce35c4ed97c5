// A canvas that keeps what was drawn, for a browser that draws it again: each primitive as numbers, what answers the pointer beside it.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "views/canvas.h"
#include "views/hits.h"

namespace statescope {

/// Widths of texts as the shipped fonts have them, each measured once. Needs a QGuiApplication.
class TextWidths {
 public:
  float of(std::string_view text, const TextStyle& style);

 private:
  std::array<std::map<std::pair<float, std::string>, float, std::less<>>, 4> known_;  // by face, then size and text
};

class WebCanvas : public Canvas {
 public:
  /// Parts of a unit, in which lengths are written.
  static constexpr int fineness_of_units = 20;

  enum class Op { fill, stroke, line, path, polygon, ribbon, text, heatmap, clip, end_clip };
  struct Command {
    Op op = Op::fill;
    Color color = {};
    std::string arguments;  // JSON without brackets: "0,0,200,40,0"; everything but colours
    int cells = -1;         // of a heatmap: its place in cells()
  };
  struct Cells {
    std::int64_t rows = 0, columns = 0;
    std::vector<float> values;
    ColorScale scale;
  };
  struct Region {
    Rect rect, visible;  // visible: under the clip it was given under
    HitGrid grid;
  };

  /// `widths` outlive the canvas.
  WebCanvas(Size size, TextWidths& widths) : size_(size), widths_(widths), clips_{{0, 0, size.w, size.h}} {}

  Size size() const override { return size_; }
  float text_width(std::string_view text, const TextStyle& style) const override { return widths_.of(text, style); }
  void fill_rect(Rect rect, Color color, float corner) override;
  void stroke_rect(Rect rect, Color color, float width, float corner) override;
  void line(Point from, Point to, Color color, float width) override;
  /// Points but the first are written as steps from the one before.
  void path(std::span<const Point> points, Color color, float width, bool filled) override;
  void ribbon(Point from, Point to, Color color, float width) override;
  /// With its width, which the browser keeps to whatever its fonts are.
  void text(Point at, std::string_view text, const TextStyle& style) override;
  void heatmap(Rect rect, const Heatmap& cells) override;
  void push_clip(Rect rect) override;
  void pop_clip() override;
  void hit(Rect rect, const HitGrid& region) override;

  /// In the order of drawing.
  const std::vector<Command>& commands() const { return commands_; }
  const std::vector<Cells>& cells() const { return cells_; }
  const std::vector<Region>& regions() const { return regions_; }

 private:
  void add(Op op, Color color, std::string arguments) { commands_.push_back({op, color, std::move(arguments)}); }

  Size size_;
  TextWidths& widths_;
  std::vector<Rect> clips_;  // the first is the whole canvas
  std::vector<Command> commands_;
  std::vector<Cells> cells_;
  std::vector<Region> regions_;
};

/// In double quotation marks; broken UTF-8 becomes U+FFFD.
std::string json_text(std::string_view text);

}  // namespace statescope

#include "app/canvas/text_canvas.h"

#include <fmt/format.h>

#include <algorithm>

namespace statescope {
namespace {

std::string word(Point p) { return fmt::format("{:.4g},{:.4g}", p.x, p.y); }
std::string word(Rect r) { return fmt::format("{:.4g},{:.4g} {:.4g}x{:.4g}", r.x, r.y, r.w, r.h); }
std::string word(Color c) {
  const std::string opaque = fmt::format("#{:02x}{:02x}{:02x}", c.r, c.g, c.b);
  return c.a == 255 ? opaque : fmt::format("{}{:02x}", opaque, c.a);
}

std::string_view word(ColorMap map) {
  switch (map) {
    case ColorMap::viridis:
      return "viridis";
    case ColorMap::cividis:
      return "cividis";
    case ColorMap::diverging:
      return "diverging";
    case ColorMap::diverging_dark:
      return "diverging_dark";
  }
  return "";
}

std::string_view word(Align align) { return align == Align::left ? "left" : align == Align::center ? "center" : "right"; }

std::ptrdiff_t characters(std::string_view utf8) {
  return std::ranges::count_if(utf8, [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; });
}

}  // namespace

float TextCanvas::text_width(std::string_view text, const TextStyle& style) const {
  return 0.6f * style.size * static_cast<float>(characters(text));
}

void TextCanvas::fill_rect(Rect rect, Color color, float) { lines_.push_back(fmt::format("fill {} {}", word(rect), word(color))); }

void TextCanvas::stroke_rect(Rect rect, Color color, float width, float) {
  lines_.push_back(fmt::format("stroke {} {} {:.3g}", word(rect), word(color), width));
}

void TextCanvas::line(Point from, Point to, Color color, float width) {
  lines_.push_back(fmt::format("line {} {} {} {:.3g}", word(from), word(to), word(color), width));
}

void TextCanvas::path(std::span<const Point> points, Color color, float width, bool filled) {
  std::string line = filled ? "polygon" : "path";
  for (const Point p : points) line += fmt::format(" {}", word(p));
  lines_.push_back(fmt::format("{} {} {:.3g}", line, word(color), width));
}

void TextCanvas::ribbon(Point from, Point to, Color color, float width) {
  lines_.push_back(fmt::format("ribbon {} {} {} {:.3g}", word(from), word(to), word(color), width));
}

void TextCanvas::text(Point at, std::string_view text, const TextStyle& style) {
  const float width = text_width(text, style);
  const float x = style.align == Align::left ? at.x : style.align == Align::center ? at.x - width / 2 : at.x - width;
  texts_.push_back({{x, at.y - style.size / 2, width, style.size}, clips_.back(), std::string(text)});
  lines_.push_back(fmt::format("text {} {} {:.3g}{} {} '{}'", word(at), word(style.align), style.size, style.bold ? " bold" : "",
                               word(style.color), text));
}

void TextCanvas::heatmap(Rect rect, const Heatmap& cells) {
  lines_.push_back(fmt::format("heatmap {} {}x{} {} [{:.6g}, {:.6g}]", word(rect), cells.rows, cells.columns, word(cells.scale.map),
                               cells.scale.low, cells.scale.high));
}

void TextCanvas::push_clip(Rect rect) {
  lines_.push_back("clip " + word(rect));
  clips_.push_back(intersection(rect, clips_.back()));
}

void TextCanvas::pop_clip() {
  lines_.push_back("end clip");
  clips_.pop_back();
}

void TextCanvas::hit(Rect rect, const HitGrid& region) {
  lines_.push_back(
      fmt::format("hit {} {}:{} {}x{}", word(rect), region.first.sheet, fmt::join(region.first.at, ","), region.rows, region.columns));
  hits_.add(rect, clips_.back(), region);
}

}  // namespace statescope

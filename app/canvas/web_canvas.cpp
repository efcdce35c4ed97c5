#include "app/canvas/web_canvas.h"

#include <fmt/format.h>

#include <QFontMetricsF>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/canvas/paper_canvas.h"

namespace statescope {
namespace {

long parts(float length) { return std::lround(length * WebCanvas::fineness_of_units); }
std::string words(Point p) { return fmt::format("{},{}", parts(p.x), parts(p.y)); }
std::string words(Rect r) { return fmt::format("{},{},{},{}", parts(r.x), parts(r.y), parts(r.w), parts(r.h)); }

/// 1: of fixed width; 2: bold.
int face(const TextStyle& style) { return (style.font == Font::value ? 1 : 0) + (style.bold ? 2 : 0); }

}  // namespace

std::string json_text(std::string_view text) {
  return nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

float TextWidths::of(std::string_view text, const TextStyle& style) {
  auto& known = known_[static_cast<std::size_t>(face(style))];
  const auto [place, is_new] = known.try_emplace({style.size, std::string(text)});
  if (is_new)
    place->second = static_cast<float>(
        QFontMetricsF(paper_font(style)).horizontalAdvance(QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()))));
  return place->second;
}

void WebCanvas::fill_rect(Rect rect, Color color, float corner) { add(Op::fill, color, fmt::format("{},{}", words(rect), parts(corner))); }

void WebCanvas::stroke_rect(Rect rect, Color color, float width, float corner) {
  add(Op::stroke, color, fmt::format("{},{},{}", words(rect), parts(width), parts(corner)));
}

void WebCanvas::line(Point from, Point to, Color color, float width) {
  add(Op::line, color, fmt::format("{},{},{}", words(from), words(to), parts(width)));
}

void WebCanvas::path(std::span<const Point> points, Color color, float width, bool filled) {
  std::string arguments = std::to_string(parts(width));
  long x = 0, y = 0;
  for (const Point p : points) {
    arguments += fmt::format(",{},{}", parts(p.x) - x, parts(p.y) - y);
    x = parts(p.x);
    y = parts(p.y);
  }
  add(filled ? Op::polygon : Op::path, color, std::move(arguments));
}

void WebCanvas::ribbon(Point from, Point to, Color color, float width) {
  add(Op::ribbon, color, fmt::format("{},{},{}", words(from), words(to), parts(width)));
}

void WebCanvas::text(Point at, std::string_view text, const TextStyle& style) {
  add(Op::text, style.color,
      fmt::format("{},{},{},{},{},{}", words(at), std::lround(style.size), face(style), static_cast<int>(style.align),
                  parts(text_width(text, style)), json_text(text)));
}

void WebCanvas::heatmap(Rect rect, const Heatmap& cells) {
  if (cells.rows == 0 || cells.columns == 0) return;
  add(Op::heatmap, {}, words(rect));
  commands_.back().cells = static_cast<int>(cells_.size());
  cells_.push_back({cells.rows, cells.columns, {cells.values.begin(), cells.values.end()}, cells.scale});
}

void WebCanvas::push_clip(Rect rect) {
  add(Op::clip, {}, words(rect));
  clips_.push_back(intersection(rect, clips_.back()));
}

void WebCanvas::pop_clip() {
  add(Op::end_clip, {}, {});
  clips_.pop_back();
}

void WebCanvas::hit(Rect rect, const HitGrid& region) { regions_.push_back({rect, intersection(rect, clips_.back()), region}); }

}  // namespace statescope

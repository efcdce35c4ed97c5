#include "app/canvas/paper_canvas.h"

#include <QFontDatabase>
#include <QFontMetricsF>
#include <QPaintEngine>
#include <QPainterPath>
#include <QPolygonF>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "views/colormaps.h"

// The resources of a static library are there only if somebody asks for them; the macro wants the global namespace.
static void init_resources() { Q_INIT_RESOURCE(assets); }

namespace statescope {
namespace {

constexpr int kHatch = 8;                   // pixels per cell that a hatched cell needs
constexpr std::int64_t kMostShapes = 4096;  // cells that are printed as shapes, which are sharp at any size: 64 × 64
constexpr double kPrintedDpi = 300;         // of a printed picture of more cells, at least
constexpr Color kNoNumber{160, 160, 160}, kStripe{90, 90, 90};

QColor to_qt(Color c) { return QColor(c.r, c.g, c.b, c.a); }
QRectF to_qt(Rect r) { return {r.x, r.y, r.w, r.h}; }
QPointF to_qt(Point p) { return {p.x, p.y}; }
QString to_qt(std::string_view text) { return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())); }

/// Corners that stay inside: a sharp peak must not rise above its value.
QPen round_pen(Color color, float width) { return QPen(to_qt(color), width, Qt::SolidLine, Qt::FlatCap, Qt::RoundJoin); }
QPen flat_pen(Color color, float width) { return QPen(to_qt(color), width, Qt::SolidLine, Qt::FlatCap, Qt::MiterJoin); }

/// Families of the shipped fonts: label, value.
std::array<QString, 2> load_families() {
  init_resources();
  const auto load = [](const char* file, QFontDatabase::SystemFont fallback) {
    const int id = QFontDatabase::addApplicationFont(file);
    return id < 0 ? QFontDatabase::systemFont(fallback).family() : QFontDatabase::applicationFontFamilies(id).constFirst();
  };
  const std::array<QString, 2> families = {load(":/fonts/DejaVuSans.ttf", QFontDatabase::GeneralFont),
                                           load(":/fonts/DejaVuSansMono.ttf", QFontDatabase::FixedFont)};
  QFontDatabase::addApplicationFont(":/fonts/DejaVuSans-Bold.ttf");
  QFontDatabase::addApplicationFont(":/fonts/DejaVuSansMono-Bold.ttf");
  return families;
}

/// Whether some cell is hatched.
bool has_nan(const Heatmap& cells) {
  return !cells.scale.blank && std::ranges::any_of(cells.values, [](float v) { return std::isnan(v); });
}

/// Whether what is drawn stays shapes: PDF and SVG.
bool keeps_shapes(const QPainter& painter) {
  if (painter.paintEngine() == nullptr) return false;
  const QPaintEngine::Type type = painter.paintEngine()->type();
  return type == QPaintEngine::SVG || type == QPaintEngine::Pdf;
}

/// How often a cell's pixel is repeated: viewers smooth small pictures, whatever the file asks for, and printers refuse coarse ones.
int enlargement(const Heatmap& cells, Rect rect, const QPainter& painter) {
  constexpr std::int64_t kMostPixels = 1 << 24;
  std::int64_t wanted = has_nan(cells) ? kHatch : 1;
  if (keeps_shapes(painter)) {
    const double dots = kPrintedDpi * painter.deviceTransform().m11() / painter.device()->logicalDpiX();  // to a unit
    const auto repeated = [&](float length, std::int64_t count) {
      return static_cast<std::int64_t>(std::ceil(dots * length / static_cast<double>(count)));
    };
    wanted = std::max({wanted, repeated(rect.w, cells.columns), repeated(rect.h, cells.rows)});
  }
  while (wanted > 1 && cells.rows * cells.columns * wanted * wanted > kMostPixels) --wanted;
  return static_cast<int>(wanted);
}

/// Where the n cells of a side begin and end, [n + 1]; moved by half a cell the outer ones reach to the edges all the same.
std::vector<double> cell_edges(double from, double length, std::int64_t n, bool moved) {
  std::vector<double> edges;
  for (std::int64_t i = 0; i <= n; ++i) {
    const double at = moved && i > 0 && i < n ? static_cast<double>(i) + 0.5 : static_cast<double>(i);
    edges.push_back(from + length * at / static_cast<double>(n));
  }
  return edges;
}

/// The cells as shapes, those of a colour together. Viewers let what lies below shine through where two shapes meet: there lie the same
/// cells, moved by half of one.
void draw_shapes(QPainter& painter, Rect rect, const Heatmap& cells, const std::array<Color, 256>& colors) {
  constexpr int none = 256;
  painter.setPen(Qt::NoPen);
  for (const bool moved : {true, false}) {
    const std::vector<double> xs = cell_edges(rect.x, rect.w, cells.columns, moved), ys = cell_edges(rect.y, rect.h, cells.rows, moved);
    std::map<int, QPainterPath> shapes;
    for (std::int64_t row = 0; row < cells.rows; ++row) {
      const auto color_of = [&](std::int64_t column) {
        const float v = cells.values[static_cast<std::size_t>(row * cells.columns + column)];
        return std::isnan(v) ? none : color_index(cells.scale, v);
      };
      const double top = ys[static_cast<std::size_t>(row)], height = ys[static_cast<std::size_t>(row + 1)] - top;
      for (std::int64_t column = 0, end = 0; column < cells.columns; column = end) {
        const int color = color_of(column);
        for (end = column + 1; end < cells.columns && color_of(end) == color;) ++end;
        const double left = xs[static_cast<std::size_t>(column)];
        shapes[color].addRect(left, top, xs[static_cast<std::size_t>(end)] - left, height);
      }
    }
    if (cells.scale.blank) shapes.erase(none);
    for (const auto& [color, shape] : shapes)
      painter.fillPath(shape, to_qt(color == none ? kNoNumber : colors[static_cast<std::size_t>(color)]));
  }
}

/// What is no number is striped.
void draw_stripes(QPainter& painter, Rect rect, const Heatmap& cells) {
  const double w = rect.w / static_cast<double>(cells.columns), h = rect.h / static_cast<double>(cells.rows);
  if (!has_nan(cells)) return;
  QList<QLineF> lines;
  for (std::int64_t i = 0; i < cells.rows * cells.columns; ++i) {
    if (!std::isnan(cells.values[static_cast<std::size_t>(i)])) continue;
    const double x = rect.x + w * static_cast<double>(i % cells.columns), y = rect.y + h * static_cast<double>(i / cells.columns);
    lines << QLineF(x, y + h / 2, x + w / 2, y) << QLineF(x, y + h, x + w, y) << QLineF(x + w / 2, y + h, x + w, y + h / 2);
  }
  painter.setPen(flat_pen(kStripe, static_cast<float>(std::min(w, h)) / kHatch));
  painter.drawLines(lines);
}

/// The same on a screen, where the pixels are known.
int enlargement_on_screen(const Heatmap& cells, Rect rect, const QPainter& painter) {
  const double each = std::min(rect.w / static_cast<float>(cells.columns), rect.h / static_cast<float>(cells.rows));
  return each * painter.deviceTransform().m11() >= kHatch && has_nan(cells) ? kHatch : 1;
}

/// The cells that `clip` shows, and in `rect` where they lie; `values` holds them.
Heatmap in_sight(const Heatmap& cells, Rect clip, Rect& rect, std::vector<float>& values) {
  const Rect seen = intersection(rect, clip);
  if (seen.w <= 0 || seen.h <= 0) return {};
  const float w = rect.w / static_cast<float>(cells.columns), h = rect.h / static_cast<float>(cells.rows);
  const auto before = [](float length, float each) { return static_cast<std::int64_t>(std::floor(length / each)); };
  const auto until = [](float length, float each) { return static_cast<std::int64_t>(std::ceil(length / each)); };
  const std::int64_t left = before(seen.x - rect.x, w), right = std::min(cells.columns, until(seen.right() - rect.x, w));
  const std::int64_t top = before(seen.y - rect.y, h), bottom = std::min(cells.rows, until(seen.bottom() - rect.y, h));
  for (std::int64_t row = top; row < bottom; ++row) {
    const auto line = cells.values.begin() + row * cells.columns;
    values.insert(values.end(), line + left, line + right);
  }
  rect = {rect.x + w * static_cast<float>(left), rect.y + h * static_cast<float>(top), w * static_cast<float>(right - left),
          h * static_cast<float>(bottom - top)};
  return {bottom - top, right - left, values, cells.scale};
}

/// Line by line, which is a tenth of the time: Qt finds out what a polyline covers as one shape, however often it goes up and down.
void draw_lines(QPainter& painter, const QPolygonF& points, QPen pen) {
  pen.setCapStyle(Qt::SquareCap);  // the next line begins within it
  painter.setPen(pen);
  QList<QLineF> lines;
  for (qsizetype i = 0; i + 1 < points.size(); ++i) lines << QLineF(points[i], points[i + 1]);
  painter.drawLines(lines);
}

}  // namespace

QFont paper_font(const TextStyle& style, const QString& family) {
  static const std::array<QString, 2> families = load_families();
  QFont font(family.isEmpty() ? families[style.font == Font::value ? 1 : 0] : family);
  font.setPixelSize(std::max(1, static_cast<int>(std::lround(style.size))));
  font.setBold(style.bold);
  font.setHintingPreference(QFont::PreferNoHinting);
  font.setKerning(style.font == Font::label);
  return font;
}

QImage heatmap_image(const Heatmap& cells, int enlarge, const std::array<Color, 256>& colors) {
  const auto width = static_cast<int>(cells.columns) * enlarge, height = static_cast<int>(cells.rows) * enlarge;
  QImage image(width, height, cells.scale.blank ? QImage::Format_ARGB32_Premultiplied : QImage::Format_RGB32);
  for (int y = 0; y < height; ++y) {
    auto* line = reinterpret_cast<QRgb*>(image.scanLine(y));
    for (int x = 0; x < width; ++x) {
      const float v = cells.values[static_cast<std::size_t>((y / enlarge) * cells.columns + x / enlarge)];
      const bool stripe = enlarge >= kHatch && (x + y) % 4 == 0;
      const Color color = std::isnan(v) ? (stripe ? kStripe : kNoNumber) : colors[static_cast<std::size_t>(color_index(cells.scale, v))];
      line[x] = cells.scale.blank && std::isnan(v) ? qRgba(0, 0, 0, 0) : qRgb(color.r, color.g, color.b);
    }
  }
  return image;
}

PaperCanvas::PaperCanvas(QPainter& painter, Size size, HitRegions* hits, PaperStyle style)
    : painter_(painter), size_(size), hits_(hits), style_(std::move(style)), clips_{{0, 0, size.w, size.h}} {
  painter_.save();
  painter_.setRenderHint(QPainter::Antialiasing);
  painter_.setRenderHint(QPainter::TextAntialiasing);
  painter_.setRenderHint(QPainter::LosslessImageRendering);  // a PDF would store cells as JPEG
  painter_.setRenderHint(QPainter::SmoothPixmapTransform, false);
}

PaperCanvas::~PaperCanvas() {
  while (clips_.size() > 1) pop_clip();
  painter_.restore();
}

float PaperCanvas::text_width(std::string_view text, const TextStyle& style) const {
  return static_cast<float>(QFontMetricsF(paper_font(style, style_.family)).horizontalAdvance(to_qt(text)));
}

void PaperCanvas::fill_rect(Rect rect, Color color, float corner) {
  painter_.setPen(Qt::NoPen);
  painter_.setBrush(to_qt(color));
  corner > 0 ? painter_.drawRoundedRect(to_qt(rect), corner, corner) : painter_.drawRect(to_qt(rect));
}

void PaperCanvas::stroke_rect(Rect rect, Color color, float width, float corner) {
  painter_.setPen(flat_pen(color, width * style_.line_width));
  painter_.setBrush(Qt::NoBrush);
  corner > 0 ? painter_.drawRoundedRect(to_qt(rect), corner, corner) : painter_.drawRect(to_qt(rect));
}

void PaperCanvas::line(Point from, Point to, Color color, float width) {
  painter_.setPen(flat_pen(color, width * style_.line_width));
  painter_.drawLine(to_qt(from), to_qt(to));
}

void PaperCanvas::path(std::span<const Point> points, Color color, float width, bool filled) {
  QPolygonF polygon;
  for (const Point p : points) polygon << to_qt(p);
  painter_.setPen(filled ? QPen(Qt::NoPen) : round_pen(color, width * style_.line_width));
  painter_.setBrush(filled ? QBrush(to_qt(color)) : QBrush(Qt::NoBrush));
  if (filled) {
    painter_.drawConvexPolygon(polygon);
    return;
  }
  const bool in_parts = color.a == 255;  // those of what is translucent would show where they meet
  if (in_parts && style_.moving) return draw_lines(painter_, polygon, painter_.pen());
  // Qt strokes a long polyline far slower than its parts.
  const qsizetype part = in_parts ? 32 : std::max<qsizetype>(polygon.size(), 1);
  for (qsizetype begin = 0; begin == 0 || begin + 1 < polygon.size(); begin += part)
    painter_.drawPolyline(polygon.constData() + begin, static_cast<int>(std::min(part + 1, polygon.size() - begin)));
}

void PaperCanvas::ribbon(Point from, Point to, Color color, float width) {
  const float middle = (from.x + to.x) / 2;
  QPainterPath curve(to_qt(from));
  curve.cubicTo({middle, from.y}, {middle, to.y}, to_qt(to));
  painter_.strokePath(curve, flat_pen(color, width * style_.line_width));
}

void PaperCanvas::text(Point at, std::string_view text, const TextStyle& style) {
  const QFont font = paper_font(style, style_.family);
  const QFontMetricsF metrics(font);
  const QString string = to_qt(text);
  const double width = metrics.horizontalAdvance(string);
  const double x = style.align == Align::left ? at.x : style.align == Align::center ? at.x - width / 2 : at.x - width;
  // The middle of the line is halfway between the top of the capitals' line and its bottom.
  const QPointF foot(x, at.y + (metrics.ascent() - metrics.descent()) / 2);
  if (style_.outlines) {
    QPainterPath letters;
    letters.addText(foot, font, string);
    return painter_.fillPath(letters, to_qt(style.color));
  }
  painter_.setFont(font);
  painter_.setPen(to_qt(style.color));
  painter_.drawText(foot, string);
}

void PaperCanvas::heatmap(Rect rect, const Heatmap& cells) {
  if (cells.rows == 0 || cells.columns == 0) return;
  std::vector<float> seen;
  const Heatmap drawn = style_.moving ? in_sight(cells, clips_.back(), rect, seen) : cells;
  if (drawn.rows <= 0 || drawn.columns <= 0) return;
  const auto* instead = cells.scale.map == ColorMap::viridis     ? style_.magnitudes
                        : cells.scale.map == ColorMap::diverging ? style_.signs
                                                                 : nullptr;
  const std::array<Color, 256>& colors = instead ? *instead : color_table(cells.scale.map);
  if (keeps_shapes(painter_) && drawn.rows * drawn.columns <= kMostShapes) {
    draw_shapes(painter_, rect, drawn, colors);
    return draw_stripes(painter_, rect, drawn);
  }
  const int enlarge = style_.moving ? enlargement_on_screen(drawn, rect, painter_) : enlargement(drawn, rect, painter_);
  painter_.drawImage(to_qt(rect), heatmap_image(drawn, enlarge, colors));
}

void PaperCanvas::push_clip(Rect rect) {
  painter_.save();
  painter_.setClipRect(to_qt(rect), Qt::IntersectClip);
  clips_.push_back(intersection(rect, clips_.back()));
}

void PaperCanvas::pop_clip() {
  painter_.restore();
  clips_.pop_back();
}

void PaperCanvas::hit(Rect rect, const HitGrid& region) {
  if (hits_ != nullptr) hits_->add(rect, clips_.back(), region);
}

void PaperCanvas::zooms(Rect plot, bool across, bool down) {
  if (hits_ != nullptr) hits_->add_plot(plot, across, down);
}

}  // namespace statescope

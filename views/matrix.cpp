#include "views/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "views/colormaps.h"
#include "views/hits.h"
#include "views/parts.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr float kFactLine = 1.6f * kBodyType;

struct SpanMark {
  std::string_view letter;
  Color color;
};
SpanMark mark_of(SpanKind kind, const Theme& theme) {
  if (kind == SpanKind::needle) return {"N", theme.needle};
  return kind == SpanKind::question ? SpanMark{"Q", theme.question} : SpanMark{"A", theme.answer};
}

const Pyramid::Level& level_for(const Canvas& canvas, const Pyramid& cells, const Plot& plot) {
  return cells.level_for(plot.all.w * canvas.fineness(), plot.all.h * canvas.fineness());
}

}  // namespace

void draw_matrix(Canvas& canvas, const Plot& plot, const Pyramid& cells, const ColorScale& scale, const Hit& first) {
  if (cells.rows() == 0 || plot.w <= 0 || plot.h <= 0) return;
  draw_cells(canvas, plot, cells, scale);
  hit_plot(canvas, plot, {first, cells.rows(), cells.columns()});
}

void draw_cells(Canvas& canvas, const Plot& plot, const Pyramid& cells, const ColorScale& scale) {
  const Pyramid::Level& level = level_for(canvas, cells, plot);
  // The last cells of a level may stand for fewer.
  const auto stretched = [&](float length, std::int64_t count, std::int64_t all) {
    return length * static_cast<float>(count * level.gathered) / static_cast<float>(all);
  };
  canvas.push_clip(plot);
  const Rect& all = plot.all;
  canvas.heatmap({all.x, all.y, stretched(all.w, level.columns, cells.columns()), stretched(all.h, level.rows, cells.rows())},
                 {level.rows, level.columns, level.values, scale});
  canvas.pop_clip();
}

std::string gathered_text(const Canvas& canvas, const Pyramid& cells, const Plot& plot) {
  const std::int64_t gathered = cells.rows() == 0 ? 1 : level_for(canvas, cells, plot).gathered;
  return gathered == 1 ? "" : Views::tr("{0} × {0} cells in one, the strongest", gathered);
}

float group_axis_height(const Frame& frame) { return 24 * frame.scale; }

float group_axis_width(const Canvas& canvas, std::span<const AxisGroup> groups, const Frame& frame) {
  float widest = 0;
  for (const AxisGroup& group : groups) widest = std::max(widest, canvas.text_width(group.text, label(frame, kSmallType, {})));
  return std::min(widest, 90 * frame.scale) + 14 * frame.scale;
}

void draw_group_side(Canvas& canvas, const Plot& plot, std::int64_t count, std::span<const AxisGroup> groups, bool lines,
                     const Frame& frame) {
  const float s = frame.scale, each = plot.all.h / static_cast<float>(count);
  const TextStyle style = label(frame, kSmallType, frame.theme.ink, Align::right);
  TextPlaces places;
  for (const AxisGroup& group : groups) {
    Rect side{plot.x - 8 * s, plot.all.y + each * static_cast<float>(group.begin), 5 * s,
              each * static_cast<float>(group.end - group.begin)};
    const bool begins = side.y >= plot.y;
    if (plot.shows_part()) side = intersection(side, {side.x, plot.y, side.w, plot.h});
    if (side.h <= 0) continue;
    canvas.fill_rect(side, identity_color(group.identity, frame.theme));
    if (lines && frame.shown.marks && group.begin > 0 && begins) canvas.line({plot.x, side.y}, {plot.right(), side.y}, frame.theme.ink, s);
    if (group.text.empty()) continue;
    const float y =
        std::clamp(side.y + side.h / 2, plot.y + style.size / 2, std::max(plot.y + style.size / 2, plot.bottom() - style.size / 2));
    if (places.take(y - 0.6f * style.size, y + 0.6f * style.size))
      fitted_text(canvas, {side.x - 4 * s, y}, group.text, style, group_axis_width(canvas, groups, frame) - 12 * s);
  }
}

void draw_group_foot(Canvas& canvas, const Plot& plot, std::int64_t count, std::span<const AxisGroup> groups, bool lines,
                     const Frame& frame) {
  const float s = frame.scale, each = plot.all.w / static_cast<float>(count);
  const TextStyle style = label(frame, kSmallType, frame.theme.ink, Align::center);
  const float left = plot.x - group_axis_width(canvas, groups, frame), gap = 3 * s;
  TextPlaces places;
  std::vector<std::pair<float, const AxisGroup*>> wide;  // names that reach beyond their group: they have what room others leave
  const auto name = [&](float x, const AxisGroup& group) {
    const float half = canvas.text_width(group.text, style) / 2;
    if (x - half >= left && x + half <= plot.right() && places.take(x - half - gap, x + half + gap))
      canvas.text({x, plot.bottom() + 16 * s}, group.text, style);
  };
  for (const AxisGroup& group : groups) {
    Rect foot{plot.all.x + each * static_cast<float>(group.begin), plot.bottom() + 3 * s,
              each * static_cast<float>(group.end - group.begin), 5 * s};
    const bool begins = foot.x >= plot.x;
    if (plot.shows_part()) foot = intersection(foot, {plot.x, foot.y, plot.w, foot.h});
    if (foot.w <= 0) continue;
    canvas.fill_rect(foot, identity_color(group.identity, frame.theme));
    if (lines && frame.shown.marks && group.begin > 0 && begins) canvas.line({foot.x, plot.y}, {foot.x, plot.bottom()}, frame.theme.ink, s);
    if (group.text.empty()) continue;
    const float width = canvas.text_width(group.text, style), x = foot.x + foot.w / 2;
    if (width + 2 * gap <= foot.w)
      name(x, group);
    else  // the first one ends with its group: left of it is room
      wide.emplace_back(group.begin == 0 ? std::min(x, foot.right() - gap - width / 2) : x, &group);
  }
  for (const auto& [x, group] : wide) name(x, *group);
}

void draw_group_axes(Canvas& canvas, const Plot& plot, std::int64_t count, std::span<const AxisGroup> groups, bool lines,
                     const Frame& frame) {
  draw_group_side(canvas, plot, count, groups, lines, frame);
  draw_group_foot(canvas, plot, count, groups, lines, frame);
}

namespace {

/// How many texts that take `each` have room.
std::int64_t fit(float length, float each) { return std::max<std::int64_t>(1, static_cast<std::int64_t>(length / each)); }

}  // namespace

void draw_number_side(Canvas& canvas, const Plot& plot, std::int64_t count, float gap, bool within, const Frame& frame) {
  const TextStyle style = value(frame, kSmallType, frame.theme.faint, Align::right);
  const float each = plot.all.h / static_cast<float>(count), half = style.size / 2;
  for (const std::int64_t i : axis_ticks(places_down(plot, count), fit(plot.h * frame.shown.ticks, 18 * frame.scale))) {
    const float y = plot.all.y + each * (static_cast<float>(i) + 0.5f);
    if (y < plot.y || y > plot.bottom()) continue;
    canvas.text({plot.x - gap, within ? std::clamp(y, plot.y + half, plot.bottom() - half) : y}, std::to_string(i), style);
  }
}

void draw_number_axes(Canvas& canvas, const Plot& plot, std::int64_t count, const Frame& frame) {
  const float s = frame.scale, each = plot.all.w / static_cast<float>(count);
  const TextStyle below = value(frame, kSmallType, frame.theme.faint, Align::center);
  const float room = canvas.text_width(std::to_string(count), below) + 10 * s;
  draw_number_side(canvas, plot, count, 5 * s, frame.shown.cursor, frame);
  for (const std::int64_t i : axis_ticks(places_across(plot, count), fit(plot.w * std::min(1.0f, frame.shown.ticks), room))) {
    const float half = canvas.text_width(std::to_string(i), below) / 2, x = plot.all.x + each * (static_cast<float>(i) + 0.5f);
    if (x < plot.x || x > plot.right()) continue;
    canvas.text({frame.shown.cursor ? std::clamp(x, plot.x + half, plot.right() - half) : x, plot.bottom() + 10 * s}, std::to_string(i),
                below);
  }
}

float token_side_width(const Frame& frame) { return 96 * frame.scale; }

void draw_token_side(Canvas& canvas, const Plot& plot, const TokenAxis& axis, const Frame& frame) {
  if (axis.count() == 0 || plot.h <= 0) return;
  const float s = frame.scale, each = plot.all.h / static_cast<float>(axis.count());
  const auto middle_of = [&](std::int64_t i) { return plot.all.y + each * (static_cast<float>(i) + 0.5f); };
  const auto in_sight = [&](float y) { return !plot.shows_part() || (y >= plot.y && y <= plot.bottom()); };
  for (const TokenSpan& span : axis.run->spans) {
    const std::int64_t first = axis.place_of(span.begin - 1) + 1, last = axis.place_of(span.end - 1);
    if (first > last || !frame.shown.marks) continue;
    const SpanMark mark = mark_of(span.kind, frame.theme);
    const float top = plot.all.y + each * static_cast<float>(first), height = std::max(2 * s, each * static_cast<float>(last - first + 1));
    const Within inside(canvas, plot, {plot.x - 7 * s, plot.y, 4 * s, plot.h});
    canvas.fill_rect({plot.x - 7 * s, top, 4 * s, height}, mark.color);
  }
  const std::int64_t cursor = axis.place_of(axis.cursor);
  TextPlaces places;
  const auto place = [&](std::int64_t i, bool chosen) {
    const std::int64_t token = axis.tokens[static_cast<std::size_t>(i)];
    const float half = 0.6f * kBodyType * s;
    if (plot.h < 2 * half || !in_sight(middle_of(i))) return;
    const float y = std::clamp(middle_of(i), plot.y + half, plot.bottom() - half);
    if (!places.take(y - half, y + half)) return;
    const TextStyle count = value(frame, kSmallType, frame.theme.faint);
    const TextStyle word = label(frame, kBodyType, chosen ? frame.theme.accent : frame.theme.ink, Align::right, chosen);
    const float x = plot.x - token_side_width(frame), room = token_side_width(frame) - 14 * s;
    const std::string number = std::to_string(token);
    const float number_width = canvas.text_width(number, count);
    fitted_text(canvas, {x, y}, number, count, room);
    token_text(canvas, {x + room + 3 * s, y}, visible_token(*axis.run, token), word, room - number_width - 5 * s);
  };
  if (cursor >= 0 && frame.shown.captions && in_sight(middle_of(cursor))) {
    const float y = middle_of(cursor);
    canvas.line({plot.x, y}, {plot.right(), y}, frame.theme.accent, 2 * s);
    place(cursor, axis.tokens[static_cast<std::size_t>(cursor)] == axis.cursor);
  }
  const auto step = std::max<std::int64_t>(1, static_cast<std::int64_t>(16 * s / each));
  const PlaceRange shown = places_down(plot, axis.count());
  for (std::int64_t i = (shown.from + step - 1) / step * step; i < shown.to; i += step) place(i, false);
}

void draw_facts(Canvas& canvas, Rect area, std::span<const Fact> facts, const Frame& frame) {
  if (!frame.shown.captions) return;
  const float line = kFactLine * frame.scale;
  float y = area.y;
  for (const Fact& fact : facts) {
    if (y + line > area.bottom()) return canvas.left_out();
    const TextStyle name = label(frame, kBodyType, frame.theme.faint), exact = value(frame, kBodyType, frame.theme.ink, Align::right);
    const float width = std::min(area.w, canvas.text_width(fact.value, exact));
    fitted_text(canvas, {area.x, y + line / 2}, fact.name, name, area.w - width - 8 * frame.scale);
    fitted_text(canvas, {area.right(), y + line / 2}, fact.value, exact, area.w);
    y += line;
  }
}

void draw_fact_lines(Canvas& canvas, Rect area, std::span<const Fact> facts, const Frame& frame) {
  const TextStyle style = label(frame, kBodyType, frame.theme.ink);
  const float line = kFactLine * frame.scale;
  Point at{area.x, area.y + line / 2};
  for (const Fact& fact : facts) {
    const std::string text = fmt::format("{} {}", fact.name, fact.value);
    const float width = canvas.text_width(text, style);
    if (at.x > area.x && at.x + width > area.right()) at = {area.x, at.y + line};
    if (at.y + line / 2 > area.bottom()) return;
    fitted_text(canvas, at, text, style, area.right() - at.x);
    at.x += width + 20 * frame.scale;
  }
}

TokenMap::TokenMap(Canvas& canvas, Rect area, float left, float right, const Frame& frame) {
  const float s = frame.scale, notes = 22 * s;
  const Rect inner = inset(area, 8 * s);
  title = {inner.x, inner.y, inner.w, std::min(inner.h, caption_height(frame))};
  const float top = title.bottom() + 4 * s + notes, room = inner.bottom() - top;
  names_tokens = room - token_axis_height(frame) > 40 * s;
  const bool beside = frame.shown.captions && inner.w > 520 * s;
  map = {inner.x + left, top, inner.w - left - right - (beside ? 210 * s : 0), room - (names_tokens ? token_axis_height(frame) : 0)};
  map = map.w < 80 * s || map.h < 40 * s ? Plot() : zoomed(canvas, map, true, true, frame);
  if (map.w > 0 && beside) facts = {map.right() + right + 20 * s, map.y, 190 * s, map.h};
}

void TokenMap::draw_edges(Canvas& canvas, const TokenAxis& tokens, const std::vector<std::string>& notes, const Frame& frame) const {
  canvas.stroke_rect(map, frame.theme.line, frame.scale);
  fitted_text(canvas, {title.x, map.y - 9 * frame.scale}, joined(notes, "; "), label(frame, kSmallType, frame.theme.faint),
              map.right() - title.x);
  names_tokens ? draw_token_axis(canvas, map, tokens, frame) : draw_cursor_line(canvas, map, tokens, frame);
}

float caption_height(const Frame& frame) { return frame.shown.captions ? 1.5f * kBodyType * frame.scale : 0; }

void draw_caption(Canvas& canvas, Rect line, std::string_view text, const Accuracy& accuracy, const Frame& frame) {
  const TextStyle note = label(frame, kSmallType, frame.theme.faint, Align::right);
  const std::string how = accuracy_name(accuracy);
  const float y = line.y + line.h / 2, width = canvas.text_width(how, note) + 10 * frame.scale;
  if (line.h > 0) {
    clauses_text(canvas, {line.x, y}, text, label(frame, kBodyType, frame.theme.ink), line.w - width);
    fitted_text(canvas, {line.right(), y}, how, note, line.w);
  }
}

}  // namespace statescope

// How likeness is drawn: the matrix with its axes, the chosen lines, a colour bar, and in words what follows from it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "views/colormaps.h"
#include "views/parts.h"
#include "views/similarity.h"

namespace statescope {
namespace {

/// One drawing: where things stand.
struct Picture {
  const SimilarityData& data;
  Canvas& canvas;
  const Frame& frame;
  float s;
  Rect title, bar, facts;
  Plot plot;                  // w 0: no room for a picture
  float left = 0, below = 0;  // of the axes

  Picture(const SimilarityData& data_, Canvas& canvas_, Rect area, const Frame& frame_);
  /// Its rows have numbers where those of several have the names of their partitions.
  bool of_one_memory() const { return data.mode == SimilarityMode::rows && data.slot_titles.size() == 1; }
  bool of_tokens() const { return data.mode == SimilarityMode::tokens; }
  ColorScale scale() const {
    const ColorMap map = !data.is_signed ? ColorMap::viridis : frame.theme.dark ? ColorMap::diverging_dark : ColorMap::diverging;
    return {map, data.range.low, data.range.high, data.range.logarithmic};
  }
};

Picture::Picture(const SimilarityData& data_, Canvas& canvas_, Rect area, const Frame& frame_)
    : data(data_), canvas(canvas_), frame(frame_), s(frame_.scale) {
  const Rect inner = inset(area, 8 * s);
  title = {inner.x, inner.y, inner.w, std::min(inner.h, caption_height(frame))};
  const AxisGroup last{0, 0, std::to_string(data.count()), 0};
  left = of_tokens() ? token_side_width(frame)
                     : group_axis_width(canvas, of_one_memory() ? std::span(&last, 1) : std::span(data.groups), frame);
  below = of_tokens() ? token_axis_height(frame) : group_axis_height(frame);
  const float bar_width = bar_room(frame, 12 * s + canvas.text_width("≤ 0.9", value(frame, kSmallType, {})) + 14 * s),
              facts_width = 180 * s;
  const float gap = 8 * s, top = title.bottom() + 4 * s;
  const float room = inner.bottom() - top - below, side = std::min(room, inner.w - left - bar_width - gap);
  facts = {inner.x, top, inner.w, inner.bottom() - top};
  if (side < 70 * s) return;
  const bool beside = inner.w - left - bar_width - gap - side >= facts_width;
  const float lines = beside || !frame.shown.captions ? 0 : 2 * 1.6f * kBodyType * s + gap;  // below the picture
  const float length = beside ? side : std::min(side, room - lines);
  if (length < 70 * s) return;
  plot = zoomed(canvas, {inner.x + left, top, length, length}, true, true, frame);
  bar = {plot.right() + gap, plot.y, 12 * s, plot.h};
  const float right = plot.right() + gap + bar_width;
  facts = beside ? Rect{right + gap, top, std::min(240 * s, inner.right() - right - gap), plot.h}
                 : Rect{inner.x, plot.bottom() + below + gap, inner.w, lines - gap};
}

void draw_numbers(const Picture& picture) {
  const std::int64_t n = picture.data.count();
  const float each = picture.plot.all.w / static_cast<float>(n), s = picture.s;
  const TextStyle plain = value(picture.frame, kSmallType, {}, Align::center);
  const Size text{picture.canvas.text_width("-0.00", plain), plain.size};
  if (each < text.w + 4 * s || each < 2 * text.h) return;
  const Within inside(picture.canvas, picture.plot);
  const PlaceRange rows = places_down(picture.plot, n), columns = places_across(picture.plot, n);
  for (std::int64_t i = rows.from; i < rows.to; ++i) {
    for (std::int64_t j = columns.from; j < columns.to; ++j) {
      const float cosine = picture.data.cells.at(i, j);
      if (std::isnan(cosine)) continue;
      const ColorScale scale = picture.scale();
      const Color ground = color_table(scale.map)[static_cast<std::size_t>(color_index(scale, cosine))];
      const Point middle{picture.plot.all.x + each * (static_cast<float>(j) + 0.5f),
                         picture.plot.all.y + each * (static_cast<float>(i) + 0.5f)};
      TextStyle style = plain;
      style.color = readable_on(ground);
      if (holds_text(picture.plot, middle, text)) picture.canvas.text(middle, fmt::format("{:.2f}", cosine), style);
    }
  }
}

/// Between two lines, so that its cells stay free.
void draw_chosen(const Picture& picture) {
  const SimilarityData& data = picture.data;
  if (data.chosen < 0 || picture.of_tokens()) return;
  const Plot& plot = picture.plot;
  const float each = plot.all.w / static_cast<float>(data.count()), y = each * static_cast<float>(data.chosen), s = picture.s;
  const Color color = picture.frame.theme.accent;
  const Within inside(picture.canvas, plot);
  for (const float edge : {y, y + each}) {
    picture.canvas.line({plot.x, plot.all.y + edge}, {plot.right(), plot.all.y + edge}, color, 1.5f * s);
    picture.canvas.line({plot.all.x + edge, plot.y}, {plot.all.x + edge, plot.bottom()}, color, 1.5f * s);
  }
}

void draw_legend_of(const Picture& picture, Rect area) {
  const float line = 1.6f * kSmallType * picture.s;
  for (const AxisGroup& slot : picture.data.legend) {
    if (area.h < line) return;
    const LegendEntry entry{identity_color(slot.identity, picture.frame.theme), slot.text};
    draw_legend(picture.canvas, {area.x, area.y, area.w, line}, {&entry, 1}, picture.frame);
    area = {area.x, area.y + line, area.w, area.h - line};
  }
}

}  // namespace

void draw(const SimilarityData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (data.message) {
    draw_message(canvas, area, frame, data.message.headline, data.message.detail);
    return;
  }
  const Picture picture(data, canvas, area, frame);
  canvas.push_clip(area);
  draw_caption(canvas, picture.title, data.title, Similarity::accuracy, frame);
  if (picture.plot.w <= 0) {
    canvas.left_out();
    draw_fact_lines(canvas, picture.facts, data.facts, frame);
    canvas.pop_clip();
    return;
  }
  draw_matrix(canvas, picture.plot, data.cells, picture.scale(), {0, 0, 0});
  canvas.stroke_rect(picture.plot, frame.theme.line, picture.s);
  if (picture.of_tokens()) {
    draw_token_side(canvas, picture.plot, data.side, frame);
    draw_token_axis(canvas, picture.plot, data.tokens, frame);
  } else {
    if (picture.of_one_memory())
      draw_number_axes(canvas, picture.plot, data.count(), frame);
    else
      draw_group_axes(canvas, picture.plot, data.count(), data.groups, data.mode != SimilarityMode::clustered, frame);
    draw_numbers(picture);
  }
  if (frame.shown.captions) draw_chosen(picture);
  draw_color_bar(canvas, picture.bar, picture.scale(), data.marks, frame);
  std::vector<Fact> facts = data.facts;
  if (const std::string gathered = gathered_text(canvas, data.cells, picture.plot); !gathered.empty()) facts.push_back({gathered, ""});
  if (picture.facts.x > picture.plot.right()) {
    draw_facts(canvas, picture.facts, facts, frame);
    const float used = 1.6f * kBodyType * picture.s * static_cast<float>(facts.size()) + 8 * picture.s;
    draw_legend_of(picture, {picture.facts.x, picture.facts.y + used, picture.facts.w, picture.facts.h - used});
  } else {
    draw_fact_lines(canvas, picture.facts, facts, frame);
  }
  canvas.pop_clip();
}

}  // namespace statescope

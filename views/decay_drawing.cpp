// How decay is drawn: the map of all channels, the chosen one's curve, all of them ranked.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "views/colormaps.h"
#include "views/decay.h"
#include "views/parts.h"
#include "views/sheets.h"
#include "views/words.h"

namespace statescope {
namespace {

/// What stands below the bars of all channels.
std::string ranked_words(const DecayData& data) {
  const auto place = std::ranges::find(data.ranks, data.chosen, &DecayRank::channel) - data.ranks.begin() + 1;
  const std::string chosen = data.channel_name(data.chosen);
  return Views::tr("by {}, fastest first; {} is number {} of {}", data.channel_word, chosen, place, data.channels);
}

/// One drawing: where things stand.
struct Picture {
  const DecayData& data;
  Canvas& canvas;
  const Frame& frame;
  float s;
  Rect title, ranks;  // w or h 0: left out
  Plot cells, curve;
  float bar_width = 0;  // of the colour bar with its numbers
  bool token_axis = false;

  Picture(const DecayData& data_, Canvas& canvas_, Rect area, const Frame& frame_);
  bool ranking() const { return data.mode == DecayMode::half_life || data.mode == DecayMode::receptive_field; }
};

Picture::Picture(const DecayData& data_, Canvas& canvas_, Rect area, const Frame& frame_)
    : data(data_), canvas(canvas_), frame(frame_), s(frame_.scale) {
  const Rect inner = inset(area, 8 * s);
  const float name = 17 * s;
  title = {inner.x, inner.y, inner.w, std::min(caption_height(frame), inner.h)};
  const float left = inner.x + value_axis_width(frame), top = title.bottom() + name;
  if (inner.right() - left < 80 * s || inner.bottom() - top < 30 * s) return;
  if (ranking()) {
    ranks = {left, top, inner.right() - left, inner.bottom() - top - 20 * s};
    return;
  }
  bar_width = bar_room(frame, 12 * s + 4 * s + canvas.text_width("≤ 0.001", value(frame, kSmallType, {})) + 8 * s);
  const float width = std::max(40 * s, inner.right() - left - bar_width);
  token_axis = inner.bottom() - top - token_axis_height(frame) > 30 * s;
  const float bottom = inner.bottom() - (token_axis ? token_axis_height(frame) : 0);
  const float room = bottom - top, curve_least = 60 * s;
  if (room > 60 * s + name + curve_least) {
    const float height = std::min(0.58f * (room - name), 26 * s * static_cast<float>(data.channels));
    cells = {left, top, width, height};
    curve = {left, cells.bottom() + name, width, bottom - cells.bottom() - name};
  } else {
    curve = {left, top, inner.right() - left, room};
  }
  cells = zoomed(canvas, cells, true, true, frame);
  curve = zoomed(canvas, curve, true, false, frame);
}

void draw_cells(const Picture& picture) {
  const DecayData& data = picture.data;
  if (picture.cells.w <= 0) return;
  Canvas& canvas = picture.canvas;
  const float s = picture.s;
  const bool cumulative = data.mode == DecayMode::cumulative;
  const Plot rect = left_part(picture.cells, static_cast<float>(data.cells.columns()) / static_cast<float>(data.tokens.count()));
  canvas.stroke_rect(picture.cells, picture.frame.theme.line, s);
  draw_matrix(canvas, rect, data.cells, data.coloring->scale(), {DecaySheets::cells, 0, 0});
  const float each = rect.all.h / static_cast<float>(data.channels), half = 0.5f * kSmallType * s;
  const float y = rect.all.y + each * static_cast<float>(data.chosen);
  const TextStyle tick = value(picture.frame, kSmallType, picture.frame.theme.faint, Align::right);
  const float chosen_y = std::clamp(y + each / 2, rect.y + half, rect.bottom() - half);
  const TextStyle bold = value(picture.frame, kSmallType, picture.frame.theme.ink, Align::right, true);
  const PlaceRange shown = places_down(rect, data.channels);
  if (data.chosen >= shown.from && data.chosen < shown.to) canvas.text({rect.x - 5 * s, chosen_y}, std::to_string(data.chosen), bold);
  for (const std::int64_t c : axis_ticks(shown, std::max<std::int64_t>(1, static_cast<std::int64_t>(rect.h / (18 * s))))) {
    const float tick_y = std::clamp(rect.all.y + each * (static_cast<float>(c) + 0.5f), rect.y + half, rect.bottom() - half);
    if (std::abs(tick_y - chosen_y) > 2.2f * half) canvas.text({rect.x - 5 * s, tick_y}, std::to_string(c), tick);
  }
  // The chosen channel between two lines, so that its cells stay free.
  for (const float edge : {y, y + each}) {
    const Within inside(canvas, rect, picture.cells);
    canvas.line({rect.x, edge}, {picture.cells.right(), edge}, picture.frame.theme.ink, s);
  }
  const std::string what = cumulative         ? Views::tr("colour: what is left of each token's write")
                           : data.names_alpha ? Views::tr("colour: α, the part that each token keeps")
                                              : Views::tr("colour: 1 − α, the part that each token takes");
  const std::string gathered = gathered_text(canvas, data.cells, rect);
  const TextStyle note = label(picture.frame, kSmallType, picture.frame.theme.faint);
  const std::string of_all = fmt::format("{} ↓   {}", data.channel_word, what);
  const std::string with_gathered = gathered.empty() ? of_all : fmt::format("{}; {}", of_all, gathered);
  const float room = picture.cells.right() - picture.title.x;
  fitted_text(canvas, {picture.title.x, rect.y - 8 * s}, fitting(canvas, with_gathered, of_all, note, room), note, room);
  draw_color_bar(canvas, {picture.cells.right() + 8 * s, rect.y, 12 * s, rect.h}, data.coloring->scale(), data.coloring->marks,
                 picture.frame);
  draw_cursor_line(canvas, picture.cells, data.tokens, picture.frame);
}

/// The least round number 1 − 10⁻ⁿ below all of them: curves of α lie close to 1.
ValueAxis alpha_axis(std::span<const float> alpha) {
  const float least = alpha.empty() ? 0 : std::ranges::min(alpha);
  for (const double low : {0.999, 0.99, 0.9, 0.5}) {
    if (least >= static_cast<float>(low)) return {low, 1};
  }
  return {0, 1};
}

void draw_dashes(const Picture& picture, Rect plot, float y) {
  const float dash = 6 * picture.s;
  for (float x = plot.x; x < plot.right(); x += 2 * dash)
    picture.canvas.line({x, y}, {std::min(x + dash, plot.right()), y}, picture.frame.theme.ink, 1.5f * picture.s);
}

void draw_chosen_curve(const Picture& picture) {
  const DecayData& data = picture.data;
  const bool cumulative = data.mode == DecayMode::cumulative;
  const std::int64_t n = data.tokens.count(), columns = cumulative ? data.until : n;
  const std::span<const float> all = cumulative ? data.left : data.alpha;
  const auto channel = [&](std::int64_t c) {
    return all.subspan(static_cast<std::size_t>(c * columns), static_cast<std::size_t>(columns));
  };
  const bool heads = data.axis == Decay::Axis::heads;
  const ValueAxis axis = cumulative ? ValueAxis{1e-4, 1, true} : alpha_axis(heads ? all : channel(data.chosen));
  const std::string name = cumulative
                               ? Views::tr("{}: Δ, what is left of each token's write; dashes: 0.001", data.channel_name(data.chosen))
                               : fmt::format("{}: α", data.channel_name(data.chosen));
  draw_value_axis(picture.canvas, picture.curve, axis, name, picture.frame);
  if (cumulative) draw_dashes(picture, picture.curve, height_of(picture.curve, axis, kLeastFelt));
  const Plot part = left_part(picture.curve, static_cast<float>(columns) / static_cast<float>(std::max<std::int64_t>(1, n)));
  const Theme& theme = picture.frame.theme;
  for (std::int64_t c = 0; heads && c < data.channels; ++c)
    draw_curve(picture.canvas, part, axis, channel(c), {faded(identity_color(c + 1, theme), 0.7f), c}, picture.s, picture.frame);
  draw_curve(picture.canvas, part, axis, channel(data.chosen),
             {heads ? identity_color(data.chosen + 1, theme) : theme.ink, heads ? data.chosen : -1}, 2.5f * picture.s, picture.frame);
  const int sheet = cumulative ? DecaySheets::curve : DecaySheets::cells;  // that of α, of all tokens
  if (n > 0) hit_plot(picture.canvas, picture.curve, {{sheet, Hit::here, 0}, 1, n});
}

void draw_rank_bars(const Picture& picture, const ValueAxis& axis) {
  const DecayData& data = picture.data;
  const Rect& plot = picture.ranks;
  const Theme& theme = picture.frame.theme;
  const float each = plot.w / static_cast<float>(data.channels), gap = each > 6 * picture.s ? 0.15f * each : 0;
  for (std::size_t i = 0; i < data.ranks.size(); ++i) {
    const DecayRank& rank = data.ranks[i];
    const float value = data.ranked_value(rank), top = height_of(plot, axis, std::isnan(value) ? axis.low : value);
    const Rect bar{plot.x + each * static_cast<float>(i) + gap / 2, top, each - gap, plot.bottom() - top};
    const bool open = std::isinf(value) || (data.mode == DecayMode::receptive_field && rank.censored > 0);
    const Color color = rank.channel == data.chosen && picture.frame.shown.cursor ? theme.accent : faded(theme.ink, 0.55f);
    if (open && bar.w > 3 * picture.s) {
      picture.canvas.fill_rect(bar, faded(color, 0.25f));
      picture.canvas.stroke_rect(bar, color, 1.5f * picture.s);
    } else {
      picture.canvas.fill_rect(bar, faded(color, open ? 0.4f : 1));
    }
  }
  picture.canvas.hit(plot, {{DecaySheets::ranks, 0}, 1, data.channels, 0, 0});
}

/// Whole powers of ten around all finite values and the run's length.
ValueAxis rank_axis(const DecayData& data) {
  double low = static_cast<double>(data.run), high = std::max<double>(10, low);
  for (const DecayRank& rank : data.ranks) {
    const float value = data.ranked_value(rank);
    if (!std::isfinite(value)) continue;
    low = std::min(low, std::max(0.1, double{value}));
    high = std::max(high, double{value});
  }
  return {std::pow(10, std::floor(std::log10(low) + 1e-9)), std::pow(10, std::ceil(std::log10(high))), true};
}

void draw_ranks(const Picture& picture) {
  const DecayData& data = picture.data;
  const Rect& plot = picture.ranks;
  if (plot.w <= 0) return;
  const ValueAxis axis = rank_axis(data);
  const std::string name = data.mode == DecayMode::half_life
                               ? Views::tr("tokens until half is gone; hollow: never; dashes: length of the run, {}", data.run)
                               : Views::tr("tokens until a thousandth is left; hollow: at least; dashes: length of the run, {}", data.run);
  const std::string brief = data.mode == DecayMode::half_life ? Views::tr("half-life, tokens; dashes: all {}", data.run)
                                                              : Views::tr("tokens until 0.001 is left; dashes: all {}", data.run);
  const TextStyle style = label(picture.frame, kSmallType, picture.frame.theme.faint);
  draw_value_axis(picture.canvas, plot, axis, fitting(picture.canvas, name, brief, style, plot.w), picture.frame);
  draw_rank_bars(picture, axis);
  draw_dashes(picture, plot, height_of(plot, axis, static_cast<double>(data.run)));
  const TextStyle below = label(picture.frame, kSmallType, picture.frame.theme.faint);
  clauses_text(picture.canvas, {plot.x, plot.bottom() + 11 * picture.s}, ranked_words(data), below, plot.w, true);
}

}  // namespace

void draw(const DecayData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (data.message) {
    draw_message(canvas, area, frame, data.message.headline, data.message.detail);
    return;
  }
  const Picture picture(data, canvas, area, frame);
  canvas.push_clip(area);
  draw_caption(canvas, picture.title, summary(data), kRecomputed, frame);
  const bool all_there = picture.ranking() ? picture.ranks.w > 0 : picture.cells.w > 0 && picture.curve.w > 0 && picture.token_axis;
  if (!all_there) canvas.left_out();
  if (picture.ranking()) {
    draw_ranks(picture);
  } else if (picture.curve.w > 0) {
    draw_cells(picture);
    draw_chosen_curve(picture);
    if (picture.token_axis) {
      draw_token_axis(canvas, picture.curve, data.tokens, frame);
    } else {
      draw_cursor_line(canvas, picture.curve, data.tokens, frame);
    }
  }
  canvas.pop_clip();
}

}  // namespace statescope

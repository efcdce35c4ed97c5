// How the needle's fate is drawn: curves of what is left, stacks of what took the rest, the tokens that took most.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "views/colormaps.h"
#include "views/matrix.h"
#include "views/needle.h"
#include "views/parts.h"
#include "views/sheets.h"
#include "views/words.h"

namespace statescope {
namespace {

/// What is clear is the needle's own gold; what is lost are shades of ink with a letter, for colours tell layers apart.
Color part_color(std::size_t part, const Theme& theme) {
  static constexpr std::array<float, 5> shades = {0, 0.8f, 0.55f, 0.32f, 0.14f};
  return part == 0 ? theme.needle : over(faded(theme.ink, shades[part]), theme.panel);
}
constexpr std::array<const char*, 5> kShortNames = {QT_TRANSLATE_NOOP("Views", "Clear"), QT_TRANSLATE_NOOP("Views", "Decay"),
                                                    QT_TRANSLATE_NOOP("Views", "Erase"), QT_TRANSLATE_NOOP("Views", "Over"),
                                                    QT_TRANSLATE_NOOP("Views", "Miss")};
constexpr std::array<std::string_view, 5> kPartLetters = {"C", "D", "E", "O", "M"};
/// With its letter, which other languages' short names need not begin with.
std::string legend_text(std::size_t part, bool wide) {
  const std::string name = Views::tr(wide ? kNeedleParts[part] : kShortNames[part]);
  return !wide && name.starts_with(kPartLetters[part]) ? name : fmt::format("{} {}", kPartLetters[part], name);
}
std::size_t part_named(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(kNeedleParts, name) - kNeedleParts.begin());
}

/// One drawing: where things stand.
struct Picture {
  const NeedleData& data;
  Canvas& canvas;
  const Frame& frame;
  float s;
  Rect title, parts, causes;  // w or h 0: left out
  Plot plot;
  bool token_axis = false;

  Picture(const NeedleData& data_, Canvas& canvas_, Rect area, const Frame& frame_);
  TextStyle small(Color color, Align align = Align::left, bool bold = false) const { return label(frame, kSmallType, color, align, bold); }
  TextStyle figures(Color color, Align align = Align::right, bool bold = false) const {
    return value(frame, kSmallType, color, align, bold);
  }
  float row() const { return 21 * s; }
};

Picture::Picture(const NeedleData& data_, Canvas& canvas_, Rect area, const Frame& frame_)
    : data(data_), canvas(canvas_), frame(frame_), s(frame_.scale) {
  const Rect inner = inset(area, 8 * s);
  const float name = 30 * s, gap = 18 * s;  // name: of the value axis, and the legend
  const bool fills = frame.shown.fills;
  const float narrow = (fills ? 260 : 320) * s, low = (fills ? 250 : 290) * s;  // room for the parts alone
  const float wide = 420 * s;                                                   // for the causes beside them
  title = {inner.x, inner.y, inner.w, std::min(caption_height(frame), inner.h)};
  Rect body{inner.x, title.bottom() + 2 * s, inner.w, inner.bottom() - title.bottom() - 2 * s};
  Rect lists{};
  if (body.w >= 720 * s && body.h >= 140 * s) {
    lists = {body.x + 0.56f * body.w + gap, body.y, 0.44f * body.w - gap, body.h};
    body.w *= 0.56f;
  } else if (body.w >= narrow && body.h >= low) {
    const float rows = static_cast<float>(std::clamp<std::int64_t>(std::ssize(data.parts), 4, 7)) + 1.5f;
    const float height = std::min(0.46f * body.h, rows * row());
    lists = {body.x, body.bottom() - height, body.w, height};
    body.h -= height + 6 * s;
  }
  const float left = body.x + value_axis_width(frame);
  token_axis = body.h - name > token_axis_height(frame) + 30 * s;
  plot = {left, body.y + name, body.right() - left, body.h - name - (token_axis ? token_axis_height(frame) : 0)};
  plot = plot.w < 60 * s || plot.h < 20 * s ? Plot() : zoomed(canvas, plot, true, false, frame);
  if (lists.h <= 0) return;
  if (!frame.shown.captions || (lists.w == body.w && lists.w < wide)) {
    parts = lists;
    return;
  }
  if (lists.w >= 820 * s || lists.w == body.w) {
    parts = {lists.x, lists.y, 0.48f * lists.w - gap / 2, lists.h};
    causes = {parts.right() + gap, lists.y, lists.right() - parts.right() - gap, lists.h};
  } else {
    const float most = (static_cast<float>(data.parts.size()) + 1.2f) * row();
    parts = {lists.x, lists.y, lists.w, std::min(most, 0.5f * lists.h)};
    causes = {lists.x, parts.bottom() + 8 * s, lists.w, lists.bottom() - parts.bottom() - 8 * s};
  }
}

void draw_title(const Picture& picture) {
  const NeedleData& data = picture.data;
  const TextStyle bold = label(picture.frame, kBodyType, picture.frame.theme.ink, Align::left, true);
  const std::string full =
      Views::tr("{}; the needle is up to {:.2f} of what is read from one memory", summary(data), data.parts.front().read_share);
  const std::string long_enough = summary(data);
  const std::string brief = Views::tr("{:.2f} clear; {}", data.parts.front().clear, losses(data));
  const std::string_view shorter = fitting(picture.canvas, long_enough, brief, bold, picture.title.w);
  clauses_text(picture.canvas, {picture.title.x, picture.title.y + picture.title.h / 2},
               fitting(picture.canvas, full, shorter, bold, picture.title.w), bold, picture.title.w, true);
}

/// A mark above the mean's curve, with how far it fell and at which token where there is room.
void draw_falls(const Picture& picture, const ValueAxis& axis) {
  const NeedleData& data = picture.data;
  const Plot& plot = picture.plot;
  const PlaceRange shown = places_across(plot, data.tokens.count());
  const auto place_of = [&](std::int64_t token) {
    const std::int64_t place = data.tokens.place_of(token);
    return place >= shown.from && place < shown.to ? place : -1;
  };
  const float s = picture.s, half = 0.5f * kSmallType * s;
  const TextStyle style = picture.small(picture.frame.theme.ink, Align::left, true);
  float free = plot.x;
  std::vector<float> marks;  // where words would hide them
  for (const auto& fall : data.falls) {
    if (const std::int64_t place = place_of(fall.token); place >= 0)
      marks.push_back(std::clamp(data.tokens.x_of(plot, place), plot.x + 5 * s, plot.right() - 5 * s));
  }
  for (std::size_t i = 0; i < data.falls.size(); ++i) {
    const std::int64_t place = place_of(data.falls[i].token);
    if (place < 0) continue;
    const float x = std::clamp(data.tokens.x_of(plot, place), plot.x + 5 * s, plot.right() - 5 * s);
    const float tip = std::max(height_of(plot, axis, data.mean[static_cast<std::size_t>(place)]) - 3 * s, plot.y + 11 * s);
    const std::array<Point, 3> mark = {{{x - 5 * s, tip - 9 * s}, {x + 5 * s, tip - 9 * s}, {x, tip}}};
    picture.canvas.path(mark, picture.frame.theme.ink, s, true);
    picture.canvas.hit({x - 8 * s, tip - 13 * s, 16 * s, 20 * s}, {{NeedleSheets::falls, static_cast<std::int64_t>(i)}});
    const std::string words = fmt::format("−{:.2f} {}", data.falls[i].by, visible_token(*data.tokens.run, data.falls[i].token));
    const float width = picture.canvas.text_width(words, style);
    const float left = x + 8 * s + width <= plot.right() ? x + 8 * s : x - 8 * s - width, y = tip - 5 * s;
    const auto lies_under = [&](float other) { return other + 6 * s > left && other - 6 * s < left + width; };
    if (left < free || y < plot.y + half || std::ranges::any_of(marks, lies_under)) continue;
    picture.canvas.fill_rect({left - s, y - half, width + 2 * s, 2 * half}, faded(picture.frame.theme.panel, 0.75f));
    picture.canvas.text({left, y}, words, style);
    free = left + width + 8 * s;
  }
}

void draw_curves(const Picture& picture) {
  const NeedleData& data = picture.data;
  const Plot& plot = picture.plot;
  if (plot.w <= 0) return;
  const Theme& theme = picture.frame.theme;
  float most = 1;
  for (const NeedleCurve& curve : data.curves) most = std::max(most, std::ranges::max(curve.kept));
  const ValueAxis axis{0, most > 1.001f ? round_range(most) : 1.0};
  std::string name = Views::tr("what is left of it, ‖C‖ ÷ ‖C written‖, after each token");
  if (data.hidden_curves > 0)
    name += "; " + Views::tr("the {} places of {} that it wrote most to", data.curves.size(), std::ssize(data.curves) + data.hidden_curves);
  draw_value_axis(picture.canvas, plot, axis, name, picture.frame);
  const bool mean = data.mode == NeedleMode::places || data.curves.size() > 1;
  std::vector<LegendEntry> legend;
  if (mean) legend.push_back({theme.ink, Views::tr("mean of the layers")});
  std::vector<NeedleColor> colors = data.colors;
  if (!picture.frame.shown.cursor) std::ranges::sort(colors, {}, &NeedleColor::identity);  // the same order in each panel
  for (const NeedleColor& color : colors) legend.push_back({identity_color(color.identity, theme), color.name, color.identity});
  const float from = picture.frame.shown.cursor ? plot.x : picture.title.x;
  draw_legend(picture.canvas, {from, plot.y - 30 * picture.s, plot.right() - from, kSmallType * picture.s}, legend, picture.frame);
  for (const NeedleCurve& curve : data.curves) {
    const bool chosen = curve.chosen && picture.frame.shown.cursor;
    draw_curve(picture.canvas, plot, axis, curve.kept, {faded(identity_color(curve.identity, theme), chosen ? 1 : 0.75f), curve.identity},
               (chosen ? 3 : 1.5f) * picture.s, picture.frame);
  }
  if (mean) draw_curve(picture.canvas, plot, axis, data.mean, {theme.ink}, 2 * picture.s, picture.frame);
  hit_plot(picture.canvas, plot, {{NeedleSheets::curves, Hit::all, 0}, 1, data.tokens.count()});
  if (picture.token_axis)
    draw_token_axis(picture.canvas, plot, data.tokens, picture.frame);
  else
    draw_cursor_line(picture.canvas, plot, data.tokens, picture.frame);
  draw_falls(picture, axis);
}

/// Which rows of a list fit, and its last line that says how many do not.
std::vector<std::int64_t> shown_rows(const Picture& picture, Rect list, std::int64_t count, const std::vector<bool>& important) {
  const auto fit = [&](float height) { return static_cast<std::int64_t>(height / picture.row()); };
  if (fit(list.h) >= count) return choose_shown(count, count, important);
  picture.canvas.left_out();
  const std::vector<std::int64_t> rows = choose_shown(count, fit(list.h - picture.row()), important);
  if (list.h >= picture.row())
    fitted_text(picture.canvas, {list.x, list.bottom() - picture.row() / 2}, Views::tr("{} of {} shown", rows.size(), count),
                picture.small(picture.frame.theme.faint), list.w);
  return rows;
}

void draw_stack(const Picture& picture, const NeedleParts& parts, Rect bar) {
  const std::array<double, 5> values = parts.values();
  float x = bar.x;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float width = bar.w * static_cast<float>(std::clamp(values[i], 0.0, 1.0));
    if (width <= 0) continue;
    const Color color = part_color(i, picture.frame.theme);
    picture.canvas.fill_rect({x, bar.y, width, bar.h}, color);
    const std::string full = fmt::format("{} {:.2f}", kPartLetters[i], values[i]);
    const TextStyle style = picture.figures(readable_on(color), Align::center);
    const std::string_view shown = fitting(picture.canvas, full, kPartLetters[i], style, width - 4 * picture.s);
    if (picture.canvas.text_width(shown, style) <= width - 2 * picture.s)
      picture.canvas.text({x + width / 2, bar.y + bar.h / 2}, shown, style);
    x += width;
  }
  const bool chosen = parts.chosen && picture.frame.shown.cursor;
  picture.canvas.stroke_rect(bar, chosen ? picture.frame.theme.ink : picture.frame.theme.line, (chosen ? 2 : 1) * picture.s);
}

void draw_parts(const Picture& picture) {
  const NeedleData& data = picture.data;
  if (picture.parts.h < 2 * picture.row()) return;
  const Theme& theme = picture.frame.theme;
  const float s = picture.s, row = picture.row();
  const bool wide = picture.parts.w >= 400 * s;
  std::vector<LegendEntry> legend;
  for (std::size_t i = 0; i < kNeedleParts.size(); ++i) legend.push_back({part_color(i, theme), legend_text(i, wide)});
  draw_legend(picture.canvas, {picture.parts.x, picture.parts.y, picture.parts.w, row}, legend, picture.frame);
  const Rect list{picture.parts.x, picture.parts.y + row, picture.parts.w, picture.parts.h - row};
  std::vector<bool> important;
  float name_width = 0;
  for (const NeedleParts& parts : data.parts) {
    important.push_back(parts.chosen || parts.layer < 0);
    name_width = std::max(name_width, picture.canvas.text_width(parts.name, picture.small(theme.ink, Align::left, true)) + 8 * s);
  }
  const std::string read = Views::tr("read {:.2f}", -0.88);
  const float read_width = picture.canvas.text_width(read, picture.figures(theme.ink)) + 8 * s;
  float y = list.y;
  for (const std::int64_t i : shown_rows(picture, list, std::ssize(data.parts), important)) {
    const NeedleParts& parts = data.parts[static_cast<std::size_t>(i)];
    const bool chosen = parts.chosen && picture.frame.shown.cursor;
    fitted_text(picture.canvas, {list.x, y + row / 2}, parts.name,
                picture.small(chosen ? theme.accent : theme.ink, Align::left, chosen || parts.layer < 0), name_width);
    const Rect bar{list.x + name_width, y + 2 * s, list.w - name_width - read_width, row - 4 * s};
    if (bar.w > 20 * s) {
      draw_stack(picture, parts, bar);
      fitted_text(picture.canvas, {list.right(), y + row / 2}, Views::tr("read {:.2f}", parts.read_share), picture.figures(theme.ink),
                  read_width);
    }
    picture.canvas.hit({list.x, y, list.w, row}, {{NeedleSheets::parts, i}});
    y += row;
  }
}

void draw_causes(const Picture& picture) {
  const NeedleData& data = picture.data;
  if (picture.causes.h < 2 * picture.row() || data.causes.empty()) return;
  const Theme& theme = picture.frame.theme;
  const float s = picture.s, row = picture.row();
  fitted_text(picture.canvas, {picture.causes.x, picture.causes.y + row / 2},
              Views::tr("what took it, as a part of all that it wrote; and the token that took most"), picture.small(theme.faint),
              picture.causes.w);
  const Rect list{picture.causes.x, picture.causes.y + row, picture.causes.w, picture.causes.h - row};
  const double most = std::max(1e-9, data.causes.front().lost);
  float y = list.y;
  for (const std::int64_t i : shown_rows(picture, list, std::ssize(data.causes), std::vector<bool>(data.causes.size(), true))) {
    const NeedleCause& cause = data.causes[static_cast<std::size_t>(i)];
    const Color color = part_color(part_named(cause.what), theme);
    const Rect bar{list.x, y + 2 * s, list.w * static_cast<float>(std::clamp(cause.lost / most, 0.0, 1.0)), row - 4 * s};
    picture.canvas.fill_rect(bar, faded(color, 0.3f));
    picture.canvas.fill_rect({bar.x, bar.y, 3 * s, bar.h}, color);
    const TextStyle figure = picture.figures(theme.ink, Align::left, true);
    const std::string lost = fmt::format("{:.3f}", cause.lost);
    picture.canvas.text({list.x + 7 * s, y + row / 2}, lost, figure);
    const float x = list.x + 15 * s + picture.canvas.text_width(lost, figure);
    const std::string what = Views::tr(cause.what.c_str());
    const std::string full = Views::tr("{} in {}, most at {} {}", what, cause.where, *cause.go.token, cause.token_text);
    const std::string token_first = Views::tr("{} at {} {}, {}", what, *cause.go.token, cause.token_text, cause.where);
    const TextStyle style = picture.small(theme.ink);
    fitted_text(picture.canvas, {x, y + row / 2}, fitting(picture.canvas, full, token_first, style, list.right() - x), style,
                list.right() - x);
    picture.canvas.hit({list.x, y, list.w, row}, {{NeedleSheets::causes, i}});
    y += row;
  }
}

}  // namespace

void draw(const NeedleData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (data.message) {
    draw_message(canvas, area, frame, data.message.headline, data.message.detail);
    return;
  }
  const Picture picture(data, canvas, area, frame);
  canvas.push_clip(area);
  if (frame.shown.captions) draw_title(picture);
  if (picture.plot.w <= 0 || !picture.token_axis || picture.parts.h < 2 * picture.row()) canvas.left_out();
  draw_curves(picture);
  draw_parts(picture);
  draw_causes(picture);
  canvas.pop_clip();
}

}  // namespace statescope

// How a state is drawn: the chosen slot large, the others small, what is known of one cell in words.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "views/colormaps.h"
#include "views/matrix.h"
#include "views/parts.h"
#include "views/plot.h"
#include "views/sheets.h"
#include "views/state.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr float kWidest = 4;  // a matrix is at most so much wider than high on the screen, as far as there is room
constexpr float kSmallLine = 1.4f * kSmallType;
constexpr float kLeastSmall = 44, kSmallGap = 10;  // of the other slots

/// Where things stand.
struct Places {
  Plot main, changes;                  // main: the large heatmap
  Rect bar, others, readout, history;  // bar: its colour bar
  bool compact = false;                // little height: the matrix alone, without axes, changes and readout
};

/// One drawing.
struct Picture : Places {
  const StateData& data;
  Canvas& canvas;
  const Frame& frame;
  float s;
  Rect title;

  Picture(const StateData& data_, Canvas& canvas_, Rect area, const Frame& frame_);

  ColorScale scale(float range) const { return {frame.theme.dark ? ColorMap::diverging_dark : ColorMap::diverging, -range, range}; }
  Heatmap cells(const SlotMatrix& slot, float range) const {
    return {data.rows, data.columns, slot.values, scale(range), slot.on_device, first_of(slot)};
  }
  TextStyle tick(Align align) const { return value(frame, kSmallType, frame.theme.faint, align); }
  TextStyle axis(Align align) const { return label(frame, kSmallType, frame.theme.faint, align); }
  TextStyle exact() const { return value(frame, kBodyType, frame.theme.ink); }
  std::int64_t first_of(const SlotMatrix& slot) const { return slot.slot * data.rows * data.columns; }
  float line() const { return 1.5f * kBodyType * s; }
  float gap() const { return 6 * s; }
  /// In a place too small for the matrix only words are drawn.
  bool has_room() const { return main.w >= 40 * s && main.h >= 40 * s; }
  bool has_others() const { return data.slots.size() > 1; }
  /// Of what is chosen; where nothing can be, it has no place.
  bool has_words() const { return frame.shown.captions && (frame.shown.hints || data.has_chosen()); }

 private:
  Places matrix_in(Rect room, bool compact) const;
  Places words_below(Rect body, bool others_below) const;
  Places words_beside(Rect body) const;
  float others_width(Rect column) const;
};

/// The matrix as large as fits, in square cells unless it is far wider than high (Mamba: 16 × 1536) or fills its room; its axes, the change
/// of its rows and its colour bar; what follows may stand right of `bar`.
Places Picture::matrix_in(Rect room, bool without_axes) const {
  Places places;
  places.compact = without_axes;
  const float small = without_axes ? 2 * s : 15 * s;  // a line of axis names above, ticks and axis name below
  const float ticks_width = canvas.text_width(std::to_string(std::max<std::int64_t>(data.rows, 100)), tick(Align::right)) + 6 * s;
  const float changes_width = canvas.text_width(Views::tr("change"), axis(Align::left)) + 4 * s;
  const float bar_width = bar_room(frame, 12 * s), numbers_width = bar_room(frame, gap() + canvas.text_width("-0.0005", tick(Align::left)));
  const float w = std::max(1.0f, room.w - ticks_width - gap() - changes_width - gap() - bar_width - numbers_width);
  const float h = std::max(1.0f, room.h - 3 * small);
  float cell = std::min(w / static_cast<float>(data.columns), h / static_cast<float>(data.rows));
  float height = std::max(cell, std::min(h, cell * static_cast<float>(data.columns) / kWidest) / static_cast<float>(data.rows));
  if (frame.shown.fills) {
    constexpr float stretched = 1.6f;
    height = std::max(height, std::min(h / static_cast<float>(data.rows), stretched * cell));
    cell = std::max(cell, std::min(w / static_cast<float>(data.columns), stretched * height));
  }
  if (height > 4) height = std::floor(height);
  if (cell > 4) cell = std::floor(cell);
  const float width = cell * static_cast<float>(data.columns);
  const Rect& map = places.main = {room.x + ticks_width, room.y + small, width, height * static_cast<float>(data.rows)};
  places.changes = {map.right() + gap(), map.y, changes_width, map.h};
  places.bar = {places.changes.right() + gap(), map.y, bar_width, map.h};
  places.others = {places.bar.right() + numbers_width + 3 * gap(), room.y, 0, 0};
  return places;
}

/// The other slots beside the matrix, or below it; under them, across, what is known of the chosen cell.
Places Picture::words_below(Rect body, bool others_below) const {
  Rect strip;
  // Room for who wrote the cell, whether one is chosen or not: the picture does not jump.
  if (has_words() && title.h + body.h >= 250 * s && body.w >= 200 * s) {
    strip = {body.x, body.bottom() - history_height(frame), body.w, history_height(frame)};
    body.h -= strip.h + 2 * s;
  }
  // Room for the longest value in any case, so that the picture does not jump when a cell is chosen.
  const float longest = canvas.text_width(std::string(82, '0'), exact());
  const float most_lines = strip.h > 0 && title.h + body.h < 360 * s ? 1 : 3;
  const float lines = has_words() ? std::clamp(std::ceil(longest / std::max(1.0f, body.w)), 1.0f, most_lines) : 0;
  const bool without_axes = body.h - lines * line() - 45 * s - gap() < 80 * s;
  const float readout_height = without_axes ? 0 : lines * line();
  Rect room{body.x, body.y, body.w, body.h - readout_height - gap()};
  if (has_others()) others_below ? room.h *= 0.65f : room.w -= others_width({0, 0, 0.25f * body.w, room.h}) + 3 * gap();
  Places places = matrix_in(room, without_axes);
  places.history = strip;
  places.readout = {body.x, body.bottom() - readout_height, body.w, readout_height};
  Rect& rest = places.others;
  if (others_below) rest = {body.x, room.bottom() + gap(), 0, 0};
  rest.w = has_others() ? body.right() - rest.x : 0;
  rest.h = places.readout.y - rest.y - gap();
  return places;
}

/// The narrowest part of a column beside the matrix in which the other slots are nearly as large as in all of it; all of it where that
/// cannot show every one.
float Picture::others_width(Rect column) const {
  const float gap = kSmallGap * s, words = 2 * kSmallLine * s;
  const float aspect = static_cast<float>(data.columns) / static_cast<float>(data.rows);
  const std::int64_t count = std::ssize(data.slots);
  const auto width_of_each = [&](std::int64_t columns) {
    const auto rows = static_cast<float>((count + columns - 1) / columns);
    const float w = (column.w + gap) / static_cast<float>(columns) - gap, h = (column.h + gap) / rows - gap - words;
    return std::min(w, h * aspect);
  };
  const float largest = width_of_each(best_columns(count, column.w, column.h, aspect, words, gap));
  for (std::int64_t columns = 1; columns <= count; ++columns) {
    const float w = width_of_each(columns);
    if (w >= 0.8f * largest && std::min(w, w / aspect) > kLeastSmall * s) return static_cast<float>(columns) * (w + gap) - gap;
  }
  return column.w;
}

/// The other slots beside the matrix; under them what is known of the chosen cell: for wide places. No matrix where there is no room.
Places Picture::words_beside(Rect body) const {
  const float column = std::max(0.45f * body.w, 250 * s), words = 3 * line() + history_height(frame) + 2 * s;
  const float least = words + (has_others() ? 60 * s + 2 * kSmallLine * s + gap() : 0);
  if (!has_words() || body.h < std::max(least, 125 * s) || body.w < 2 * column) return {};
  Places places = matrix_in({body.x, body.y, body.w - column - 3 * gap(), body.h}, false);
  Rect& rest = places.others;
  rest.w = body.right() - rest.x;
  const float top = has_others() ? body.bottom() - words : places.main.y;
  rest.h = has_others() ? top - gap() - rest.y : 0;
  places.readout = {rest.x, top, rest.w, 3 * line()};
  places.history = {rest.x, places.readout.bottom() + 2 * s, rest.w, history_height(frame)};
  if (!has_others()) rest.w = 0;
  return places;
}

Picture::Picture(const StateData& data_, Canvas& canvas_, Rect area, const Frame& frame_)
    : data(data_), canvas(canvas_), frame(frame_), s(frame_.scale) {
  const Rect inner = inset(area, 8 * s);
  title = {inner.x, inner.y, inner.w, caption_height(frame)};
  const Rect body{inner.x, title.bottom(), inner.w, inner.bottom() - title.bottom()};
  Places best = words_below(body, false);
  for (const Places& other : {words_beside(body), has_others() ? words_below(body, true) : Places{}})
    if (!other.compact && other.main.w * other.main.h > 1.21f * best.main.w * best.main.h) best = other;
  static_cast<Places&>(*this) = best;
  if (has_room()) {
    main = zoomed(canvas, main, true, true, frame);
    changes = zoomed(canvas, changes, false, true, frame);
  }
  if (!has_room()) readout = {inner.x, title.bottom(), inner.w, inner.bottom() - title.bottom()};
}

void draw_title(const Picture& picture) {
  const StateData& data = picture.data;
  std::string text = capitalized(place_text(data, data.matrix())) + ", " + time_words(data);
  const bool only_here = picture.readout.h < picture.line() && data.has_chosen();
  if (only_here) text = fmt::format("{}  {}", chosen_words(data).front(), text);
  const TextStyle note = picture.axis(Align::right);
  const std::string accuracy = accuracy_name(data.accuracy);
  const std::string how = data.colors_like.empty() ? accuracy : Views::tr("colours as in {} · {}", data.colors_like, accuracy);
  const float y = picture.title.y + picture.title.h / 2, how_width = picture.canvas.text_width(how, note) + 10 * picture.s;
  clauses_text(picture.canvas, {picture.title.x, y}, text, label(picture.frame, kBodyType, picture.frame.theme.ink),
               picture.title.w - how_width, true);
  fitted_text(picture.canvas, {picture.title.right(), y}, how, note, picture.title.w);
  picture.canvas.hit({picture.title.x, picture.title.y, picture.title.w - how_width, picture.title.h},
                     {{StateSheets::slots, static_cast<std::int64_t>(data.chosen)}});
}

/// Two strokes, so that the outline is seen on dark and light cells.
void draw_outline(const Picture& picture, Rect rect) {
  picture.canvas.stroke_rect(rect, picture.frame.theme.panel, 4 * picture.s);
  picture.canvas.stroke_rect(rect, picture.frame.theme.ink, 2 * picture.s);
}

void draw_axes(const Picture& picture) {
  const StateData& data = picture.data;
  const Plot& main = picture.main;
  const float s = picture.s, h = main.all.h / static_cast<float>(data.rows), w = main.all.w / static_cast<float>(data.columns);
  const auto fit = [](float length, float each) { return std::max<std::int64_t>(1, static_cast<std::int64_t>(length / each)); };
  for (const std::int64_t r : axis_ticks(places_down(main, data.rows), fit(main.h, 22 * s))) {
    const float middle = main.all.y + h * (static_cast<float>(r) + 0.5f);
    if (middle < main.y || middle > main.bottom()) continue;
    const float y = std::max(middle, main.y + 0.5f * kSmallType * s);  // below the axis name
    picture.canvas.text({main.x - 6 * s, y}, std::to_string(r), picture.tick(Align::right));
  }
  const float room = picture.canvas.text_width(std::to_string(data.columns), picture.tick(Align::center)) + 12 * s;
  for (const std::int64_t c : axis_ticks(places_across(main, data.columns), fit(main.w, room))) {
    const float x = main.all.x + w * (static_cast<float>(c) + 0.5f);
    if (x < main.x || x > main.right()) continue;
    picture.canvas.text({x, main.bottom() + 9 * s}, std::to_string(c), picture.tick(Align::center));
  }
  fitted_text(picture.canvas, {picture.title.x, main.y - 8 * s}, data.row_name, picture.axis(Align::left),
              picture.changes.x - picture.title.x);
  fitted_text(picture.canvas, {main.x + main.w / 2, main.bottom() + 24 * s}, data.column_name, picture.axis(Align::center),
              2 * std::min(main.w / 2 + 6 * s, main.x + main.w / 2 - picture.title.x));
}

/// ‖S_t − S_{t−1}‖ per row, as bars beside the rows: a row that nothing happened to has none.
void draw_changes(const Picture& picture) {
  const StateData& data = picture.data;
  const std::vector<float>& change = data.matrix().row_change;
  const Plot& area = picture.changes;
  const float s = picture.s, most = std::ranges::max(change), h = area.all.h / static_cast<float>(data.rows);
  picture.canvas.text({area.x, area.y - 8 * s}, data.mode == StateMode::state ? Views::tr("change") : Views::tr("norm"),
                      picture.axis(Align::left));
  picture.canvas.line({area.x, area.y}, {area.x, area.bottom()}, picture.frame.theme.line, s);
  hit_plot(picture.canvas, area, {{StateSheets::changes, static_cast<std::int64_t>(data.chosen), 0}, data.rows, 1, 1});
  if (!(most > 0)) return;
  const PlaceRange rows = places_down(area, data.rows);
  for (std::int64_t r = rows.from; r < rows.to; ++r) {
    const Within inside(picture.canvas, area);
    const float length = area.w * change[static_cast<std::size_t>(r)] / most;
    const Rect bar{area.x, area.all.y + h * (static_cast<float>(r) + 0.2f), length, 0.6f * h};
    if (length > 0) picture.canvas.fill_rect(bar, picture.frame.theme.ink);
  }
  const std::string longest = number(most, 3);
  const TextStyle tick = picture.tick(Align::right);
  const float end = std::max(area.right(), area.x + picture.canvas.text_width(longest, tick));  // of the longest bar, or where it has room
  picture.canvas.text({end, area.bottom() + 9 * s}, longest, tick);
}

void draw_main(const Picture& picture) {
  const StateData& data = picture.data;
  const SlotMatrix& slot = data.matrix();
  {
    const Within inside(picture.canvas, picture.main);
    picture.canvas.heatmap(picture.main.all, picture.cells(slot, slot.range));
  }
  hit_plot(picture.canvas, picture.main, {{StateSheets::cells, slot.slot, 0, 0}, data.rows, data.columns, 1, 2});
  const Color edge = slot.written ? faded(picture.frame.theme.ink, data.progress) : picture.frame.theme.line;
  picture.canvas.stroke_rect(picture.main, edge, (slot.written ? 2 : 1) * picture.s);
  if (data.row == kAllRows)  // around the line that says whether it was written
    picture.canvas.stroke_rect(inset(picture.main, -3 * picture.s), picture.frame.theme.accent, 2 * picture.s);
  if (data.row < 0) return;
  const Rect& all = picture.main.all;
  const float w = all.w / static_cast<float>(data.columns), h = all.h / static_cast<float>(data.rows);
  const float y = all.y + h * static_cast<float>(data.row);
  const Within inside(picture.canvas, picture.main);
  draw_outline(picture, data.has_cell() ? Rect{all.x + w * static_cast<float>(data.column), y, w, h} : Rect{all.x, y, all.w, h});
}

void draw_color_bar(const Picture& picture) {
  constexpr std::size_t kSteps = 101;
  std::vector<float> steps(kSteps);
  const SlotMatrix& slot = picture.data.matrix();
  for (std::size_t i = 0; i < kSteps; ++i) steps[i] = slot.range * (1 - static_cast<float>(i) / 50);
  const Rect& bar = picture.bar;
  picture.canvas.heatmap(bar, {kSteps, 1, steps, picture.scale(slot.range)});
  const float x = bar.right() + 5 * picture.s, half = 0.5f * kSmallType * picture.s;
  const TextStyle style = picture.tick(Align::left);
  picture.canvas.text({x, bar.y + half}, number(slot.range, 4), style);
  if (bar.h > 6 * half) picture.canvas.text({x, bar.y + bar.h / 2}, "0", style);
  if (bar.h > 4 * half) picture.canvas.text({x, bar.bottom() - half}, number(-slot.range, 4), style);
}

void draw_small(const Picture& picture, const SlotMatrix& slot, Rect rect) {
  const Theme& theme = picture.frame.theme;
  const float s = picture.s, line = kSmallLine * s;
  const StateData& data = picture.data;
  const bool chosen = &slot == &data.matrix() && picture.frame.shown.cursor;
  const float cell = std::min(rect.w / static_cast<float>(data.columns), (rect.h - 2 * line) / static_cast<float>(data.rows));
  const Rect map{rect.x, rect.y + line, cell * static_cast<float>(data.columns), cell * static_cast<float>(data.rows)};
  const TextStyle name = label(picture.frame, kSmallType, chosen ? theme.accent : theme.ink, Align::left, chosen);
  const float wide = picture.canvas.text_width(slot.name, name);
  const float mark = wide <= rect.w - 12 * s ? 12 * s : 0;  // a name that has no room beside its colour says enough
  if (mark > 0) picture.canvas.fill_rect({rect.x, rect.y + line / 2 - 4 * s, 8 * s, 8 * s}, identity_color(slot.identity, theme));
  fitted_text(picture.canvas, {rect.x + mark, rect.y + line / 2}, slot.name, name, rect.w - mark);
  const std::string span = fmt::format("±{}", number(slot.small_range, 4));
  const TextStyle tick = picture.tick(Align::right);
  if (mark + wide + 4 * s + picture.canvas.text_width(span, tick) <= map.w)
    picture.canvas.text({map.right(), rect.y + line / 2}, span, tick);
  picture.canvas.hit({rect.x, rect.y, map.w, line}, {{StateSheets::slots, slot.slot}});
  picture.canvas.heatmap(map, picture.cells(slot, slot.small_range));
  picture.canvas.stroke_rect(map, slot.written ? faded(theme.ink, data.progress) : theme.line, (slot.written ? 2 : 1) * s);
  picture.canvas.hit(map, {{StateSheets::cells, slot.slot, 0, 0}, data.rows, data.columns, 1, 2});
  const std::string norm = number(slot.change, 3);
  const TextStyle below = label(picture.frame, kSmallType, theme.faint);
  const std::string still = Views::tr("unchanged");
  const std::string change = data.moving()                   ? ""
                             : data.mode != StateMode::state ? (slot.change > 0 ? Views::tr("norm {}", norm) : Views::tr("all 0"))
                             : slot.written                  ? "Δ " + norm
                             : picture.canvas.text_width(still, below) <= rect.w ? still
                                                                                 : "Δ 0";
  fitted_text(picture.canvas, {rect.x, map.bottom() + line / 2}, change, below, rect.w);
}

void draw_others(const Picture& picture) {
  const StateData& data = picture.data;
  Rect area = picture.others;
  const float s = picture.s, least = kLeastSmall * s, gap = kSmallGap * s, words = 2 * kSmallLine * s;
  if (picture.has_others() && (area.w < least || area.h < least)) picture.canvas.left_out();
  if (area.w < least || area.h < least) return;
  const auto fit = [gap](float length, float each) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>((length + gap) / (each + gap)));
  };
  const std::int64_t all = std::ssize(data.slots);
  if (fit(area.w, least) * fit(area.h, least + words) < all) area.h -= kSmallLine * s;  // a line says how many are hidden
  const std::int64_t count = std::min(all, fit(area.w, least) * fit(area.h, least + words));
  const float aspect = static_cast<float>(data.columns) / static_cast<float>(data.rows);
  const std::int64_t columns = best_columns(count, area.w, area.h, aspect, words, gap), rows = (count + columns - 1) / columns;
  const float w = (area.w + gap) / static_cast<float>(columns) - gap;
  const float h = std::min((area.h + gap) / static_cast<float>(rows) - gap, w / aspect + words);
  std::vector<bool> important;
  for (const SlotMatrix& slot : data.slots) important.push_back(slot.written || &slot == &data.matrix());
  std::int64_t place = 0;
  for (const std::int64_t i : choose_shown(all, count, important)) {
    const auto column = static_cast<float>(place % columns), row = static_cast<float>(place / columns);
    draw_small(picture, data.slots[static_cast<std::size_t>(i)], {area.x + column * (w + gap), area.y + row * (h + gap), w, h});
    ++place;
  }
  if (count == all) return;
  picture.canvas.left_out();
  fitted_text(picture.canvas, {area.x, area.bottom() + kSmallLine * s / 2}, Views::tr("{} of {} shown", count, all),
              picture.axis(Align::left), area.w);
}

void draw_readout(const Picture& picture) {
  const StateData& data = picture.data;
  const Rect& area = picture.readout;
  Point at{area.x, area.y + picture.line() / 2};
  if (!data.has_chosen() && !picture.frame.shown.hints) return;
  if (!data.has_chosen()) {
    const TextStyle hint = label(picture.frame, kBodyType, picture.frame.theme.faint);
    for (const std::string& part : wrapped(picture.canvas,
                                           Views::tr("Point at a cell to read its value and who wrote it. W: its row, "
                                                     "Shift+W: all rows."),
                                           hint, area.w)) {
      if (at.y < area.bottom()) fitted_text(picture.canvas, at, part, hint, area.w);
      at.y += picture.line();
    }
    return;
  }
  for (const std::string& word : chosen_words(data)) {
    const float width = picture.canvas.text_width(word, picture.exact());
    if (at.x > area.x && at.x + width > area.right()) at = {area.x, at.y + picture.line()};
    if (at.y < area.bottom()) fitted_text(picture.canvas, at, word, picture.exact(), area.right() - at.x);
    at.x += width + 24 * picture.s;
  }
}

}  // namespace

std::int64_t best_columns(std::int64_t count, float w, float h, float aspect, float extra, float gap) {
  std::int64_t best = 1;
  float largest_width = 0;
  for (std::int64_t columns = 1; columns <= count; ++columns) {
    const std::int64_t rows = (count + columns - 1) / columns;
    const float each_w = (w + gap) / static_cast<float>(columns) - gap, each_h = (h + gap) / static_cast<float>(rows) - gap - extra;
    const float width = std::min(each_w, each_h * aspect);
    if (width <= largest_width) continue;
    largest_width = width;
    best = columns;
  }
  return best;
}

void draw(const StateData& data, Canvas& canvas, Rect area, const Frame& frame) {
  if (!data.headline.empty()) {
    draw_message(canvas, area, frame, data.headline, data.detail);
    return;
  }
  const Picture picture(data, canvas, area, frame);
  canvas.push_clip(area);
  if (frame.shown.captions) draw_title(picture);
  if (!picture.has_room() || picture.compact) canvas.left_out();
  if (picture.has_room()) {
    if (!picture.compact) draw_axes(picture);
    if (!picture.compact) draw_changes(picture);
    draw_main(picture);
    if (frame.shown.color_bars) draw_color_bar(picture);
    draw_others(picture);
  }
  if (picture.readout.h >= picture.line() && picture.readout.y >= picture.title.bottom()) draw_readout(picture);
  draw(data.history, canvas, picture.history, frame, StateSheets::history);
  canvas.pop_clip();
}

}  // namespace statescope

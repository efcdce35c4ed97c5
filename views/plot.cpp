#include "views/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "views/colormaps.h"
#include "views/parts.h"
#include "views/words.h"

namespace statescope {
namespace {

std::string superscript(int exponent) {
  static constexpr const char* digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "⁻" : "";
  for (const char digit : std::to_string(std::abs(exponent))) text += digits[digit - '0'];
  return text;
}

/// Extent of text centred at x, kept within [from, to].
struct Placed {
  float left = 0, right = 0;
  float middle() const { return (left + right) / 2; }
};
Placed placed_within(float x, float width, float from, float to) {
  const float left = std::max(from, std::min(x - width / 2, to - width));
  return {left, left + width};
}

/// Under the tokens of a span: its letter, or where that has no room only its line.
void draw_spans(Canvas& canvas, const Plot& plot, const TokenAxis& axis, const Frame& frame) {
  const float s = frame.scale, y = plot.bottom() + 3 * s;
  const float each = plot.all.w / static_cast<float>(axis.count());
  const Within inside(canvas, plot, {plot.x, y, plot.w, 3 * s});
  for (const TokenSpan& span : axis.run->spans) {
    const std::int64_t first = axis.place_of(span.begin - 1) + 1, last = axis.place_of(span.end - 1);
    if (first > last) continue;
    const MarkStyle style = span_style(span.kind, frame.theme);
    const float left = plot.all.x + each * static_cast<float>(first), width = std::max(2 * s, each * static_cast<float>(last - first + 1));
    canvas.fill_rect({left, y, width, 3 * s}, style.color);
  }
}

/// Of the spans' letters, above the plot's lower edge.
void draw_span_letters(Canvas& canvas, const Plot& plot, Rect row, const TokenAxis& axis, const Frame& frame) {
  const float each = plot.all.w / static_cast<float>(axis.count());
  const PlaceRange shown = places_across(plot, axis.count());
  float free = row.x;
  for (const TokenSpan& span : axis.run->spans) {
    const std::int64_t first = std::max(axis.place_of(span.begin - 1) + 1, shown.from);
    const std::int64_t last = std::min(axis.place_of(span.end - 1), shown.to - 1);
    if (first > last) continue;
    const MarkStyle style = span_style(span.kind, frame.theme);
    const TextStyle letter = label(frame, kSmallType, frame.theme.ink, Align::center, true);
    const float middle = plot.all.x + each * (static_cast<float>(first + last + 1) / 2);
    const Placed at = placed_within(middle, canvas.text_width(style.letter, letter), row.x, row.right());
    if (at.left < free || at.right > row.right()) continue;
    canvas.text({at.middle(), row.y + row.h / 2}, style.letter, letter);
    free = at.right + 3 * frame.scale;
  }
}

/// 1, 2 and 5 · 10ⁿ within the axis.
std::vector<double> steps_of_decades(const ValueAxis& axis, int from, int to) {
  std::vector<double> values;
  for (int power = from; power <= to; ++power) {
    for (const double step : {1.0, 2.0, 5.0}) {
      const double v = step * std::pow(10.0, power);
      if (v >= axis.low * (1 - 1e-9) && v <= axis.high * (1 + 1e-9)) values.push_back(v);
    }
  }
  return values;
}

}  // namespace

float round_range(float value) {
  if (!(value > 0) || !std::isfinite(value)) return 1;
  const double power = std::pow(10.0, std::floor(std::log10(double{value})));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (value <= step * power * (1 + 1e-6)) return static_cast<float>(step * power);
  }
  return static_cast<float>(10 * power);
}

std::vector<std::int64_t> axis_ticks(std::int64_t count, std::int64_t most) { return axis_ticks(PlaceRange{0, count}, most); }

std::vector<std::int64_t> axis_ticks(PlaceRange places, std::int64_t most) {
  std::int64_t step = 1;
  while ((places.to - places.from + step - 1) / step > most) step *= 2;
  std::vector<std::int64_t> ticks;
  for (std::int64_t i = (places.from + step - 1) / step * step; i < places.to; i += step) ticks.push_back(i);
  return ticks;
}

Plot zoomed(Canvas& canvas, Rect plot, bool across, bool down, const Frame& frame) {
  if (plot.w <= 0 || plot.h <= 0) return plot;
  canvas.zooms(plot, across, down);
  const Rect& part = frame.in_sight;
  Rect all = plot;
  if (across) all = {plot.x - plot.w * part.x / part.w, all.y, plot.w / part.w, all.h};
  if (down) all = {all.x, plot.y - plot.h * part.y / part.h, all.w, plot.h / part.h};
  return {plot, all};
}

Plot left_part(const Plot& plot, float share) {
  const Rect all{plot.all.x, plot.all.y, plot.all.w * share, plot.all.h};
  const float right = plot.shows_part() ? std::min(plot.right(), all.right()) : all.right();
  return {Rect{plot.x, plot.y, std::max(0.0f, right - plot.x), plot.h}, all};
}

namespace {

PlaceRange places_in(float from, float length, float all_from, float all_length, std::int64_t count) {
  constexpr float rounding = 1e-3f;  // of a place
  const float each = all_length / static_cast<float>(count), begin = (from - all_from) / each;
  return {std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(begin + rounding))),
          std::min(count, static_cast<std::int64_t>(std::ceil(begin + length / each - rounding)))};
}

}  // namespace

PlaceRange places_across(const Plot& plot, std::int64_t count) {
  return plot.shows_part() ? places_in(plot.x, plot.w, plot.all.x, plot.all.w, count) : PlaceRange{0, count};
}

PlaceRange places_down(const Plot& plot, std::int64_t count) {
  return plot.shows_part() ? places_in(plot.y, plot.h, plot.all.y, plot.all.h, count) : PlaceRange{0, count};
}

bool holds_text(const Plot& plot, Point middle, Size size) {
  if (!plot.shows_part()) return true;
  return middle.x - size.w / 2 >= plot.x && middle.x + size.w / 2 <= plot.right() && middle.y - size.h / 2 >= plot.y &&
         middle.y + size.h / 2 <= plot.bottom();
}

Within::Within(Canvas& canvas, const Plot& plot, Rect clip) : canvas_(plot.shows_part() ? &canvas : nullptr) {
  if (canvas_) canvas_->push_clip(clip);
}

Within::~Within() {
  if (canvas_) canvas_->pop_clip();
}

void hit_plot(Canvas& canvas, const Plot& plot, const HitGrid& grid) {
  const Within inside(canvas, plot);
  canvas.hit(plot.all, grid);
}

double ValueAxis::share(double value) const {
  if (std::isnan(value)) return value;
  const double at = logarithmic ? std::log(std::max(value, low) / low) / std::log(high / low) : (value - low) / (high - low);
  return std::clamp(at, 0.0, 1.0);
}

std::vector<double> axis_values(const ValueAxis& axis, std::int64_t most) {
  std::vector<double> values;
  most = std::max<std::int64_t>(most, 1);
  if (axis.logarithmic) {
    const auto low = static_cast<int>(std::ceil(std::log10(axis.low) - 1e-9)),
               high = static_cast<int>(std::floor(std::log10(axis.high) + 1e-9));
    if (high - low < 2 && most > 3) return steps_of_decades(axis, low - 1, high);
    int step = 1;
    while ((high - low) / step + 1 > most) ++step;
    for (int power = high; power >= low; power -= step) values.insert(values.begin(), std::pow(10.0, power));
    return values;
  }
  const double step = round_range(static_cast<float>((axis.high - axis.low) / static_cast<double>(most)));
  for (double i = std::ceil(axis.low / step - 1e-6); i * step <= axis.high + 1e-6 * step; ++i) values.push_back(i == 0 ? 0 : i * step);
  return values;
}

std::string axis_number(double value) {
  const double size = std::abs(value);
  if (size >= 1000 && size < 1e6 && std::fmod(size, 1000) == 0) return fmt::format("{:g}k", value / 1000);
  if (size == 0 || (size >= 0.001 && size < 1e6)) return fmt::format("{:g}", value);
  constexpr double rounding = 1e-6;  // of a power of ten that has been a float
  const auto exponent = static_cast<int>(std::floor(std::log10(size) + rounding));
  const double factor = value / std::pow(10.0, exponent);
  const std::string ten = "10" + superscript(exponent);
  return std::abs(std::abs(factor) - 1) < 3 * rounding ? (value < 0 ? "-" : "") + ten : fmt::format("{:.3g}·{}", factor, ten);
}

ValueAxis axis_over(std::span<const float> values, double low) {
  double most = low;
  for (const float v : values) most = std::isfinite(v) ? std::max(most, static_cast<double>(v)) : most;
  return {low, most > low ? low + round_range(static_cast<float>(most - low)) : low + 1, false};
}

float value_axis_width(const Frame& frame) { return 50 * frame.scale; }

float height_of(Rect plot, const ValueAxis& axis, double value) { return plot.bottom() - plot.h * static_cast<float>(axis.share(value)); }

void draw_value_axis(Canvas& canvas, Rect plot, const ValueAxis& axis, std::string_view name, const Frame& frame) {
  const float s = frame.scale, half = 0.5f * kSmallType * s;
  const float beyond = frame.shown.cursor ? 0 : half;  // on paper every number stands at its line
  const TextStyle style = value(frame, kSmallType, frame.theme.faint, Align::right);
  float last = std::numeric_limits<float>::infinity();
  constexpr std::int64_t most = 8;
  for (const double v : axis_values(axis, std::min(most, static_cast<std::int64_t>(plot.h * frame.shown.ticks / (24 * s))))) {
    const float y = height_of(plot, axis, v),
                text_y = std::clamp(y, plot.y + half - beyond, std::max(plot.y + half, plot.bottom() - half) + beyond);
    canvas.line({plot.x, y}, {plot.right(), y}, faded(frame.theme.line, 0.7f), s);
    if (text_y + half > last) continue;
    fitted_text(canvas, {plot.x - 5 * s, text_y}, axis_number(v), style, value_axis_width(frame) - 5 * s);
    last = text_y - half;
  }
  clauses_text(canvas, {plot.x, plot.y - 8 * s}, name, label(frame, kSmallType, frame.theme.faint), plot.w, true);
}

TokenWindow window_around(std::int64_t token, std::int64_t tokens) {
  const std::int64_t from = std::max<std::int64_t>(0, token / 256 * 256 - 256);
  return {from, std::min(tokens, from + 512)};
}

std::int64_t TokenAxis::place_of(std::int64_t token) const {
  return std::upper_bound(tokens.begin(), tokens.end(), token) - tokens.begin() - 1;
}

float TokenAxis::x_of(const Plot& plot, std::int64_t i) const {
  return plot.all.x + plot.all.w * (static_cast<float>(i) + 0.5f) / static_cast<float>(count());
}

std::vector<std::int32_t> token_range(std::int64_t from, std::int64_t to) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(std::max<std::int64_t>(0, to - from)));
  std::iota(tokens.begin(), tokens.end(), static_cast<std::int32_t>(from));
  return tokens;
}

float token_axis_height(const Frame& frame) { return 47 * frame.scale; }

void draw_cursor_line(Canvas& canvas, const Plot& plot, const TokenAxis& axis, const Frame& frame) {
  const std::int64_t place = axis.place_of(axis.cursor);
  if (place < 0 || !frame.shown.captions) return;
  const float x = axis.x_of(plot, place);
  if (plot.shows_part() && (x < plot.x || x > plot.right())) return;
  canvas.line({x, plot.y}, {x, plot.bottom()}, frame.theme.accent, 2 * frame.scale);
}

namespace {

/// Round numbers of tokens where not all texts have room: a figure has no use for every thirtieth word.
void draw_token_numbers(Canvas& canvas, const Plot& plot, Rect numbers, const TokenAxis& axis, const Frame& frame) {
  const TextStyle style = value(frame, kSmallType, frame.theme.faint, Align::center);
  const PlaceRange shown = places_across(plot, axis.count());
  const double first = axis.tokens[static_cast<std::size_t>(shown.from)], last = axis.tokens[static_cast<std::size_t>(shown.to - 1)];
  const float each = canvas.text_width(std::to_string(axis.tokens.back()), style) + 16 * frame.scale / frame.shown.ticks;
  const auto most = std::max<std::int64_t>(1, static_cast<std::int64_t>(plot.w / each));
  float free = -std::numeric_limits<float>::infinity();
  for (const double tick : axis_values({first, std::max(last, first + 1)}, most)) {
    const std::int64_t place = axis.place_of(static_cast<std::int64_t>(tick));
    if (place < 0 || tick != std::floor(tick)) continue;
    const std::string text = std::to_string(static_cast<std::int64_t>(tick));
    const float x = axis.x_of(plot, place), half = canvas.text_width(text, style) / 2;
    if (x - half < free) continue;
    canvas.line({x, plot.bottom()}, {x, plot.bottom() + 2.5f * frame.scale}, frame.theme.faint, frame.scale);
    canvas.text({x, numbers.y + numbers.h / 2}, text, style);
    free = x + half + 4 * frame.scale;
  }
  fitted_text(canvas, {plot.x + plot.w / 2, numbers.bottom() + numbers.h}, Views::tr("token"),
              label(frame, kSmallType, frame.theme.faint, Align::center), plot.w);
}

/// Whether the texts of all of them stand beside each other.
bool have_room_for_texts(const Canvas& canvas, const Plot& plot, const TokenAxis& axis, const Frame& frame) {
  const float each = plot.all.w / static_cast<float>(axis.count());
  if (each < 12 * frame.scale) return false;
  const TextStyle word = label(frame, kBodyType, frame.theme.ink, Align::center);
  return std::ranges::all_of(
      axis.tokens, [&](std::int32_t token) { return canvas.text_width(visible_token(*axis.run, token), word) + 8 * frame.scale <= each; });
}

}  // namespace

void draw_token_axis(Canvas& canvas, const Plot& plot, const TokenAxis& axis, const Frame& frame) {
  if (axis.count() == 0 || plot.w <= 0) return;
  const float s = frame.scale;
  if (frame.shown.marks) draw_spans(canvas, plot, axis, frame);
  draw_cursor_line(canvas, plot, axis, frame);
  const Rect letters{plot.x, plot.bottom() + 6 * s, plot.w, kSmallType * s};
  const Rect texts{plot.x, letters.bottom(), plot.w, kBodyType * s}, numbers{plot.x, texts.bottom() + 3 * s, plot.w, kSmallType * s};
  if (frame.shown.marks) draw_span_letters(canvas, plot, letters, axis, frame);
  if (!frame.shown.cursor && !have_room_for_texts(canvas, plot, axis, frame))
    return draw_token_numbers(canvas, plot, {plot.x, letters.bottom(), plot.w, kSmallType * s}, axis, frame);

  std::vector<Placed> taken;
  const auto place = [&](std::int64_t i, bool chosen) {
    while (i + 1 < axis.count() && axis.tokens[static_cast<std::size_t>(i + 1)] == axis.tokens[static_cast<std::size_t>(i)])
      ++i;  // of several places of a token the last
    const float middle = axis.x_of(plot, i);
    if (middle < plot.x || middle > plot.right()) return;
    const std::int64_t token = axis.tokens[static_cast<std::size_t>(i)];
    const TextStyle word = label(frame, kBodyType, chosen ? frame.theme.accent : frame.theme.ink, Align::center, chosen);
    const TextStyle count = value(frame, kSmallType, frame.theme.faint, Align::center);
    const std::string text = elided(canvas, visible_token(*axis.run, token), word, 90 * s), position = std::to_string(token);
    const float width = std::max(canvas.text_width(text, word), canvas.text_width(position, count));
    if (width > plot.w) return;
    const Placed at = placed_within(middle, width, plot.x, plot.right());
    const float gap = 8 * s / frame.shown.ticks;
    if (std::ranges::any_of(taken, [&](Placed other) { return at.left < other.right + gap && other.left < at.right + gap; })) return;
    taken.push_back(at);
    if (!text.empty()) canvas.text({at.middle(), texts.y + texts.h / 2}, text, word);
    canvas.text({at.middle(), numbers.y + numbers.h / 2}, position, count);
  };
  const std::int64_t cursor = axis.place_of(axis.cursor);
  if (cursor >= 0 && frame.shown.captions) place(cursor, axis.tokens[static_cast<std::size_t>(cursor)] == axis.cursor);
  const auto step = std::max<std::int64_t>(1, static_cast<std::int64_t>(24 * s / plot.all.w * static_cast<float>(axis.count())));
  const PlaceRange shown = places_across(plot, axis.count());
  for (std::int64_t i = (shown.from + step - 1) / step * step; i < shown.to; i += step) place(i, false);
}

namespace {

/// Few enough that the line is seen between them; those of other lines stand elsewhere.
void draw_markers(Canvas& canvas, const Plot& plot, const ValueAxis& axis, std::span<const float> values, const LineLook& look,
                  const Frame& frame) {
  constexpr float apart = 48, radius = 2.6f;  // units
  const auto n = static_cast<std::int64_t>(values.size());
  const float each = plot.all.w / static_cast<float>(n);
  const auto step = std::max<std::int64_t>(1, std::llround(apart * frame.scale / each));
  for (std::int64_t i = 0, next = step / 8 + look.number % 4 * step / 4; i < n; ++i) {
    const float v = values[static_cast<std::size_t>(i)], x = plot.all.x + each * (static_cast<float>(i) + 0.5f);
    if (i < next || std::isnan(v) || x < plot.x || x > plot.right()) continue;
    draw_marker(canvas, {x, height_of(plot, axis, v)}, look, radius, frame);
    next = i + step;
  }
}

}  // namespace

void draw_curve(Canvas& canvas, const Plot& plot, const ValueAxis& axis, std::span<const float> values, const LineLook& look, float width,
                const Frame& frame) {
  const LineLook shown_look = on(frame, look);
  const auto n = static_cast<std::int64_t>(values.size());
  if (n == 0 || plot.w <= 0 || plot.h <= 0) return;
  const auto columns = std::min(n, std::max<std::int64_t>(1, static_cast<std::int64_t>(plot.all.w)));
  const Within inside(canvas, plot, {plot.x, plot.y - width, plot.w, plot.h + 2 * width});
  const PlaceRange shown = places_across(plot, columns);
  std::vector<Point> points;
  const auto end_stroke = [&] {
    if (points.size() == 1) points.push_back({points[0].x + width, points[0].y});
    if (!points.empty()) draw_line(canvas, points, shown_look, width, frame);
    points.clear();
  };
  for (std::int64_t c = std::max<std::int64_t>(0, shown.from - 1); c < std::min(columns, shown.to + 1); ++c) {
    const std::int64_t begin = c * n / columns, end = (c + 1) * n / columns;
    std::optional<float> least, most;
    for (std::int64_t i = begin; i < end; ++i) {
      const float v = values[static_cast<std::size_t>(i)];
      if (std::isnan(v)) continue;
      least = std::min(least.value_or(v), v);
      most = std::max(most.value_or(v), v);
    }
    if (!least) {
      end_stroke();
      continue;
    }
    const float x = plot.all.x + plot.all.w * (static_cast<float>(c) + 0.5f) / static_cast<float>(columns);
    points.push_back({x, height_of(plot, axis, *least)});
    if (*most > *least) points.push_back({x, height_of(plot, axis, *most)});
  }
  end_stroke();
  if (shown_look.number >= 0) draw_markers(canvas, plot, axis, values, shown_look, frame);
}

float legend_sample(const LegendEntry& entry, const Frame& frame) {
  return (on(frame, {entry.color, entry.line}).number < 0 ? 14 : 22) * frame.scale;
}

float draw_legend(Canvas& canvas, Rect line, std::span<const LegendEntry> entries, const Frame& frame) {
  const float s = frame.scale, y = line.y + line.h / 2;
  const TextStyle style = label(frame, kSmallType, frame.theme.ink);
  float x = line.x;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const LegendEntry& entry = entries[i];
    const LineLook look = on(frame, {entry.color, entry.line});
    const float sample = legend_sample(entry, frame), width = sample + canvas.text_width(entry.text, style);
    const std::string rest = fmt::format("+{}", entries.size() - i - 1), all = fmt::format("+{}", entries.size() - i);
    const float behind = i + 1 < entries.size() ? 8 * s + canvas.text_width(rest, style) : 0;
    if (x + width + behind > line.right()) {
      canvas.left_out();
      if (x + canvas.text_width(all, style) <= line.right()) canvas.text({x, y}, all, label(frame, kSmallType, frame.theme.faint));
      return line.right();
    }
    if (look.number < 0) {
      canvas.fill_rect({x, y - 2 * s, 10 * s, 4 * s}, entry.color, s);
    } else {
      const std::array<Point, 2> sample_line = {{{x, y}, {x + sample - 4 * s, y}}};
      draw_line(canvas, sample_line, look, 1.5f * s, frame);
      draw_marker(canvas, {x + (sample - 4 * s) / 2, y}, look, 2.6f, frame);
    }
    canvas.text({x + sample, y}, entry.text, style);
    x += width + 12 * s;
  }
  return x;
}

float bar_room(const Frame& frame, float width) { return frame.shown.bar_room ? width : 0; }

void draw_color_bar(Canvas& canvas, Rect bar, const ColorScale& scale, std::span<const ScaleMark> marks, const Frame& frame) {
  if (!frame.shown.color_bars) return;
  constexpr std::size_t kSteps = 101;
  std::vector<float> steps(kSteps);
  for (std::size_t i = 0; i < kSteps; ++i) {
    const float share = static_cast<float>(i) / (kSteps - 1);
    steps[i] = scale.logarithmic ? scale.high * std::pow(scale.low / scale.high, share) : std::lerp(scale.high, scale.low, share);
  }
  canvas.heatmap(bar, {kSteps, 1, steps, scale});
  const float half = 0.5f * kSmallType * frame.scale;
  if (bar.h < 2 * half) return;
  const TextStyle style = value(frame, kSmallType, frame.theme.faint);
  std::vector<float> taken;
  const auto place = [&](const ScaleMark& mark) {
    const float share = scale.logarithmic ? std::log(mark.value / scale.low) / std::log(scale.high / scale.low)
                                          : (mark.value - scale.low) / (scale.high - scale.low);
    const float y = std::clamp(bar.bottom() - bar.h * share, bar.y + half, bar.bottom() - half);
    if (std::ranges::any_of(taken, [&](float other) { return std::abs(other - y) < 2.2f * half; })) return;
    taken.push_back(y);
    canvas.text({bar.right() + 4 * frame.scale, y}, mark.text, style);
  };
  if (marks.empty()) return;
  place(marks.front());
  place(marks.back());
  for (const ScaleMark& mark : marks) place(mark);
}

Message nothing_read() {
  return {Views::tr("No token has been read yet"), Views::tr("It appears as soon as a model has read its first tokens.")};
}

Message waiting(const Findings& findings, const Question& question, std::string_view what) {
  const Finding* finding = findings.find(question);
  if (finding && !finding->refused.empty()) return {Views::tr("{} cannot be shown", what), capitalized(finding->refused)};
  if (finding && finding->progress > 0)
    return {Views::tr("{} is being worked out", what), Views::tr("{:.0f} % done.", 100 * finding->progress)};
  return {Views::tr("{} has not been worked out yet", what), Views::tr("It appears as soon as the run has been read again for it.")};
}

std::string token_words(const RunInfo& run, std::int64_t token) { return Views::tr("token {} “{}”", token, visible_token(run, token)); }

std::int64_t shown_token(const Snapshot& snapshot, const Cursor& cursor) {
  return cursor.progress < 1 ? snapshot.token - 1 : snapshot.token;
}

std::string after_words(const RunInfo& run, std::int64_t token) {
  return token < 0 ? Views::tr("before the first token") : Views::tr("after token {} “{}”", token, visible_token(run, token));
}

std::string memory_place(const LayerInfo& layer, std::int64_t index, std::int64_t slot, std::int64_t head) {
  std::string place = Views::tr("layer {}", index);
  if (layer.slots() > 1) place += fmt::format(", {}", slot_title(slot_identity(layer, slot), slot_name(layer, slot)));
  return head < 0 ? place : Views::tr("{}, head {}", place, head);
}

std::string decay_place(const LayerInfo& layer, const std::string& place) {
  const bool of_channels = layer.memory == "selective scan" || layer.memory == "state space";
  return of_channels ? Views::tr("{}, mean over channels", place) : place;
}

std::string sentence_at(std::string statement, std::string_view place) {
  return fmt::format("{} · {}", capitalized(std::move(statement)), place);
}

Message without_memory(const Snapshot& snapshot) {
  const LayerInfo* layer = layer_of(snapshot);
  if (!layer) return nothing_read();
  if (layer->has_state()) return {};
  const std::vector<std::int64_t> others = layers_that(snapshot.run->model, &LayerInfo::has_state);
  return {Views::tr("Layer {} ({}) keeps no matrix state", snapshot.layer, layer->mixer),
          others.empty()       ? Views::tr("No layer of this model does.")
          : others.size() == 1 ? Views::tr("In this model, {} keeps one.", layer_list(others, ""))
                               : Views::tr("In this model, {} keep one.", layer_list(others, ""))};
}

Message without_memory(const Snapshot& snapshot, std::int64_t head) {
  const Message message = without_memory(snapshot);
  const LayerInfo* layer = layer_of(snapshot);
  if (message || head < layer->heads) return message;
  return {Views::tr("The memory of layer {} has no head {}", snapshot.layer, head),
          layer->attends_beside() ? Views::tr("It has {}; the softmax attention beside it has {}.", heads_text(layer->heads),
                                              heads_text(layer->attention_heads))
                                  : Views::tr("It has {}.", heads_text(layer->heads))};
}

Message without_attention_head(const Snapshot& snapshot, std::int64_t head) {
  const LayerInfo& layer = *layer_of(snapshot);
  if (head < layer.attention_heads) return {};
  return {Views::tr("The softmax attention of layer {} has no head {}", snapshot.layer, head),
          Views::tr("It has {}.", heads_text(layer.attention_heads))};
}

}  // namespace statescope

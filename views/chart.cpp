#include "views/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "views/colormaps.h"
#include "views/line_look.h"
#include "views/parts.h"
#include "views/plot.h"

namespace statescope {
namespace {

constexpr float kMarker = 3.5f;  // half its width
constexpr float kLine = 1.5f;
constexpr float kSample = 26;       // of a line with its marker, in the legend
constexpr float kDodge = 2.5f;      // between series, so that intervals do not cover each other
constexpr std::int64_t kLooks = 7;  // identity colours

using Points = std::vector<Point>;

LineLook look_of(std::size_t series, const Theme& theme) {
  const auto i = static_cast<std::int64_t>(series);
  return {identity_color((i + 1) % kLooks, theme), i};
}

std::string axis_title(const ChartAxis& axis) { return axis.unit.empty() ? axis.name : fmt::format("{} ({})", axis.name, axis.unit); }

/// Where a value can be drawn on an axis.
bool drawable(double value, const ChartAxis& axis) { return std::isfinite(value) && (!axis.logarithmic || value > 0); }

std::vector<double> drawable_y(const Chart& chart) {
  std::vector<double> values;
  for (const ChartSeries& series : chart.series) {
    for (const auto* numbers : {&series.y, &series.low, &series.high}) {
      std::ranges::copy_if(*numbers, std::back_inserter(values), [&](double v) { return drawable(v, chart.y); });
    }
  }
  return values;
}

std::set<double> places(const Chart& chart) {
  std::set<double> xs;
  for (const ChartSeries& series : chart.series) {
    std::ranges::copy_if(series.x, std::inserter(xs, xs.end()), [&](double x) { return drawable(x, chart.x); });
  }
  return xs;
}

/// The largest of 1, 2, 5 · 10ⁿ that is not above `value`.
double round_down(double value) { return 1 / double{round_range(static_cast<float>(1 / value))}; }

ValueAxis y_axis(const ChartAxis& axis, const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  ValueAxis found{0, 1, axis.logarithmic};
  if (axis.logarithmic) {
    found = {round_down(least), double{round_range(static_cast<float>(most))}, true};
  } else {
    const std::vector<float> numbers(values.begin(), values.end());
    found = axis_over(numbers, least < 0 ? -round_range(static_cast<float>(-least)) : 0);
  }
  found.low = axis.low.value_or(found.low);
  found.high = axis.high.value_or(found.high);
  if (!(found.high > found.low)) found.high = found.logarithmic ? 10 * found.low : found.low + 1;
  // What lies at the top, or may, must not reach into the axis' name.
  if (!found.logarithmic && std::max(most, axis.high.value_or(most)) > found.low + 0.97 * (found.high - found.low))
    found.high += 0.04 * (found.high - found.low);
  return found;
}

ValueAxis x_axis(const ChartAxis& axis, const std::set<double>& xs) {
  ValueAxis found{axis.low.value_or(*xs.begin()), axis.high.value_or(*xs.rbegin()), axis.logarithmic};
  if (found.high > found.low) return found;
  return axis.logarithmic ? ValueAxis{found.low / 2, found.low * 2, true} : ValueAxis{found.low - 1, found.low + 1, false};
}

/// The places of the data where they are few, else round numbers; those that have room.
void draw_x_axis(Canvas& canvas, Rect plot, Rect inner, const Chart& chart, const ValueAxis& axis, const Frame& frame) {
  const float s = frame.scale;
  const TextStyle style = value(frame, kSmallType, frame.theme.faint, Align::center);
  const std::set<double> xs = places(chart);
  constexpr std::int64_t most = 12;
  const std::vector<double> ticks = std::ssize(xs) <= most ? std::vector<double>(xs.begin(), xs.end()) : axis_values(axis, most);
  float free = -std::numeric_limits<float>::infinity();
  canvas.line({plot.x, plot.bottom()}, {plot.right(), plot.bottom()}, frame.theme.faint, s);
  for (const double tick : ticks) {
    const float x = inner.x + inner.w * static_cast<float>(axis.share(tick));
    canvas.line({x, plot.bottom()}, {x, plot.bottom() + 3 * s}, frame.theme.faint, s);
    const std::string text = axis_number(tick);
    const float half = canvas.text_width(text, style) / 2, middle = std::min(x, plot.right() - half);
    if (middle - half < free) continue;
    canvas.text({middle, plot.bottom() + 11 * s}, text, style);
    free = middle + half + 6 * s;
  }
  fitted_text(canvas, {plot.x + plot.w / 2, plot.bottom() + 26 * s}, axis_title(chart.x),
              label(frame, kSmallType, frame.theme.faint, Align::center), plot.w);
}

/// Fainter than the line, which it must not hide.
void draw_interval(Canvas& canvas, Point low, Point high, Color of_line, const Frame& frame) {
  const float s = frame.scale, cap = 2 * s;
  const Color color = faded(of_line, 0.5f);
  if (low.y > high.y) canvas.line(low, high, color, s);  // a line of no length is an error in a PDF
  for (const Point end : {low, high}) canvas.line({end.x - cap, end.y}, {end.x + cap, end.y}, color, s);
}

class Drawing {
 public:
  Drawing(const Canvas& canvas, const Chart& chart, Rect plot, const Frame& frame)
      : chart_(chart), frame_(frame), plot_(plot), x_(x_axis(chart.x, places(chart))), y_(y_axis(chart.y, drawable_y(chart))) {
    const auto half = [&](double x) { return canvas.text_width(axis_number(x), value(frame, kSmallType, {})) / 2; };
    const float ends = std::max(half(x_.low), half(x_.high));  // so that the outermost numbers stand at their places
    const float margin = std::min(plot.w / 4, std::max(10 * frame.scale, ends));
    inner_ = {plot.x + margin, plot.y, plot.w - 2 * margin, plot.h};
  }

  void draw(Canvas& canvas) const {
    draw_value_axis(canvas, plot_, y_, axis_title(chart_.y), frame_);
    draw_x_axis(canvas, plot_, inner_, chart_, x_, frame_);
    for (std::size_t i = 0; i < chart_.series.size(); ++i) draw_series(canvas, i);
  }

  /// The height of a series' last point; the plot's foot where it has none.
  float end_of(const ChartSeries& series) const {
    for (std::size_t i = series.y.size(); i-- > 0;) {
      if (drawable(series.y[i], chart_.y)) return height_of(plot_, y_, series.y[i]);
    }
    return plot_.bottom();
  }

 private:
  /// Series stand a little beside each other where they have intervals.
  float x_of(std::size_t series, double x) const {
    const float at = inner_.x + inner_.w * static_cast<float>(x_.share(x));
    if (chart_.interval.empty()) return at;
    return at + kDodge * frame_.scale * (static_cast<float>(series) - static_cast<float>(chart_.series.size() - 1) / 2);
  }

  void draw_series(Canvas& canvas, std::size_t index) const {
    const ChartSeries& series = chart_.series[index];
    const LineLook look = look_of(index, frame_.theme);
    Points line;
    const auto end_line = [&] {
      if (line.size() > 1 && chart_.joined) draw_line(canvas, line, look, kLine * frame_.scale, frame_);
      for (const Point at : line) draw_marker(canvas, at, look, kMarker, frame_);
      line.clear();
    };
    for (std::size_t i = 0; i < series.y.size(); ++i) {
      if (!drawable(series.y[i], chart_.y) || !drawable(series.x[i], chart_.x)) {
        end_line();
        continue;
      }
      const float x = x_of(index, series.x[i]);
      line.push_back({x, height_of(plot_, y_, series.y[i])});
      if (!series.low.empty()) {
        draw_interval(canvas, {x, height_of(plot_, y_, series.low[i])}, {x, height_of(plot_, y_, series.high[i])}, look.color, frame_);
      }
    }
    end_line();
  }

  const Chart& chart_;
  const Frame& frame_;
  Rect plot_, inner_;
  ValueAxis x_, y_;
};

void draw_entry(Canvas& canvas, Point at, const Chart& chart, std::size_t series, float width, const Frame& frame) {
  const float sample = kSample * frame.scale;
  const LineLook look = look_of(series, frame.theme);
  if (chart.joined) draw_line(canvas, Points{at, {at.x + sample, at.y}}, look, kLine * frame.scale, frame);
  draw_marker(canvas, {at.x + sample / 2, at.y}, look, kMarker, frame);
  fitted_text(canvas, {at.x + sample + 5 * frame.scale, at.y}, chart.series[series].name, label(frame, kSmallType, frame.theme.ink),
              width - sample - 5 * frame.scale);
}

float line_height(const Frame& frame) { return 1.35f * kSmallType * frame.scale; }

std::vector<float> entry_widths(const Canvas& canvas, const Chart& chart, const Frame& frame) {
  std::vector<float> widths;
  for (const ChartSeries& series : chart.series) {
    widths.push_back((kSample + 6) * frame.scale + canvas.text_width(series.name, label(frame, kSmallType, frame.theme.ink)));
  }
  return widths;
}

/// Names right of the plot, each as near to its line's end as the others let it.
void draw_names_at_ends(Canvas& canvas, Rect column, const Chart& chart, const Drawing& plot, const Frame& frame) {
  const float each = line_height(frame);
  std::vector<std::size_t> order(chart.series.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return plot.end_of(chart.series[i]); });
  std::vector<float> ends;
  for (const std::size_t i : order) ends.push_back(plot.end_of(chart.series[i]));
  const std::vector<float> heights = spread_out(ends, each, column.y + each / 2, column.bottom() - each / 2);
  for (std::size_t i = 0; i < order.size(); ++i) draw_entry(canvas, {column.x, heights[i]}, chart, order[i], column.w, frame);
}

/// Rows of names above the plot; returns their height.
float draw_names_above(Canvas& canvas, Rect area, const Chart& chart, const std::vector<float>& widths, const Frame& frame) {
  const float each = line_height(frame), gap = 10 * frame.scale;
  float x = area.x, y = area.y + each / 2;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const float width = std::min(widths[i], area.w);
    if (x > area.x && x + width > area.right()) {
      x = area.x;
      y += each;
    }
    draw_entry(canvas, {x, y}, chart, i, width, frame);
    x += width + gap;
  }
  return y + each / 2 - area.y;
}

}  // namespace

std::vector<float> spread_out(std::span<const float> wanted, float distance, float from, float to) {
  std::vector<float> at(wanted.begin(), wanted.end());
  float free = from;
  for (float& place : at) {
    place = std::max(place, free);
    free = place + distance;
  }
  float end = to;
  for (auto place = at.rbegin(); place != at.rend(); ++place) {
    *place = std::min(*place, end);
    end = *place - distance;
  }
  return at;
}

void draw_chart(Canvas& canvas, Rect area, const Chart& chart, const Frame& frame) {
  if (places(chart).empty() || drawable_y(chart).empty()) {
    return draw_message(canvas, area, frame, "There is nothing to draw", "No series has a number.");
  }
  const float s = frame.scale, gap = 10 * s;
  const std::vector<float> widths = entry_widths(canvas, chart, frame);
  const float widest = std::ranges::max(widths), names = line_height(frame) * static_cast<float>(widths.size());
  const bool named = chart.legend != ChartLegend::none && (chart.series.size() > 1 || !chart.series[0].name.empty());
  Rect plot{area.x + value_axis_width(frame), area.y + 18 * s, area.w - value_axis_width(frame), area.h - (18 + 36) * s};
  const bool fits_beside = widest < 0.38f * area.w && names < plot.h;
  const bool beside = named && (chart.legend == ChartLegend::beside || (chart.legend == ChartLegend::fitting && fits_beside));
  if (beside && names >= plot.h) canvas.left_out();
  if (beside) plot.w -= widest + gap;
  if (named && !beside) {
    const float height = draw_names_above(canvas, area, chart, widths, frame) + 4 * s;
    plot.y += height;
    plot.h -= height;
  }
  if (plot.w < 20 * s || plot.h < 20 * s) return canvas.left_out();
  const Drawing drawn(canvas, chart, plot, frame);
  drawn.draw(canvas);
  if (beside) draw_names_at_ends(canvas, {plot.right() + gap, plot.y, widest, plot.h}, chart, drawn, frame);
}

std::vector<Array> chart_arrays(const Chart& chart) {
  std::set<double> places;
  ArrayAxis names{.name = "series", .unit = "", .count = std::ssize(chart.series)};
  for (const ChartSeries& series : chart.series) {
    places.insert(series.x.begin(), series.x.end());
    names.labels.push_back(series.name);
  }
  const ArrayAxis x{.name = chart.x.name, .unit = chart.x.unit, .coordinates = {places.begin(), places.end()}, .count = std::ssize(places)};
  const auto array = [&](const std::string& name, std::vector<double> ChartSeries::*numbers) {
    Array all{name, chart.y.unit, chart.equation, {names, x}, {}};
    all.values.assign(chart.series.size() * places.size(), std::numeric_limits<float>::quiet_NaN());
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
      const ChartSeries& series = chart.series[i];
      for (std::size_t j = 0; j < (series.*numbers).size(); ++j) {
        const std::ptrdiff_t column = std::distance(places.begin(), places.find(series.x[j]));
        all.values[i * places.size() + static_cast<std::size_t>(column)] = static_cast<float>((series.*numbers)[j]);
      }
    }
    return all;
  };
  std::vector<Array> arrays{array(chart.y.name, &ChartSeries::y)};
  if (!chart.interval.empty()) {
    arrays.push_back(array(fmt::format("{}, low end: {}", chart.y.name, chart.interval), &ChartSeries::low));
    arrays.push_back(array(fmt::format("{}, high end: {}", chart.y.name, chart.interval), &ChartSeries::high));
  }
  return arrays;
}

}  // namespace statescope

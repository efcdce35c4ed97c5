// A diagram of series over a number, such as scores over lengths: what studies of several models draw. It reads in grey, for each series
// has a marker and a dash of its own beside its colour.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "views/view.h"

namespace statescope {

struct ChartAxis {
  std::string name, unit;  // unit empty: a plain number
  bool logarithmic = false;
  std::optional<double> low = {}, high = {};  // unset: what holds the data; a logarithmic axis shows what is above 0
};

struct ChartSeries {
  std::string name;
  std::vector<double> x, y;                 // [n], x ascending; NaN and infinite y interrupt the line
  std::vector<double> low = {}, high = {};  // [n] the interval around y, or empty
};

/// Where the names of series stand; fitting: beside the plot where they have room there, else above it.
enum class ChartLegend { fitting, beside, above, none };

/// The n-th series has the same look in every chart.
struct Chart {
  std::string title;
  ChartAxis x, y;
  std::vector<ChartSeries> series;
  ChartLegend legend = ChartLegend::fitting;
  bool joined = true;    // the points of a series are a course; else each stands for itself
  std::string interval;  // what low and high are: "least and largest head"; empty: none
  std::string equation;  // what y is, and its source
};

/// The title is drawn by the caller.
void draw_chart(Canvas& canvas, Rect area, const Chart& chart, const Frame& frame);

/// `wanted` ascending, moved so that they stand `distance` or more apart within [from, to], as far as they all have room there.
std::vector<float> spread_out(std::span<const float> wanted, float distance, float from, float to);

/// y [series, x], x all places of any series, NaN where a series has none; then, where there are intervals, their low and high ends.
std::vector<Array> chart_arrays(const Chart& chart);

}  // namespace statescope

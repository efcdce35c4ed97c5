// The plain chart: columns of a file over another of its columns.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "app/figure/columns_file.h"
#include "app/figure/study_makers.h"
#include "engine/error.h"
#include "views/parts.h"

namespace statescope {
namespace {

/// Rows without an x are passed over; without a y they interrupt the line.
ChartSeries series_of(std::string name, std::vector<std::pair<double, double>> points) {
  std::ranges::stable_sort(points, {}, &std::pair<double, double>::first);
  ChartSeries series{.name = std::move(name), .x = {}, .y = {}};
  for (const auto& [x, y] : points) {
    series.x.push_back(x);
    series.y.push_back(y);
  }
  return series;
}

void add_series(const FigurePanel& panel, const ColumnsFile& file, const std::string& file_name, Chart& chart) {
  const ChartKeys& keys = panel.keys;
  const std::size_t x = keys.x.empty() ? 0 : file.column(keys.x);
  for (const std::string& name : keys.y) {
    const std::size_t y = file.column(name);
    std::vector<std::string> groups;
    std::map<std::string, std::vector<std::pair<double, double>>> points;
    for (std::size_t row = 0; row < file.rows.size(); ++row) {
      const std::string group = keys.by.empty() ? "" : file.rows[row][file.column(keys.by)];
      if (!points.contains(group)) groups.push_back(group);
      std::vector<std::pair<double, double>>& of_group = points[group];
      if (const double at = file.number(row, x); !std::isnan(at)) of_group.emplace_back(at, file.number(row, y));
    }
    for (const std::string& group : groups) {
      std::vector<std::string> words;
      if (panel.data.size() > 1) words.push_back(file_name);
      if (!group.empty()) words.push_back(group);
      if (keys.y.size() > 1) words.push_back(name);
      chart.series.push_back(series_of(joined(words, ", "), points[group]));
    }
  }
}

}  // namespace

Chart columns_of_a_file(const FigurePanel& panel, FigureRuns& runs) {
  constexpr std::size_t most = 50;
  if (panel.keys.y.empty()) throw Error("columns needs \"y\": the columns to draw");
  Chart chart;
  std::vector<std::string> files;
  for (const std::string& name : panel.data) {
    const ColumnsFile file = read_columns(runs.file(name, "scores"));
    if (chart.x.name.empty()) chart.x.name = panel.keys.x.empty() ? file.names.front() : panel.keys.x;
    files.push_back(std::filesystem::path(name).stem().string());
    add_series(panel, file, files.back(), chart);
    if (chart.series.size() > most) throw Error(fmt::format("columns: there are more than {} series", most));
  }
  chart.y.name = joined(panel.keys.y, ", ");
  chart.title = fmt::format("{} over {}, from {}", chart.y.name, chart.x.name, joined(files, ", "));
  return chart;
}

}  // namespace statescope

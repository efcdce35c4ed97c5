#include "app/figure/studies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "app/figure/study_makers.h"
#include "engine/checkpoint/file.h"
#include "engine/error.h"
#include "views/parts.h"

namespace statescope {
namespace {

class ChartPicture : public PanelPicture {
 public:
  explicit ChartPicture(Chart chart) : chart_(std::move(chart)) {}
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override { draw_chart(canvas, inset(area, 8), chart_, frame); }
  std::vector<Array> arrays() const override { return chart_arrays(chart_); }
  std::string caption() const override {
    std::string text = chart_.title + ".";
    if (!chart_.interval.empty()) text += fmt::format(" Bars: {}.", chart_.interval);
    return chart_.equation.empty() ? text : text + " " + chart_.equation;
  }

 private:
  Chart chart_;
};

template <class Rows, class Name>
std::string names_of(const Rows& rows, Name name) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.emplace_back(name(row));
  return joined(names, ", ");
}

}  // namespace

const std::vector<StudyRow>& study_table() {
  static const std::vector<StudyRow> table{
      {"entropy_by_layer", StudyNeeds::checkpoints, {}, entropy_by_layer},
      {"receptive_field_by_layer", StudyNeeds::checkpoints, {}, receptive_field_by_layer},
      {"gate_entropy_by_lambda", StudyNeeds::checkpoints, {"write gates", "read gates"}, gate_entropy_by_lambda},
      {"recall", StudyNeeds::scores, {"over load", "over length", "over partitions", "over seeds"}, recall},
      {"speed", StudyNeeds::nothing, {"over length", "over partitions"}, speed},
      {"columns", StudyNeeds::columns, {}, columns_of_a_file}};
  return table;
}

std::unique_ptr<PanelPicture> make_study(const FigurePanel& panel, FigureRuns& runs) {
  const std::vector<StudyRow>& table = study_table();
  const auto row = std::ranges::find(table, panel.chart, &StudyRow::name);
  if (row == table.end())
    throw Error(
        fmt::format("there is no study {}; there are {}", in_quotes(panel.chart), names_of(table, [](const auto& r) { return r.name; })));
  if (!panel.mode.empty() && std::ranges::find(row->modes, panel.mode) == row->modes.end()) {
    const std::string known = names_of(row->modes, [](std::string_view mode) { return mode; });
    throw Error(
        fmt::format("{} has no mode {}: {}", row->name, in_quotes(panel.mode), known.empty() ? "there is only one" : "there are " + known));
  }
  if (row->needs == StudyNeeds::checkpoints && panel.checkpoints.empty()) throw Error(panel.chart + " needs checkpoints");
  if (row->needs == StudyNeeds::scores && panel.data.empty()) throw Error(panel.chart + " needs data: files of statescope eval --json");
  if (row->needs == StudyNeeds::columns && panel.data.empty()) throw Error(panel.chart + " needs data: CSV, or lines of JSON");
  const ChartKeys& keys = panel.keys;
  if (row->needs != StudyNeeds::columns && !(keys.x.empty() && keys.y.empty() && keys.by.empty()))
    throw Error("\"x\", \"y\" and \"by\" are for the chart columns");
  Chart chart = row->make(panel, runs);
  apply(keys, chart);
  return std::make_unique<ChartPicture>(std::move(chart));
}

std::vector<std::string> series_names(std::span<const std::string> checkpoints) {
  std::vector<std::string> names;
  for (const std::string& checkpoint : checkpoints) names.push_back(std::filesystem::path(checkpoint).stem().string());
  if (names.size() < 2) return names;
  const auto [least, most] = std::ranges::minmax_element(names);
  const auto same = static_cast<std::size_t>(std::ranges::mismatch(*least, *most).in1 - least->begin());
  const std::size_t begin = same == 0 ? std::string::npos : least->rfind('-', same - 1);
  for (std::string& name : names) name = begin == std::string::npos ? name : name.substr(begin + 1);
  return names;
}

}  // namespace statescope

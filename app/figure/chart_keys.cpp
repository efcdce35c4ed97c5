#include "app/figure/chart_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/checkpoint/file.h"
#include "engine/checkpoint/json_object.h"
#include "engine/error.h"
#include "views/parts.h"

namespace statescope {
namespace {

using nlohmann::json;

constexpr double kMost = 1e300;
constexpr std::array<std::pair<std::string_view, ChartLegend>, 3> kLegends{
    {{"beside", ChartLegend::beside}, {"above", ChartLegend::above}, {"none", ChartLegend::none}}};

ChartKeys::Axis axis_in(JsonObject object) {
  ChartKeys::Axis axis;
  if (object.has("label")) axis.label = object.text("label");
  if (const json* range = object.find("range")) {
    if (!range->is_array() || range->size() != 2) object.wrong("range", "[low, high]");
    axis.low = object.number_of((*range)[0], "range", -kMost, kMost);
    axis.high = object.number_of((*range)[1], "range", -kMost, kMost);
    if (!(*axis.low < *axis.high)) object.wrong("range", "[low, high] with low < high");
  }
  if (object.has("logarithmic")) axis.logarithmic = object.flag("logarithmic");
  if (axis.logarithmic.value_or(false) && axis.low && !(*axis.low > 0)) object.wrong("range", "above 0, where the axis is logarithmic");
  object.nothing_else("an axis");
  return axis;
}

json axis_json(const ChartKeys::Axis& axis) {
  json out = json::object();
  if (axis.label) out["label"] = *axis.label;
  if (axis.low) out["range"] = {*axis.low, *axis.high};
  if (axis.logarithmic) out["logarithmic"] = *axis.logarithmic;
  return out;
}

void apply(const ChartKeys::Axis& keys, ChartAxis& axis) {
  if (keys.label) axis.name = *keys.label, axis.unit.clear();
  if (keys.low) axis.low = keys.low, axis.high = keys.high;
  if (keys.logarithmic) axis.logarithmic = *keys.logarithmic;
}

}  // namespace

void read_chart_keys(JsonObject& object, ChartKeys& keys) {
  if (object.find("x_axis")) keys.x_axis = axis_in(object.object("x_axis"));
  if (object.find("y_axis")) keys.y_axis = axis_in(object.object("y_axis"));
  object.take("x", keys.x);
  object.take("by", keys.by);
  if (const json* y = object.find("y"); y && y->is_string())
    keys.y = {object.text_of(*y, "y")};
  else
    object.take("y", keys.y);
  if (object.has("legend")) {
    const auto known = std::ranges::find(kLegends, object.text("legend"), [](const auto& row) { return row.first; });
    if (known == kLegends.end()) object.wrong("legend", "beside, above or none");
    keys.legend = known->second;
  }
  const json* names = object.find("names");
  if (names && !names->is_object()) object.wrong("names", "an object of names");
  const json none = json::object();
  for (const auto& [series, name] : (names ? *names : none).items()) keys.names[series] = object.text_of(name, "names");
}

void put_chart_keys(json& out, const ChartKeys& keys) {
  const ChartKeys usual;
  if (keys.x_axis != usual.x_axis) out["x_axis"] = axis_json(keys.x_axis);
  if (keys.y_axis != usual.y_axis) out["y_axis"] = axis_json(keys.y_axis);
  if (!keys.x.empty()) out["x"] = keys.x;
  if (!keys.by.empty()) out["by"] = keys.by;
  if (!keys.y.empty()) out["y"] = keys.y;
  if (!keys.names.empty()) out["names"] = keys.names;
  if (keys.legend) out["legend"] = std::ranges::find(kLegends, *keys.legend, [](const auto& row) { return row.second; })->first;
}

void apply(const ChartKeys& keys, Chart& chart) {
  apply(keys.x_axis, chart.x);
  apply(keys.y_axis, chart.y);
  chart.legend = keys.legend.value_or(chart.legend);
  for (const auto& [series, name] : keys.names) {
    const auto found = std::ranges::find(chart.series, series, &ChartSeries::name);
    if (found == chart.series.end()) {
      std::vector<std::string> known;
      for (const ChartSeries& one : chart.series) known.push_back(one.name);
      throw Error(fmt::format("\"names\": there is no series {}; there are {}", in_quotes(series), joined(known, ", ")));
    }
  }
  for (ChartSeries& series : chart.series) {
    if (const auto name = keys.names.find(series.name); name != keys.names.end()) series.name = name->second;
  }
}

}  // namespace statescope

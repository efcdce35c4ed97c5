// What a spec says of a chart's axes, its series and, of a plain one, its columns.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "views/chart.h"

namespace statescope {

class JsonObject;

struct ChartKeys {
  struct Axis {
    std::optional<std::string> label;
    std::optional<double> low, high;
    std::optional<bool> logarithmic;
    bool operator==(const Axis&) const = default;
  };
  Axis x_axis, y_axis;                       // unset: as the chart has it
  std::map<std::string, std::string> names;  // series are called that instead
  std::optional<ChartLegend> legend;         // unset: where it fits
  std::string x, by;                         // columns: the first one where x is empty; series for each value of `by`
  std::vector<std::string> y;                // columns, a series each
  bool operator==(const ChartKeys&) const = default;
};

/// "x_axis": {"label", "range": [low, high], "logarithmic"}, "y_axis", "names": {"niah-gla": "GLA"}, "legend": "beside", "x", "y", "by".
/// Throws Error.
void read_chart_keys(JsonObject& object, ChartKeys& keys);
void put_chart_keys(nlohmann::json& out, const ChartKeys& keys);
/// Throws Error where a series is named that the chart has not.
void apply(const ChartKeys& keys, Chart& chart);

}  // namespace statescope

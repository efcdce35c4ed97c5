#include "app/figure/data.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/checkpoint/hdf5_arrays.h"
#include "engine/error.h"
#include "views/parts.h"
#include "views/words.h"

namespace statescope {
namespace {

constexpr std::int64_t kMostLines = 1'000'000;
constexpr std::size_t kAxes = 3;  // of a line

/// As RFC 4180 has it.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string all = "\"";
  for (const char c : text) all += c == '"' ? std::string("\"\"") : std::string(1, c);
  return all + "\"";
}

double coordinate(const ArrayAxis& axis, std::int64_t place) {
  return axis.coordinates.empty() ? static_cast<double>(place) : axis.coordinates[static_cast<std::size_t>(place)];
}

std::string place_text(const Array& array, std::int64_t index) {
  std::vector<std::string> fields(3 * kAxes);
  for (std::size_t axis = array.axes.size(); axis-- > 0;) {
    const ArrayAxis& along = array.axes[axis];
    const std::int64_t place = index % along.count;
    index /= along.count;
    fields[3 * axis] = quoted(along.unit.empty() ? along.name : fmt::format("{} ({})", along.name, along.unit));
    fields[3 * axis + 1] = fmt::format("{}", coordinate(along, place));
    if (!along.labels.empty()) fields[3 * axis + 2] = quoted(along.labels[static_cast<std::size_t>(place)]);
  }
  return joined(fields, ",");
}

std::vector<std::string> axis_names(const Array& array) {
  std::vector<std::string> names;
  for (const ArrayAxis& axis : array.axes) names.push_back(axis.unit.empty() ? axis.name : fmt::format("{} ({})", axis.name, axis.unit));
  return names;
}

std::vector<Hdf5Array> hdf5_arrays(const Figure& figure) {
  const InEnglish names;
  std::vector<Hdf5Array> all;
  for (std::size_t panel = 0; panel < figure.panels().size(); ++panel) {
    const std::vector<Array> arrays = figure.panels()[panel]->arrays();
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const Array& array = arrays[i];
      const std::string group = fmt::format("/{}/{}", panel_letter(panel), i);
      Hdf5Array values{.path = group + "/values", .shape = {}, .values = array.values, .coordinates = {}, .attributes = {}};
      for (const ArrayAxis& axis : array.axes) values.shape.push_back(axis.count);
      values.attributes = {
          {"name", array.name}, {"unit", array.unit}, {"equation", array.equation}, {"axes", joined(axis_names(array), ", ")}};
      all.push_back(std::move(values));
      for (std::size_t axis = 0; axis < array.axes.size(); ++axis) {
        const ArrayAxis& along = array.axes[axis];
        Hdf5Array places{
            .path = fmt::format("{}/axis{}", group, axis), .shape = {along.count}, .values = {}, .coordinates = {}, .attributes = {}};
        for (std::int64_t place = 0; place < along.count; ++place) places.coordinates.push_back(coordinate(along, place));
        places.attributes = {{"name", along.name}, {"unit", along.unit}};
        if (!along.labels.empty()) places.attributes.emplace_back("labels", joined(along.labels, "\n"));
        all.push_back(std::move(places));
      }
    }
  }
  return all;
}

}  // namespace

std::string figure_csv(const Figure& figure) {
  const InEnglish names;
  std::string csv = "panel,array,unit,axis 1,place 1,label 1,axis 2,place 2,label 2,axis 3,place 3,label 3,value\n";
  std::int64_t lines = 0;
  for (std::size_t panel = 0; panel < figure.panels().size(); ++panel) {
    for (const Array& array : figure.panels()[panel]->arrays()) {
      lines += std::ssize(array.values);
      if (lines > kMostLines) throw Error(fmt::format("more than {} numbers are too many for CSV; write them as .h5", kMostLines));
      const std::string name = fmt::format("{},{},{},", panel_letter(panel), quoted(array.name), quoted(array.unit));
      for (std::int64_t i = 0; i < std::ssize(array.values); ++i) {
        const float value = array.values[static_cast<std::size_t>(i)];
        csv += name + place_text(array, i) + "," + (std::isnan(value) ? "" : fmt::format("{}", value)) + "\n";
      }
    }
  }
  return csv;
}

void write_figure_hdf5(const Figure& figure, const std::string& provenance, const std::filesystem::path& path, bool overwrite) {
  write_hdf5_arrays(path, hdf5_arrays(figure), {{"format", "statescope-figure-data"}, {"figure", provenance}}, overwrite);
}

}  // namespace statescope

// Numbers beside a figure, of every view of the catalogue.
#include "app/figure/data.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <sstream>

#include "app/figure/render.h"
#include "tests/app/window/qt_application.h"
#include "tests/catch.h"
#include "tests/views/catalogue_cases.h"

namespace statescope::figure_data_test {
namespace {

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == text.npos) return text;
  std::string all = "\"";
  for (const char c : text) all += c == '"' ? std::string("\"\"") : std::string(1, c);
  return all + "\"";
}

std::string csv_of(const View& view) {
  qt_application();
  std::vector<std::unique_ptr<PanelPicture>> panels;
  panels.push_back(picture_of(view));
  FigureSpec spec;
  spec.width_mm = 400;  // room for any of them
  spec.panels.resize(1);
  return figure_csv(Figure(spec, std::move(panels)));
}

/// The last field of the lines of each array, by the line's beginning.
std::map<std::string, std::vector<std::string>> values_in(const std::string& csv, const std::vector<Array>& arrays) {
  std::map<std::string, std::vector<std::string>> values;
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);  // the names of the fields
  while (std::getline(lines, line)) {
    for (const Array& array : arrays) {
      const std::string begin = fmt::format("a,{},{},", quoted(array.name), quoted(array.unit));
      if (!line.starts_with(begin)) continue;
      values[begin].push_back(line.substr(line.rfind(',') + 1));
      break;
    }
  }
  return values;
}

}  // namespace

TEST_CASE("CSV beside a figure names the columns of every view with their units, and has their numbers", "[figure]") {
  for (const CatalogueCase& c : catalogue_cases()) {
    if (c.name != "forty tokens" && c.name != "delta rule" && c.name != "a branch") continue;
    for (const auto& [name, view] : built_views(c)) {
      INFO(c.name << ", " << name);
      const std::vector<Array> arrays = view->arrays();
      if (arrays.empty()) continue;  // no figure is made of it
      auto values = values_in(csv_of(*view), arrays);
      std::map<std::string, std::size_t> next;
      for (const Sheet& sheet : view->sheets()) {
        for (const Column& column : sheet.columns) {
          if (!column.number) continue;
          INFO(column.title());
          const std::string begin = fmt::format("a,{},{},", quoted(column.name), quoted(column.unit));
          std::int64_t room = 1;
          for (const int axis : column.along) room *= sheet.axes[static_cast<std::size_t>(axis)].count;
          for (std::int64_t i = 0; i < room; ++i) {
            const float value = column.number(i);
            REQUIRE(values[begin].at(next[begin]++) == (std::isnan(value) ? "" : fmt::format("{}", value)));
          }
        }
      }
      for (const auto& [begin, all] : values) CHECK(all.size() == next[begin]);
    }
  }
}

}  // namespace statescope::figure_data_test

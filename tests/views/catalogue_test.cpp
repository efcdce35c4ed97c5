// What holds for every view of the catalogue.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/catalogue_cases.h"
#include "views/view.h"

namespace statescope::catalogue_test {
namespace {

std::int64_t room(const Array& array) {
  std::int64_t values = 1;
  for (const ArrayAxis& axis : array.axes) values *= axis.count;
  return values;
}

/// A place of a column: the cursor's on each of its axes, the first one where the cursor has none; null: there is none.
struct PlaceOf {
  Hit hit;
  std::int64_t index = 0;  // row-major over its axes
  bool under_cursor = true;
};
std::optional<PlaceOf> place_of(std::int64_t number, const Sheet& sheet, const Column& column) {
  PlaceOf place{{number, Hit::all}};
  for (const int along : column.along) {
    const Axis& axis = sheet.axes[static_cast<std::size_t>(along)];
    if (axis.count == 0) return {};
    const bool has = axis.here >= 0 && axis.here < axis.count;
    const std::int64_t at = has ? axis.here : 0;
    place.hit.at[static_cast<std::size_t>(along)] = at;
    place.index = place.index * axis.count + at;
    place.under_cursor = place.under_cursor && has;
  }
  return place;
}

/// What the table says of the column there, and of others of the same name; null: it shows other places.
std::optional<std::vector<std::string>> cells_of(const Table& table, const Sheet& sheet, const Column& column, const Hit& hit) {
  if (sheet.rows < 0) return {};
  for (const int along : column.along) {
    const Axis& axis = sheet.axes[static_cast<std::size_t>(along)];
    const bool shown = along == sheet.rows || along == sheet.across || (axis.here >= 0 && axis.here < axis.count);
    if (!shown) return {};
  }
  const std::int64_t row = hit.at[static_cast<std::size_t>(sheet.rows)];
  if (!sheet.order.empty() && std::ranges::count(sheet.order, row) == 0) return {};
  const Axis& axis = sheet.axes[static_cast<std::size_t>(sheet.rows)];
  const std::string words = axis.words(row), label = axis.label ? axis.label(row) : "",
                    number = fmt::format("{}", axis.coordinate ? axis.coordinate(row) : static_cast<double>(row));
  const std::string across =
      sheet.across >= 0 && std::ranges::count(column.along, sheet.across) > 0
          ? sheet.axes[static_cast<std::size_t>(sheet.across)].words(hit.at[static_cast<std::size_t>(sheet.across)]) + ": "
          : "";
  const std::string title = across + column.title();
  std::vector<std::string> all;
  for (std::size_t c = 1; c < table.columns.size(); ++c) {
    if (table.columns[c] != title && !table.columns[c].starts_with(title + ", ")) continue;
    for (const std::vector<std::string>& cells : table.rows)
      if (cells[0] == words || cells[0] == label || cells[0] == number)
        if (!cells[c].empty()) all.push_back(cells[c]);
  }
  return all;
}

}  // namespace

TEST_CASE("rows of the catalogue are complete and their ids differ") {
  std::set<std::string_view> ids;
  for (const ViewRow& row : view_catalogue()) {
    CHECK(ids.insert(row.id).second);
    CHECK(row.question.ends_with("?"));
    CHECK_FALSE(row.title.empty());
    CHECK(row.help.find("eq. ") != std::string_view::npos);
    REQUIRE(row.make() != nullptr);
  }
}

TEST_CASE("every view draws every run in all themes, at every scale and size; no text overlaps another or leaves its place") {
  for (const CatalogueCase& c : catalogue_cases()) {
    for (const auto& [name, view] : built_views(c)) {
      CHECK_FALSE(view->describe().empty());
      for (const Theme& theme : {light_theme(), dark_theme(), high_contrast_theme()}) {
        for (const float scale : {1.0f, 2.0f, 3.0f}) {
          for (const Size size : {Size{1280, 720}, Size{620 * scale, 400 * scale}, Size{1280, 90 * scale}}) {
            const Rect area{20, 30, size.w, size.h};
            TextCanvas canvas({size.w + 40, size.h + 60});
            view->draw(canvas, area, {theme, scale});
            INFO(c.name << ", " << name << ", scale " << scale << ", " << size.w << "x" << size.h);
            REQUIRE_FALSE(canvas.lines().empty());
            REQUIRE(canvas.open_clips() == 0);
            // Chips in motion pass over what stands still.
            if (c.cursor.progress == 1) check_texts(canvas, area);
          }
        }
      }
    }
  }
}

TEST_CASE("no size makes a view fail") {
  for (const CatalogueCase& c : catalogue_cases()) {
    for (const auto& [name, view] : built_views(c)) {
      INFO(c.name << ", " << name);
      for (const Size size : {Size{0, 0}, Size{1, 1}, Size{40, 300}, Size{300, 40}, Size{120, 80}, Size{5000, 3000}}) {
        TextCanvas canvas(size);
        view->draw(canvas, {0, 0, size.w, size.h}, {light_theme(), 3});
        REQUIRE(canvas.open_clips() == 0);
      }
    }
  }
}

TEST_CASE("every view tells the numbers that it draws, as many as their axes have room for") {
  std::set<std::string> telling;
  for (const CatalogueCase& c : catalogue_cases()) {
    for (const auto& [name, view] : built_views(c)) {
      INFO(c.name << ", " << name);
      for (const Array& array : view->arrays()) {
        INFO(array.name);
        CHECK_FALSE(array.name.empty());
        CHECK_FALSE(array.equation.empty());
        REQUIRE(std::ssize(array.values) == room(array));
        for (const ArrayAxis& axis : array.axes) {
          CHECK_FALSE(axis.name.empty());
          CHECK((axis.coordinates.empty() || std::ssize(axis.coordinates) == axis.count));
          CHECK((axis.labels.empty() || std::ssize(axis.labels) == axis.count));
        }
        if (!array.values.empty()) telling.insert(name.substr(0, name.find(',')));
      }
    }
  }
  for (const ViewRow& row : view_catalogue()) {
    INFO(row.id);
    CHECK(telling.contains(std::string(row.id)));
  }
}

TEST_CASE("table, arrays, tooltip and screen reader name the same columns, with the same units and values") {
  std::set<std::string> in_tables, read_out;
  for (const CatalogueCase& c : catalogue_cases()) {
    for (const auto& [name, view] : built_views(c)) {
      const std::string id = name.substr(0, name.find(','));
      view->step_mark(0, 0);  // a view with a mark of its own: that is its cursor
      const std::vector<Sheet> sheets = view->sheets();
      const std::vector<Array> arrays = view->arrays();
      const Table table = view->table();
      const std::string spoken = view->describe();
      std::size_t next = 0;
      for (std::size_t number = 0; number < sheets.size(); ++number) {
        for (const Column& column : sheets[number].columns) {
          INFO(c.name << ", " << name << ", " << column.title());
          const Array* array = column.number ? &arrays.at(next++) : nullptr;
          if (array) {
            REQUIRE(array->name == column.name);
            REQUIRE(array->unit == column.unit);
            REQUIRE(array->equation == column.equation);
          }
          const auto place = place_of(static_cast<std::int64_t>(number), sheets[number], column);
          if (!place) continue;
          const std::string value = column.value(place->index);
          if (array) {
            const float exact = array->values.at(static_cast<std::size_t>(place->index));
            CHECK(value == (std::isnan(exact) && !column.none.empty() ? column.none : value_text(exact)));
          }
          if (value.empty()) continue;
          const std::string said = column.title() + " = " + value;
          CHECK(view->tooltip(place->hit).find(said) != std::string::npos);
          if (place->under_cursor && sheets[number].rows >= 0) {
            CHECK(spoken.find(said) != std::string::npos);
            read_out.insert(id);
          }
          if (const auto cells = cells_of(table, sheets[number], column, place->hit)) {
            CHECK(std::ranges::count(*cells, value) > 0);
            in_tables.insert(id);
          }
        }
      }
      CHECK(next == arrays.size());
    }
  }
  for (const ViewRow& row : view_catalogue()) {
    INFO(row.id);
    CHECK(in_tables.contains(std::string(row.id)));
    CHECK(read_out.contains(std::string(row.id)));
  }
}

TEST_CASE("drawing twice draws the same") {
  const Sample sample({.tokens = 40});
  for (const ViewRow& row : view_catalogue()) {
    const auto view = row.make();
    view->build(sample.at(12), {.token = 12});
    TextCanvas first({900, 500}), second({900, 500});
    view->draw(first, {0, 0, 900, 500}, {light_theme(), 1});
    view->draw(second, {0, 0, 900, 500}, {light_theme(), 1});
    CHECK(first.lines() == second.lines());
  }
}

TEST_CASE("every hit of every view answers, and places that were never given do no harm") {
  const Sample sample({.tokens = 40});
  for (const auto& [name, view] : built_views({"forty tokens", sample.at(12), {.token = 12}})) {
    INFO(name);
    TextCanvas canvas({900, 500});
    view->draw(canvas, {0, 0, 900, 500}, {light_theme(), 1});
    for (float y = 0; y < 500; y += 7) {
      for (float x = 0; x < 900; x += 7) {
        if (const auto id = canvas.hits().at({x, y})) REQUIRE_FALSE(view->tooltip(*id).empty());
      }
    }
    for (const std::int64_t wrong : {std::int64_t{-1}, std::int64_t{1} << 20, std::int64_t{1} << 50}) {
      for (const Hit& hit : {Hit(wrong, 0), Hit(0, wrong), Hit(0, 0, wrong, wrong), Hit(wrong, wrong, wrong, wrong)}) {
        view->tooltip(hit);
        view->on_hit(hit);
      }
    }
  }
}

}  // namespace statescope::catalogue_test

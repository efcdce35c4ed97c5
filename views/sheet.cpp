#include "views/sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <span>

#include "views/parts.h"
#include "views/words.h"

namespace statescope {
namespace {

using Places = std::array<std::int64_t, 3>;  // of a sheet's axes
constexpr std::int64_t kMostAcross = 128, kMostListed = 12;

const Axis& axis_of(const Sheet& sheet, int axis) { return sheet.axes[static_cast<std::size_t>(axis)]; }
std::int64_t& place_of(Places& at, int axis) { return at[static_cast<std::size_t>(axis)]; }
std::int64_t place_of(const Places& at, int axis) { return at[static_cast<std::size_t>(axis)]; }
bool is_along(const Column& column, int axis) { return std::ranges::count(column.along, axis) > 0; }

/// −1: it has none.
std::int64_t here_on(const Axis& axis) { return axis.here < axis.count ? axis.here : -1; }

std::int64_t index_of(const Sheet& sheet, const Column& column, const Places& at) {
  std::int64_t index = 0;
  for (const int axis : column.along) index = index * axis_of(sheet, axis).count + place_of(at, axis);
  return index;
}

std::int64_t room_of(const Sheet& sheet, const Column& column) {
  std::int64_t room = 1;
  for (const int axis : column.along) room *= axis_of(sheet, axis).count;
  return room;
}

/// Of an axis that the places leave open; −1: of none, −2: of more than one.
int open_axis(const Column& column, const Places& at) {
  int open = -1;
  for (const int axis : column.along) {
    if (place_of(at, axis) >= 0) continue;
    open = open < 0 ? axis : -2;
    if (open == -2) break;
  }
  return open;
}

/// "‖π‖ = 0.25"; where an axis is open "G^Q: head 0 = 0.25, head 1 = 0.75". Empty: nothing to say. Of a long
/// axis the first places where they are wanted, else nothing.
std::string said(const Sheet& sheet, const Column& column, Places at, bool first_places) {
  const int open = open_axis(column, at);
  if (open == -2) return {};
  if (open < 0) {
    const std::string value = column.value(index_of(sheet, column, at));
    return value.empty() ? "" : fmt::format("{} = {}", column.title(), value);
  }
  const Axis& axis = axis_of(sheet, open);
  if (axis.count > kMostListed && !first_places) return {};
  std::vector<std::string> values;
  for (std::int64_t i = 0; i < std::min(axis.count, kMostListed); ++i) {
    place_of(at, open) = i;
    const std::string value = column.value(index_of(sheet, column, at));
    if (!value.empty() && value != value_text(NAN)) values.push_back(fmt::format("{} = {}", axis.words(i), value));
  }
  if (values.empty()) return {};
  if (axis.count > kMostListed) values.emplace_back("…");
  return fmt::format("{}: {}", column.title(), joined(values, ", "));
}

const Sheet* sheet_of(const std::vector<Sheet>& sheets, const Hit& hit) {
  if (hit.sheet < 0 || hit.sheet >= std::ssize(sheets)) return nullptr;
  const Sheet& sheet = sheets[static_cast<std::size_t>(hit.sheet)];
  for (std::size_t axis = 0; axis < hit.at.size(); ++axis) {
    if (hit.at[axis] >= (axis < sheet.axes.size() ? sheet.axes[axis].count : 0)) return nullptr;
  }
  return &sheet;
}

/// Rows of the table that go along one axis.
struct RowGroup {
  const Axis* axis;
  std::vector<const Sheet*> sheets;
};

std::vector<RowGroup> row_groups(const std::vector<Sheet>& sheets) {
  std::vector<RowGroup> groups;
  for (const Sheet& sheet : sheets) {
    if (sheet.columns.empty() || sheet.rows < 0) continue;
    const Axis& axis = axis_of(sheet, sheet.rows);
    const auto known = std::ranges::find_if(groups, [&](const RowGroup& group) { return group.axis->name == axis.name; });
    if (known == groups.end())
      groups.push_back({&axis, {&sheet}});
    else
      known->sheets.push_back(&sheet);
  }
  return groups;
}

std::vector<std::int64_t> shown_rows(const Sheet& sheet) {
  if (!sheet.order.empty()) return sheet.order;
  const Axis& axis = axis_of(sheet, sheet.rows);
  const std::int64_t count = std::min(axis.count, sheet.most_rows);
  const std::int64_t first = std::clamp<std::int64_t>(here_on(axis) - count / 2, 0, axis.count - count);
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < count; ++i) rows.push_back(first + i);
  return rows;
}

/// One column of the table: a quantity, where it is not along the rows at one place of each axis.
struct TableColumn {
  const Sheet* sheet;
  const Column* column;
  Places at;
  std::string title;

  std::string value(std::int64_t row) const {
    Places all = at;
    place_of(all, sheet->rows) = row;
    const bool known = row < axis_of(*sheet, sheet->rows).count && open_axis(*column, all) == -1;
    return known ? column->value(index_of(*sheet, *column, all)) : "";
  }
};

void add_columns(std::vector<TableColumn>& all, const Sheet& sheet, const Column& column) {
  Places at{-1, -1, -1};
  for (const int axis : column.along) place_of(at, axis) = here_on(axis_of(sheet, axis));
  if (sheet.across < 0 || !is_along(column, sheet.across)) {
    std::string title = column.title();  // and of which place where there are several
    for (const int axis : column.along)
      if (axis != sheet.rows && place_of(at, axis) >= 0) title += ", " + axis_of(sheet, axis).words(place_of(at, axis));
    all.push_back({&sheet, &column, at, std::move(title)});
    return;
  }
  const Axis& across = axis_of(sheet, sheet.across);
  const bool some = across.count > kMostAcross;
  const std::int64_t first = some ? std::clamp<std::int64_t>(here_on(across) - kMostAcross / 2, 0, across.count - kMostAcross) : 0;
  for (std::int64_t i = first; i < std::min(across.count, first + kMostAcross); ++i) {
    place_of(at, sheet.across) = i;
    all.push_back({&sheet, &column, at, fmt::format("{}: {}", across.words(i), column.title())});
  }
}

bool has_both(const RowGroup& group) { return group.axis->coordinate && group.axis->label; }

std::string coordinate_text(const Axis& axis, std::int64_t place) {
  return fmt::format("{}", axis.coordinate ? axis.coordinate(place) : static_cast<double>(place));
}

template <class Field>
void take(Field& field, const Field& other) {
  if (other) field = other;
}

}  // namespace

std::string Axis::words(std::int64_t place) const {
  const std::string named = label ? label(place) : "";
  if (coordinate && label) return Views::tr("{} {} “{}”", name, coordinate_text(*this, place), named);
  if (label) return std::ranges::any_of(named, [](unsigned char c) { return std::isalpha(c) || c >= 0x80; }) ? named : name + " " + named;
  return joined({name, coordinate_text(*this, place) + (unit.empty() ? "" : " " + unit)}, " ");
}

std::string Column::title() const { return unit.empty() ? name : fmt::format("{} ({})", name, unit); }

std::string Column::value(std::int64_t place) const {
  if (text) return text(place);
  const float value = number(place);
  return std::isnan(value) && !none.empty() ? none : value_text(value);
}

void Sheet::add(std::string name, std::string unit, std::string equation, std::vector<int> along, const std::vector<float>& numbers) {
  if (numbers.empty()) return;
  add({.name = std::move(name),
       .unit = std::move(unit),
       .equation = std::move(equation),
       .along = std::move(along),
       .number = [&numbers](std::int64_t i) { return numbers[static_cast<std::size_t>(i)]; }});
}

Column& Sheet::add(Column column) {
  columns.push_back(std::move(column));
  return columns.back();
}

std::string value_text(float value) {
  if (std::isnan(value)) return "—";
  return std::isinf(value) ? (value < 0 ? "−∞" : "∞") : fmt::format("{}", value);
}

Axis axis_of_count(std::string name, std::int64_t count, std::int64_t here) {
  return {.name = std::move(name), .count = count, .here = here};
}

Axis axis_of_names(std::string name, std::vector<std::string> labels, std::int64_t here) {
  const std::int64_t count = std::ssize(labels);
  return {.name = std::move(name), .count = count, .here = here, .label = [all = std::move(labels)](std::int64_t i) {
            return all[static_cast<std::size_t>(i)];
          }};
}

std::vector<Array> arrays_of(const std::vector<Sheet>& sheets) {
  std::vector<Array> arrays;
  for (const Sheet& sheet : sheets) {
    for (const Column& column : sheet.columns) {
      if (!column.number) continue;
      Array array{column.name, column.unit, column.equation, {}, {}, column.as_colors};
      for (const int along : column.along) {
        const Axis& axis = axis_of(sheet, along);
        ArrayAxis places{.name = axis.name, .unit = axis.unit, .count = axis.count};
        for (std::int64_t i = 0; axis.coordinate && i < axis.count; ++i) places.coordinates.push_back(axis.coordinate(i));
        for (std::int64_t i = 0; axis.label && i < axis.count; ++i) places.labels.push_back(axis.label(i));
        array.axes.push_back(std::move(places));
      }
      const std::int64_t room = room_of(sheet, column);
      array.values.reserve(static_cast<std::size_t>(room));
      for (std::int64_t i = 0; i < room; ++i) array.values.push_back(column.number(i));
      arrays.push_back(std::move(array));
    }
  }
  return arrays;
}

namespace {

Table table_from(std::span<const RowGroup> groups) {
  if (groups.empty()) return {};
  const bool one = groups.size() == 1, text = one && has_both(groups.front());
  const Axis& first = *groups.front().axis;
  Table table{{one ? (first.unit.empty() ? first.name : fmt::format("{} ({})", first.name, first.unit)) : Views::tr("what")}, {}};
  if (text) table.columns.push_back(Views::tr("text"));
  const std::size_t named = table.columns.size();
  std::vector<std::vector<TableColumn>> columns(groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const Sheet* sheet : groups[g].sheets)
      for (const Column& column : sheet->columns) add_columns(columns[g], *sheet, column);
    for (const TableColumn& column : columns[g]) table.columns.push_back(column.title);
  }
  std::size_t before = named;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Axis& axis = *groups[g].axis;
    for (const std::int64_t place : shown_rows(*groups[g].sheets.front())) {
      std::vector<std::string> row(table.columns.size());
      row[0] = !one ? axis.words(place) : axis.label && !text ? axis.label(place) : coordinate_text(axis, place);
      if (text) row[1] = axis.label(place);
      for (std::size_t i = 0; i < columns[g].size(); ++i) row[before + i] = columns[g][i].value(place);
      table.rows.push_back(std::move(row));
    }
    before += columns[g].size();
  }
  return table;
}

/// Of the first column that has one value there.
std::string value_at(const Sheet& sheet, const Places& at) {
  for (const Column& column : sheet.columns) {
    if (open_axis(column, at) != -1) continue;
    if (std::string value = column.value(index_of(sheet, column, at)); !value.empty()) return value;
  }
  return {};
}

Places places_here(const Sheet& sheet) {
  Places at{-1, -1, -1};
  for (std::size_t axis = 0; axis < sheet.axes.size(); ++axis) at[axis] = here_on(sheet.axes[axis]);
  return at;
}

}  // namespace

Table table_of(const std::vector<Sheet>& sheets) { return table_from(row_groups(sheets)); }

std::vector<Table> tables_of(const std::vector<Sheet>& sheets) {
  std::vector<Table> tables;
  for (const RowGroup& group : row_groups(sheets)) tables.push_back(table_from({&group, 1}));
  return tables;
}

std::string value_of(const std::vector<Sheet>& sheets, const std::optional<Hit>& hit) {
  if (hit) {
    const Sheet* sheet = sheet_of(sheets, *hit);
    if (!sheet) return {};
    Places at = hit->at;
    for (std::size_t axis = 0; axis < sheet->axes.size(); ++axis)
      if (at[axis] == Hit::here) at[axis] = here_on(sheet->axes[axis]);
    return value_at(*sheet, at);
  }
  for (const Sheet& sheet : sheets) {
    if (sheet.rows < 0) continue;
    if (std::string value = value_at(sheet, places_here(sheet)); !value.empty()) return value;
  }
  return {};
}

std::string tooltip_of(const std::vector<Sheet>& sheets, const Hit& hit) {
  const Sheet* sheet = sheet_of(sheets, hit);
  if (!sheet) return {};
  std::vector<std::string> where, lines;
  Places at = hit.at;
  for (std::size_t axis = 0; axis < sheet->axes.size(); ++axis) {
    if (at[axis] == Hit::here) at[axis] = here_on(sheet->axes[axis]);
    if (at[axis] >= 0) where.push_back(sheet->axes[axis].words(at[axis]));
  }
  std::string equation;
  for (const Column& column : sheet->columns) {
    const auto named = [&](int axis) { return hit.at[static_cast<std::size_t>(axis)] < 0 || is_along(column, axis); };
    bool along = true;
    for (int axis = 0; axis < std::ssize(sheet->axes); ++axis) along = along && named(axis);
    const std::string words = along ? said(*sheet, column, at, true) : "";
    if (words.empty()) continue;
    if (!lines.empty() && column.equation != equation && !equation.empty()) lines.back() += "   " + equation;
    lines.push_back(words);
    equation = column.equation;
  }
  if (!equation.empty()) lines.back() += "   " + equation;
  lines.insert(lines.begin(), joined(where, ", "));
  if (!sheet->place.empty()) lines.push_back(sheet->place);
  if (const std::string remark = sheet->remark ? sheet->remark(hit) : ""; !remark.empty()) lines.push_back(remark);
  if (!sheet->invitation.empty()) lines.push_back(sheet->invitation);
  lines.push_back(accuracy_words(sheet->accuracy));
  return joined(lines, "\n");
}

std::string range_of(const std::vector<Sheet>& sheets, const Hit& first, const Hit& last) {
  const Sheet* sheet = sheet_of(sheets, first);
  std::vector<std::string> ranges;
  for (std::size_t i = 0; sheet && sheet_of(sheets, last) && i < sheet->axes.size(); ++i) {
    const Axis& axis = sheet->axes[i];
    if (first.at[i] < 0 || last.at[i] < first.at[i] || (first.at[i] == 0 && last.at[i] + 1 == axis.count)) continue;
    ranges.push_back(first.at[i] == last.at[i] ? axis.words(first.at[i])
                                               : Views::tr("{} to {}", axis.words(first.at[i]), axis.words(last.at[i])));
  }
  return joined(ranges, ", ");
}

CursorMove move_of(const std::vector<Sheet>& sheets, const Hit& hit) {
  CursorMove all;
  const Sheet* sheet = sheet_of(sheets, hit);
  for (std::size_t axis = 0; sheet && axis < sheet->axes.size(); ++axis) {
    if (hit.at[axis] < 0 || !sheet->axes[axis].move) continue;
    const CursorMove move = sheet->axes[axis].move(hit.at[axis]);
    take(all.token, move.token);
    take(all.layer, move.layer);
    take(all.head, move.head);
    take(all.slot, move.slot);
    take(all.row, move.row);
    take(all.column, move.column);
    take(all.reference, move.reference);
  }
  return all;
}

std::string reading_of(const std::vector<Sheet>& sheets) {
  std::vector<std::string> all;
  for (const Sheet& sheet : sheets) {
    const Places at = places_here(sheet);
    if (sheet.rows < 0 || std::ranges::all_of(at, [](std::int64_t place) { return place < 0; })) continue;
    for (const Column& column : sheet.columns) {
      if (std::string words = said(sheet, column, at, false); !words.empty()) all.push_back(std::move(words));
    }
  }
  return all.empty() ? "" : joined(all, "; ") + ".";
}

}  // namespace statescope

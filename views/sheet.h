// The numbers of a view, described once: columns along axes. Its table, the arrays beside a figure, what stands under the pointer, what a
// click does and what a screen reader reads out all come from here.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/accuracy.h"
#include "views/array.h"
#include "views/canvas.h"

namespace statescope {

/// What a click or arrow changes of the cursor.
struct CursorMove {
  std::optional<std::int64_t> token = {}, layer = {}, head = {}, slot = {}, row = {}, column = {}, reference = {};
};

/// Text for the keyboard and the screen reader.
struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

/// `count` places, from 0 on. Each has a coordinate, a label or both; where there are neither, its own number.
struct Axis {
  std::string name = {};  // "token", "key row"
  std::string unit = {};  // empty: none
  std::int64_t count = 0;
  std::int64_t here = -1;  // the cursor's place; −1: none
  std::function<double(std::int64_t place)> coordinate = {};
  std::function<std::string(std::int64_t place)> label = {};
  std::function<CursorMove(std::int64_t place)> move = {};  // where choosing a place leads

  /// "key row 3", "token 12 “␣anna”"
  std::string words(std::int64_t place) const;
};

/// A quantity. Place i of it counts along its axes, row-major.
struct Column {
  std::string name = {};  // "‖π‖"
  std::string unit = {};  // empty: none
  std::string equation = {};
  std::vector<int> along = {};  // which axes of the sheet
  std::function<float(std::int64_t place)> number = {};
  std::function<std::string(std::int64_t place)> text = {};  // instead of numbers; such a column is no array
  std::string none = {};                                     // what it says where there is no number
  bool as_colors = false;                                    // drawn as a heatmap beside a bar of its colours

  /// "half-life (tokens)"
  std::string title() const;
  /// The number, exactly, or the text.
  std::string value(std::int64_t place) const;
};

/// Columns that share axes, at most three.
struct Sheet {
  std::vector<Axis> axes = {};
  std::vector<Column> columns = {};
  std::string place = {};  // what all of it is of: "layer 2, head 1, after token 12 “␣anna”"
  Accuracy accuracy = kExact;
  std::function<std::string(const Hit& hit)> remark = {};  // what else there is to say of a place; null or empty: nothing
  std::string invitation = {};                             // what choosing a place would show
  // In the table:
  int rows = 0;     // the axis that goes down, all columns are along it; −1: another sheet says the same in the table
  int across = -1;  // the axis whose places are side by side; −1: none. Of others the cursor's place is shown
  std::vector<std::int64_t> order = {};  // of the places that go down; empty: those around the cursor's
  std::int64_t most_rows = 512;

  /// A quantity along `along`, of numbers that outlive the sheet. Nothing where there are none.
  void add(std::string name, std::string unit, std::string equation, std::vector<int> along, const std::vector<float>& numbers);
  Column& add(Column column);
};

/// "0.25", "∞"; NaN: "—"
std::string value_text(float value);

Axis axis_of_count(std::string name, std::int64_t count, std::int64_t here = -1);
Axis axis_of_names(std::string name, std::vector<std::string> labels, std::int64_t here = -1);

// Views keep their sheets in a fixed order, also those that have no columns now: Hit::sheet is a place in it.
std::vector<Array> arrays_of(const std::vector<Sheet>& sheets);
/// Sheets whose rows are along axes of one name share them.
Table table_of(const std::vector<Sheet>& sheets);
/// Each of those that `table_of` puts into one: of all rows along axes of one name.
std::vector<Table> tables_of(const std::vector<Sheet>& sheets);
/// The columns that are along all axes of which the hit names a place. Empty: there are none, or no such place.
std::string tooltip_of(const std::vector<Sheet>& sheets, const Hit& hit);
CursorMove move_of(const std::vector<Sheet>& sheets, const Hit& hit);
/// The first number or text there, alone: "0.25". Without `hit`: under the cursor. Empty: there is none.
std::string value_of(const std::vector<Sheet>& sheets, const std::optional<Hit>& hit);
/// Of each axis of which not all places are in sight, which are: "token 3 “␣anna” to token 9 “.”". Empty: all are.
std::string range_of(const std::vector<Sheet>& sheets, const Hit& first, const Hit& last);
/// What stands under the cursor: "‖π‖ = 0.25, β = 0.5."
std::string reading_of(const std::vector<Sheet>& sheets);

}  // namespace statescope

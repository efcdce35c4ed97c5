#include "views/view.h"

namespace statescope {

std::vector<Array> View::arrays() const { return arrays_of(sheets()); }

Table View::table() const { return table_of(sheets()); }

std::vector<Table> View::tables() const { return tables_of(sheets()); }

std::string View::value(const std::optional<Hit>& hit) const { return value_of(sheets(), hit); }

std::string View::tooltip(const Hit& hit) const { return tooltip_of(sheets(), hit); }

CursorMove View::on_hit(const Hit& hit) const { return move_of(sheets(), hit); }

std::string View::describe() const {
  const std::string reading = reading_of(sheets());
  return reading.empty() ? sentence() : sentence() + " " + reading;
}

}  // namespace statescope

// What of a state is chosen (Cursor::row, Cursor::column): a cell, a row as a whole, all rows of the slot, or nothing.
#pragma once

#include "views/view.h"

namespace statescope {

/// Instead of a row: all of them.
inline constexpr std::int64_t kAllRows = -2;

/// A row or all of them, and no cell: pointing does not take that away.
inline bool chooses_whole(const Cursor& cursor) { return cursor.row == kAllRows || (cursor.row >= 0 && cursor.column < 0); }

}  // namespace statescope

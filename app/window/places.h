// The places where the reader has been, to go back and forth between them.
#pragma once

#include <optional>
#include <vector>

#include "views/view.h"

namespace statescope {

/// A place is a token, layer, head, partition and reference; the cell goes with it. A scrub, a key held down or a play is one move.
class Places {
 public:
  /// The reader stands at `place`, `now_ms` after some fixed moment. `played`: brought there by playing.
  void arrive(const Cursor& place, std::int64_t now_ms, bool played);
  /// Where to go; empty at the end.
  std::optional<Cursor> back();
  std::optional<Cursor> forth();
  void clear();

 private:
  std::vector<Cursor> places_;
  std::size_t at_ = 0;
  std::int64_t last_ms_ = 0;
  bool moving_ = false;  // the move to places_[at_] may go on
  bool played_ = false;
};

}  // namespace statescope

// The hit regions of one drawing, as the canvases that answer a pointer keep them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "views/canvas.h"

namespace statescope {

/// The part of `a` that lies in `b`; empty (w or h 0) where they do not meet.
Rect intersection(Rect a, Rect b);

class HitRegions {
 public:
  void clear() { regions_.clear(); }
  /// `clip`: the part of the canvas that was visible when the region was given.
  void add(Rect rect, Rect clip, const HitGrid& grid);
  /// The place under `p`: of the last region given that contains it.
  std::optional<Hit> at(Point p) const;

 private:
  struct Region {
    Rect rect, visible;
    HitGrid grid;
  };
  std::vector<Region> regions_;
};

}  // namespace statescope

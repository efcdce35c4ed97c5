// The hit regions of one drawing, as the canvases that answer a pointer keep them.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "views/canvas.h"

namespace statescope {

/// The part of `a` that lies in `b`; empty (w or h 0) where they do not meet.
Rect intersection(Rect a, Rect b);
/// What is in sight of a place in the plot: all of it, unless the plot shows a part of its data. w or h 0: nothing.
Rect seen(const Plot& plot, Rect place);

class HitRegions {
 public:
  void clear() {
    regions_.clear();
    plots_.clear();
  }
  /// `clip`: the part of the canvas that was visible when the region was given.
  void add(Rect rect, Rect clip, const HitGrid& grid);
  /// The place under `p`: of the last region given that contains it.
  std::optional<Hit> at(Point p) const;

  /// A plot whose data can be enlarged: along which axes.
  struct ZoomPlot {
    Rect rect;
    bool across = false, down = false;
  };
  void add_plot(Rect rect, bool across, bool down) { plots_.push_back({rect, across, down}); }
  const std::vector<ZoomPlot>& plots() const { return plots_; }
  /// That in which `p` lies, or null.
  const ZoomPlot* plot_at(Point p) const;
  /// What is in sight of a plot, from corner to corner.
  struct InSight {
    HitGrid grid;
    Hit first, last;
  };
  std::optional<InSight> in_sight(const ZoomPlot& plot) const;
  /// Likewise of a plot of single places: the least and the greatest of which half or more is in sight, or that take half of it.
  std::optional<std::pair<Hit, Hit>> things_in_sight(const ZoomPlot& plot) const;

 private:
  struct Region {
    Rect rect, visible;
    HitGrid grid;
    Hit at(Point p) const;
  };
  std::vector<Region> regions_;
  std::vector<ZoomPlot> plots_;
};

}  // namespace statescope

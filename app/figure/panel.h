// What stands in one place of a figure, built and ready to be drawn.
#pragma once

#include <string>
#include <vector>

#include "views/view.h"

namespace statescope {

class PanelPicture {
 public:
  virtual ~PanelPicture() = default;

  virtual void draw(Canvas& canvas, Rect area, const Frame& frame) const = 0;
  virtual std::vector<Array> arrays() const = 0;
  /// Sentences for the figure's caption: what is shown, of which models and where in them, with the source of its equation.
  virtual std::string caption() const = 0;

  /// Null: it is none of a run.
  virtual const View* view() const { return nullptr; }
  /// Of its heatmap; empty: it has none whose range can be chosen.
  virtual std::optional<Shading> shading() const { return {}; }
  /// Builds it again with that range.
  virtual void set_range(const RangeChoice& /*range*/) {}
  /// Builds it again on the way from the token before (Cursor::progress).
  virtual void set_progress(float /*progress*/) {}
};

}  // namespace statescope

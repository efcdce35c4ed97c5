// How large the type in a drawing is while presenting: larger, as far as its picture does not become smaller for it.
#pragma once

#include "views/view.h"

namespace statescope {

class DrawingScale {
 public:
  /// Of `view` drawn into `area`: frame.scale, but presenting the largest from 1 up to that at which its largest plot is nearly as large as
  /// at 1. `canvas` measures texts.
  float of(const View& view, const Canvas& canvas, Rect area, const Frame& frame);

 private:
  struct Subject {
    const View* view = nullptr;
    std::size_t mode = 0;
    float w = 0, h = 0, scale = 0;
    bool operator==(const Subject&) const = default;
  };
  Subject known_;
  float scale_ = 1;
};

}  // namespace statescope

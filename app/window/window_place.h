// Where on the screen the window stands.
#pragma once

#include <QRect>

namespace statescope {

struct WindowPlace {
  QRect rect;  // without the frame
  bool maximised = false;
};

/// At a first start: `preferred` in the middle of `available`, or all of it where that has not the room for a window of this size and its
/// frame.
WindowPlace first_place(const QRect& available, const QSize& preferred);

}  // namespace statescope

#include "app/window/window_place.h"

namespace statescope {
namespace {

constexpr QSize frame{16, 48};  // of the desktop, about: its title and borders

}  // namespace

WindowPlace first_place(const QRect& available, const QSize& preferred) {
  const QSize with_frame = preferred + frame;
  if (with_frame.width() > available.width() || with_frame.height() > available.height()) return {available, true};
  QRect rect({}, preferred);
  rect.moveCenter(available.center());
  return {rect, false};
}

}  // namespace statescope

// One pixel of a picture, as views have colours.
#pragma once

#include <QImage>

#include "views/canvas.h"

namespace statescope {

inline Color pixel(const QImage& image, int x, int y) {
  const QColor color = image.pixelColor(x, y);
  return {static_cast<std::uint8_t>(color.red()), static_cast<std::uint8_t>(color.green()), static_cast<std::uint8_t>(color.blue())};
}

}  // namespace statescope

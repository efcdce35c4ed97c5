#include "app/figure/colors.h"

#include <QHash>
#include <cmath>

#include "views/color_vision.h"
#include "views/colormaps.h"

namespace statescope {
namespace {

/// Evenly from nearly black to nearly white: neither is lost in ink or paper.
std::array<Color, 256> make_grey() {
  constexpr int darkest = 20, lightest = 240;
  std::array<Color, 256> table;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto channel = static_cast<std::uint8_t>(darkest + (lightest - darkest) * static_cast<int>(i) / 255);
    table[i] = {channel, channel, channel};
  }
  return table;
}

/// Dark blue, grey where it is 0, light orange: ever lighter, so that grey keeps the order.
std::array<Color, 256> make_grey_safe() {
  constexpr std::array<int, 3> low{16, 44, 96}, zero{140, 140, 140}, high{255, 220, 170};
  std::array<Color, 256> table;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const double at = static_cast<double>(i) / 127.5, share = at < 1 ? at : at - 1;
    const auto channel = [&](std::size_t c) {
      return static_cast<std::uint8_t>(std::lround(at < 1 ? std::lerp(low[c], zero[c], share) : std::lerp(zero[c], high[c], share)));
    };
    table[i] = {channel(0), channel(1), channel(2)};
  }
  return table;
}

Color seen_by(Color color, FigureEyes eyes) {
  const Light light = light_of(color);
  switch (eyes) {
    case FigureEyes::protan:
      return color_of(seen_with(ColorVision::protanopia, light));
    case FigureEyes::deutan:
      return color_of(seen_with(ColorVision::deuteranopia, light));
    case FigureEyes::tritan:
      return color_of(seen_with(ColorVision::tritanopia, light));
    case FigureEyes::grey:
      break;
  }
  const double y = luminance(light);
  return color_of({y, y, y});
}

}  // namespace

const std::array<Color, 256>* figure_signs(FigureColors colors) {
  static const std::array<Color, 256> grey_safe = make_grey_safe();
  if (colors == FigureColors::grey) return &figure_table(colors);
  return colors == FigureColors::grey_safe ? &grey_safe : nullptr;
}

const std::array<Color, 256>& figure_table(FigureColors colors) {
  static const std::array<Color, 256> grey = make_grey();
  if (colors == FigureColors::grey) return grey;
  return color_table(colors == FigureColors::cividis ? ColorMap::cividis : ColorMap::viridis);
}

QImage seen_by(const QImage& image, FigureEyes eyes) {
  QImage seen = image.convertToFormat(QImage::Format_RGB32);
  QHash<QRgb, QRgb> known;
  for (int y = 0; y < seen.height(); ++y) {
    auto* line = reinterpret_cast<QRgb*>(seen.scanLine(y));
    for (int x = 0; x < seen.width(); ++x) {
      auto found = known.constFind(line[x]);
      if (found == known.constEnd()) {
        const Color color = seen_by(Color{static_cast<std::uint8_t>(qRed(line[x])), static_cast<std::uint8_t>(qGreen(line[x])),
                                          static_cast<std::uint8_t>(qBlue(line[x]))},
                                    eyes);
        found = known.insert(line[x], qRgb(color.r, color.g, color.b));
      }
      line[x] = *found;
    }
  }
  return seen;
}

}  // namespace statescope

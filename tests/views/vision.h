// How far apart colours are, and what contrast they have, for eyes without red, green or blue cones.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "views/color_vision.h"

namespace statescope::vision {

struct Vision {
  const char* name;
  ColorVision eyes;
};
inline constexpr Vision visions[] = {{"usual", ColorVision::usual},
                                     {"protanopia", ColorVision::protanopia},
                                     {"deuteranopia", ColorVision::deuteranopia},
                                     {"tritanopia", ColorVision::tritanopia}};

/// CIELAB distances (1976). About 2.3 is the least that can be told apart side by side; small marks apart from each other need more.
inline constexpr double apart = 10, far_apart = 40;

/// L*, a*, b* of a colour as it is seen, with the white of sRGB.
inline std::array<double, 3> lab(Color color, const Vision& vision) {
  constexpr double xyz_of_white_1[3][3] = {{0.43394, 0.37621, 0.18984}, {0.21267, 0.71515, 0.07217}, {0.01776, 0.10946, 0.87278}};
  const Light light = seen_with(vision.eyes, light_of(color));
  std::array<double, 3> f{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t k = 0; k < 3; ++k) f[i] += xyz_of_white_1[i][k] * light[k];
    f[i] = f[i] > 216.0 / 24389 ? std::cbrt(f[i]) : (24389.0 / 27 * f[i] + 16) / 116;
  }
  return {116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])};
}

inline double distance(Color a, Color b, const Vision& vision) {
  const std::array<double, 3> u = lab(a, vision), v = lab(b, vision);
  return std::hypot(u[0] - v[0], u[1] - v[1], u[2] - v[2]);
}

/// As contrast_ratio, of colours as they are seen.
inline double contrast_seen(Color a, Color b, const Vision& vision) {
  const double u = luminance(seen_with(vision.eyes, light_of(a))), v = luminance(seen_with(vision.eyes, light_of(b)));
  return (std::max(u, v) + 0.05) / (std::min(u, v) + 0.05);
}

}  // namespace statescope::vision

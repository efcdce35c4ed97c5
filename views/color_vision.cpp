#include "views/color_vision.h"

#include <algorithm>
#include <cmath>

namespace statescope {
namespace {

/// By ColorVision.
constexpr std::array<std::array<Light, 3>, 4> kSeen{
    {{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
     {{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}},
     {{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}},
     {{{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}}}};

double linear(std::uint8_t channel) {
  const double c = channel / 255.0;
  return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

std::uint8_t encoded(double light) {
  const double c = light <= 0.0031308 ? 12.92 * light : 1.055 * std::pow(light, 1 / 2.4) - 0.055;
  return static_cast<std::uint8_t>(std::lround(255 * std::clamp(c, 0.0, 1.0)));
}

}  // namespace

Light light_of(Color color) { return {linear(color.r), linear(color.g), linear(color.b)}; }

Color color_of(const Light& light) { return {encoded(light[0]), encoded(light[1]), encoded(light[2])}; }

Light seen_with(ColorVision vision, const Light& light) {
  const std::array<Light, 3>& matrix = kSeen[static_cast<std::size_t>(vision)];
  Light seen{};
  for (std::size_t i = 0; i < 3; ++i)
    seen[i] = std::clamp(matrix[i][0] * light[0] + matrix[i][1] * light[1] + matrix[i][2] * light[2], 0.0, 1.0);
  return seen;
}

double luminance(const Light& light) { return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]; }

}  // namespace statescope

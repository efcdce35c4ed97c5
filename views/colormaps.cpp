#include "views/colormaps.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace statescope {
namespace {

struct Lab {
  float l, a, b;
};

float to_linear(std::uint8_t channel) {
  const float c = static_cast<float>(channel) / 255.0f;
  return c <= 0.04045f ? c / 12.92f : std::pow((c + 0.055f) / 1.055f, 2.4f);
}

std::uint8_t to_srgb(float linear) {
  const float c = std::clamp(linear, 0.0f, 1.0f);
  return static_cast<std::uint8_t>(std::lround(255.0f * (c <= 0.0031308f ? 12.92f * c : 1.055f * std::pow(c, 1 / 2.4f) - 0.055f)));
}

// OKLab: linear sRGB → cone responses → cube roots → lightness and two opponent axes.
Lab to_lab(Color color) {
  const float r = to_linear(color.r), g = to_linear(color.g), b = to_linear(color.b);
  const float l = std::cbrt(0.4122214708f * r + 0.5363325363f * g + 0.0514459929f * b);
  const float m = std::cbrt(0.2119034982f * r + 0.6806995451f * g + 0.1073969566f * b);
  const float s = std::cbrt(0.0883024619f * r + 0.2817188376f * g + 0.6299787005f * b);
  return {0.2104542553f * l + 0.7936177850f * m - 0.0040720468f * s, 1.9779984951f * l - 2.4285922050f * m + 0.4505937099f * s,
          0.0259040371f * l + 0.7827717662f * m - 0.8086757660f * s};
}

Color to_color(Lab lab) {
  const float l = std::pow(lab.l + 0.3963377774f * lab.a + 0.2158037573f * lab.b, 3.0f);
  const float m = std::pow(lab.l - 0.1055613458f * lab.a - 0.0638541728f * lab.b, 3.0f);
  const float s = std::pow(lab.l - 0.0894841775f * lab.a - 1.2914855480f * lab.b, 3.0f);
  return {to_srgb(4.0767416621f * l - 3.3077115913f * m + 0.2309699292f * s),
          to_srgb(-1.2684380046f * l + 2.6097574011f * m - 0.3413193965f * s),
          to_srgb(-0.0041960863f * l - 0.7034186147f * m + 1.7076147010f * s)};
}

constexpr Color rgb(unsigned hex) {
  return {static_cast<std::uint8_t>(hex >> 16), static_cast<std::uint8_t>(hex >> 8), static_cast<std::uint8_t>(hex)};
}

// Control points at equal distances.
constexpr Color kViridis[] = {rgb(0x440154), rgb(0x482878), rgb(0x3e4989), rgb(0x31688e), rgb(0x26828e),
                              rgb(0x1f9e89), rgb(0x35b779), rgb(0x6ece58), rgb(0xb5de2b), rgb(0xfde725)};
constexpr Color kCividis[] = {rgb(0x00224e), rgb(0x123570), rgb(0x3b496c), rgb(0x575d6d), rgb(0x707173),
                              rgb(0x8a8678), rgb(0xa59c74), rgb(0xc3b369), rgb(0xe1cc55), rgb(0xfee838)};
constexpr Color kDiverging[] = {rgb(0x0b3c72), rgb(0x2a6fb0), rgb(0x8cbade), rgb(0xf7f7f5), rgb(0xeeb07c), rgb(0xb9611b), rgb(0x6b3107)};
constexpr Color kDivergingDark[] = {rgb(0xa3d0f7), rgb(0x5598d6), rgb(0x2a5c8f), rgb(0x15181c),
                                    rgb(0x7a461b), rgb(0xc97d35), rgb(0xfabd85)};

std::span<const Color> control_points(ColorMap map) {
  switch (map) {
    case ColorMap::viridis:
      return kViridis;
    case ColorMap::cividis:
      return kCividis;
    case ColorMap::diverging:
      return kDiverging;
    case ColorMap::diverging_dark:
      return kDivergingDark;
  }
  return kViridis;
}

std::array<Color, 256> make_table(ColorMap map) {
  std::array<Color, 256> table;
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = color_at(map, static_cast<float>(i) / 255.0f);
  return table;
}

// WCAG 2.1 relative luminance.
float luminance(Color c) { return 0.2126f * to_linear(c.r) + 0.7152f * to_linear(c.g) + 0.0722f * to_linear(c.b); }

}  // namespace

Color color_at(ColorMap map, float t) {
  const std::span<const Color> points = control_points(map);
  const float place = std::clamp(t, 0.0f, 1.0f) * static_cast<float>(points.size() - 1);
  const std::size_t left = std::min(static_cast<std::size_t>(place), points.size() - 2);
  const float f = place - static_cast<float>(left);
  const Lab p = to_lab(points[left]), q = to_lab(points[left + 1]);
  return to_color({std::lerp(p.l, q.l, f), std::lerp(p.a, q.a, f), std::lerp(p.b, q.b, f)});
}

const std::array<Color, 256>& color_table(ColorMap map) {
  static const std::array<std::array<Color, 256>, 4> tables = {make_table(ColorMap::viridis), make_table(ColorMap::cividis),
                                                               make_table(ColorMap::diverging), make_table(ColorMap::diverging_dark)};
  return tables[static_cast<std::size_t>(map)];
}

int color_index(const ColorScale& scale, float value) {
  const auto place = [&](float x) { return scale.logarithmic ? std::log(std::max(x, scale.low)) : x; };
  const float low = place(scale.low), range = place(scale.high) - low;
  const float t = range > 0 ? (place(value) - low) / range : 0.5f;
  return static_cast<int>(std::lround(255.0f * std::clamp(t, 0.0f, 1.0f)));
}

float contrast_ratio(Color a, Color b) {
  const auto [dark, light] = std::minmax({luminance(a), luminance(b)});
  return (light + 0.05f) / (dark + 0.05f);
}

Color readable_on(Color fill) {
  constexpr Color black{0, 0, 0}, white{255, 255, 255};
  return contrast_ratio(fill, black) >= contrast_ratio(fill, white) ? black : white;
}

Color faded(Color color, float opacity) {
  color.a = static_cast<std::uint8_t>(std::lround(static_cast<float>(color.a) * std::clamp(opacity, 0.0f, 1.0f)));
  return color;
}

Color over(Color color, Color ground) {
  const float alpha = static_cast<float>(color.a) / 255.0f;
  const auto mix = [alpha](std::uint8_t top, std::uint8_t below) {
    return static_cast<std::uint8_t>(std::lround(std::lerp(static_cast<float>(below), static_cast<float>(top), alpha)));
  };
  return {mix(color.r, ground.r), mix(color.g, ground.g), mix(color.b, ground.b)};
}

}  // namespace statescope

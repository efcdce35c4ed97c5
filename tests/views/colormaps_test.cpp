#include "views/colormaps.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/catch.h"
#include "views/view.h"

namespace statescope::colormaps_test {
namespace {

constexpr Color kBlack{0, 0, 0}, kWhite{255, 255, 255};

float lightness(Color color) { return contrast_ratio(color, kBlack); }

int distance(Color a, Color b) { return std::abs(a.r - b.r) + std::abs(a.g - b.g) + std::abs(a.b - b.b); }

}  // namespace

TEST_CASE("contrast is that of WCAG 2.1") {
  CHECK(contrast_ratio(kBlack, kWhite) == Approx(21));
  CHECK(contrast_ratio({119, 119, 119}, kWhite) == Approx(4.48).margin(0.01));
  CHECK(contrast_ratio({255, 0, 0}, {255, 0, 0}) == Approx(1));
}

TEST_CASE("maps begin and end with their own colours and clamp outside") {
  CHECK(color_at(ColorMap::viridis, 0) == Color{0x44, 0x01, 0x54});
  CHECK(color_at(ColorMap::viridis, 1) == Color{0xfd, 0xe7, 0x25});
  CHECK(color_at(ColorMap::cividis, -3) == color_at(ColorMap::cividis, 0));
  CHECK(color_at(ColorMap::cividis, 7) == color_at(ColorMap::cividis, 1));
  CHECK(distance(color_at(ColorMap::viridis, 0.5f), {0x21, 0x91, 0x8c}) < 12);  // matplotlib's middle
  CHECK(distance(color_at(ColorMap::cividis, 0.5f), {0x7d, 0x7c, 0x78}) < 12);
}

TEST_CASE("sequential maps grow lighter with every step: they survive greyscale") {
  for (const ColorMap map : {ColorMap::viridis, ColorMap::cividis}) {
    const auto& table = color_table(map);
    for (std::size_t i = 8; i < table.size(); ++i) REQUIRE(lightness(table[i]) > lightness(table[i - 8]));
  }
}

TEST_CASE("diverging maps have their extreme in the middle and two equal arms, blue below and orange above") {
  for (const ColorMap map : {ColorMap::diverging, ColorMap::diverging_dark}) {
    const float sign = map == ColorMap::diverging ? 1.0f : -1.0f;
    for (int i = 8; i <= 50; ++i) {
      const float far = static_cast<float>(i) / 100, near = static_cast<float>(i - 8) / 100;
      REQUIRE(sign * lightness(color_at(map, 0.5f - far)) < sign * lightness(color_at(map, 0.5f - near)));
      REQUIRE(sign * lightness(color_at(map, 0.5f + far)) < sign * lightness(color_at(map, 0.5f + near)));
      const Color low = color_at(map, 0.5f - far), high = color_at(map, 0.5f + far);
      REQUIRE(low.b > low.r);
      REQUIRE(high.r > high.b);
      REQUIRE(std::max(lightness(low), lightness(high)) < 1.6f * std::min(lightness(low), lightness(high)));
    }
  }
  CHECK(distance(color_at(ColorMap::diverging, 0.5f), light_theme().ground) < 12);
  CHECK(distance(color_at(ColorMap::diverging_dark, 0.5f), dark_theme().ground) < 24);
}

TEST_CASE("tables hold the same colours as the maps") {
  for (const ColorMap map : {ColorMap::viridis, ColorMap::cividis, ColorMap::diverging, ColorMap::diverging_dark}) {
    CHECK(color_table(map)[0] == color_at(map, 0));
    CHECK(color_table(map)[100] == color_at(map, 100 / 255.0f));
    CHECK(color_table(map)[255] == color_at(map, 1));
  }
}

TEST_CASE("numbers find their place on a scale") {
  const ColorScale scale{ColorMap::diverging, -2, 2};
  CHECK(color_index(scale, -2) == 0);
  CHECK(color_index(scale, 0) == 128);
  CHECK(color_index(scale, 2) == 255);
  CHECK(color_index(scale, -99) == 0);
  CHECK(color_index(scale, HUGE_VALF) == 255);
  CHECK(color_index({ColorMap::viridis, 3, 3}, 3) == 128);  // a range of nothing
}

TEST_CASE("text is readable: 4.5 to 1 or better, in both themes") {
  for (const Theme& theme : {light_theme(), dark_theme()}) {
    for (const Color ground : {theme.ground, theme.panel}) {
      for (const Color text : {theme.ink, theme.faint, theme.accent}) CHECK(contrast_ratio(text, ground) >= 4.5f);
      CHECK(contrast_ratio(theme.ink, over(faded(theme.needle, 0.35f), ground)) >= 4.5f);
      CHECK(contrast_ratio(theme.faint, over(faded(theme.needle, 0.15f), ground)) >= 4.5f);
    }
  }
  for (int i = 0; i < 256; ++i) {
    const Color fill{static_cast<std::uint8_t>(i), static_cast<std::uint8_t>((i * 7) % 256), static_cast<std::uint8_t>((i * 31) % 256)};
    REQUIRE(contrast_ratio(readable_on(fill), fill) >= 4.5f);
  }
}

TEST_CASE("identities differ from one another and keep away from the needle's gold as long as there are few") {
  for (const Theme& theme : {light_theme(), dark_theme()}) {
    for (std::int64_t i = 0; i < 8; ++i) {
      for (std::int64_t j = 0; j < i; ++j) CHECK(distance(identity_color(i, theme), identity_color(j, theme)) > 60);
      if (i <= 5) CHECK(distance(identity_color(i, theme), theme.needle) > 60);
    }
    CHECK(identity_color(8, theme) == identity_color(1, theme));  // they repeat; the number stands beside them
  }
}

TEST_CASE("opacity mixes with the ground") {
  CHECK(over(faded(kBlack, 0.5f), kWhite) == Color{127, 127, 127});
  CHECK(over(kBlack, kWhite) == kBlack);
  CHECK(faded({1, 2, 3, 100}, 0.5f) == Color{1, 2, 3, 50});
}

}  // namespace statescope::colormaps_test

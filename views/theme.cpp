#include <array>

#include "views/view.h"

namespace statescope {

Theme light_theme() {
  return {.ground = {247, 247, 245},
          .panel = {255, 255, 255},
          .ink = {27, 29, 33},
          .faint = {98, 102, 109},
          .line = {208, 210, 214},
          .accent = {11, 92, 173},
          .needle = {224, 168, 0},
          .question = {11, 92, 173},
          .answer = {10, 122, 85},
          .dark = false};
}

Theme dark_theme() {
  return {.ground = {18, 20, 23},
          .panel = {25, 28, 32},
          .ink = {232, 234, 237},
          .faint = {154, 160, 168},
          .line = {58, 63, 71},
          .accent = {108, 178, 245},
          .needle = {255, 200, 61},
          .question = {138, 184, 255},
          .answer = {95, 211, 166},
          .dark = true};
}

Theme high_contrast_theme() {
  return {.ground = {0, 0, 0},
          .panel = {0, 0, 0},
          .ink = {255, 255, 255},
          .faint = {214, 214, 214},
          .line = {150, 150, 150},
          .accent = {255, 226, 77},
          .needle = {255, 200, 61},
          .question = {138, 196, 255},
          .answer = {110, 231, 183},
          .dark = true};
}

// Okabe–Ito. Number 0 (the shared partition) is the neutral one; orange and yellow stand last, because gold belongs to the needle.
Color identity_color(std::int64_t index, const Theme& theme) {
  static constexpr std::array<Color, 7> colors = {{{0, 114, 178},     // blue
                                                   {213, 94, 0},      // vermilion
                                                   {0, 158, 115},     // bluish green
                                                   {204, 121, 167},   // reddish purple
                                                   {86, 180, 233},    // sky blue
                                                   {230, 159, 0},     // orange
                                                   {240, 228, 66}}};  // yellow
  if (index <= 0) return theme.dark ? Color{176, 180, 186} : Color{70, 73, 79};
  return colors[static_cast<std::size_t>((index - 1) % 7)];
}

}  // namespace statescope

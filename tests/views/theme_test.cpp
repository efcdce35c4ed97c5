#include <array>
#include <string>

#include "tests/catch.h"
#include "views/colormaps.h"
#include "views/view.h"

namespace statescope::theme_test {
namespace {

constexpr float least_contrast = 4.5f;  // WCAG 2.1 AA, of text

}  // namespace

TEST_CASE("every text of every theme stands out from every ground") {
  const std::array<std::pair<std::string, Theme>, 3> themes = {
      {{"light", light_theme()}, {"dark", dark_theme()}, {"high contrast", high_contrast_theme()}}};
  for (const auto& [name, theme] : themes) {
    INFO(name);
    for (const Color ground : {theme.ground, theme.panel})
      for (const Color text : {theme.ink, theme.faint, theme.accent, theme.question, theme.answer})
        CHECK(contrast_ratio(text, ground) >= least_contrast);
    if (name == "high contrast") {
      for (const Color text : {theme.ink, theme.faint, theme.accent, theme.needle, theme.question, theme.answer})
        CHECK(contrast_ratio(text, theme.panel) >= 7.0f);
      CHECK(contrast_ratio(theme.line, theme.panel) >= 3.0f);
    }
    CHECK(theme.dark == (contrast_ratio(theme.ground, {0, 0, 0}) < contrast_ratio(theme.ground, {255, 255, 255})));
  }
}

}  // namespace statescope::theme_test

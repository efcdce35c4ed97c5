#include "app/controls/theme.h"

#include <QLineEdit>

#include "tests/app/window/window_cases.h"
#include "tests/catch.h"
#include "views/colormaps.h"

namespace statescope::theme_test {

TEST_CASE("texts stand out from every ground that the style sheet makes") {
  for (const Theme& theme : {light_theme(), dark_theme(), high_contrast_theme()}) {
    const Shades shades = shades_of(theme);
    for (const Color ground : {theme.ground, theme.panel, shades.error, shades.select, shades.hover}) {
      INFO(to_qcolor(ground).name().toStdString());
      CHECK(contrast_ratio(theme.ink, ground) >= 4.5f);
    }
    CHECK(contrast_ratio(shades.on_accent, theme.accent) >= 4.5f);
    CHECK(contrast_ratio(theme.faint, theme.ground) >= 4.5f);
    CHECK(contrast_ratio(theme.faint, shades.hover) >= 4.5f);
    CHECK(contrast_ratio(shades.error_line, theme.panel) >= 3.0f);  // no text
  }
}

TEST_CASE("what an empty field asks for stands out too, after every change of theme and type") {
  TestWindow test;
  test.open();
  for (const auto choice : {ThemeChoice::light, ThemeChoice::dark, ThemeChoice::high_contrast}) {
    test.window.set_theme(choice);
    test.window.set_scale(test.window.wanted_scale() + 0.25f);
    for (const QLineEdit* edit : test.window.findChildren<QLineEdit*>())
      CHECK(edit->palette().color(QPalette::PlaceholderText) == to_qcolor(test.window.frame().theme.faint));
  }
}

}  // namespace statescope::theme_test

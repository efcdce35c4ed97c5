// The window on a trained checkpoint as eyes without red, green or blue cones see it: every arrangement, every theme.
#include <QLabel>
#include <QPushButton>
#include <QToolButton>
#include <map>
#include <tuple>

#include "app/assets.h"
#include "app/cli/commands.h"
#include "tests/app/window/pixel.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"
#include "tests/views/vision.h"

namespace statescope::screenshot_test {
namespace {

using namespace vision;

struct ByChannels {
  bool operator()(Color a, Color b) const { return std::tie(a.r, a.g, a.b) < std::tie(b.r, b.g, b.b); }
};
/// How often a colour stands somewhere.
using Counts = std::map<Color, std::int64_t, ByChannels>;

/// What lies around the areas of `mark`, a little off their edges, where these are sharp.
Counts grounds_of(Color mark, const QImage& picture) {
  constexpr int off = 3;
  Counts grounds;
  for (int y = off; y + off < picture.height(); ++y)
    for (int x = off; x + off < picture.width(); ++x) {
      if (pixel(picture, x, y) != mark) continue;
      for (const QPoint step : {QPoint(1, 0), QPoint(-1, 0), QPoint(0, 1), QPoint(0, -1)}) {
        const QPoint beside = QPoint(x, y) + step, behind = QPoint(x, y) + off * step;
        if (pixel(picture, beside.x(), beside.y()) == mark) continue;
        if (const Color ground = pixel(picture, behind.x(), behind.y()); ground != mark) ++grounds[ground];
      }
    }
  return grounds;
}

/// The share of the mark's edges across which it can be told from its ground.
double share_told(Color mark, const Counts& grounds, const Vision& vision) {
  std::int64_t all = 0, told = 0;
  for (const auto& [ground, count] : grounds) {
    all += count;
    if (distance(mark, ground, vision) >= apart) told += count;
  }
  return all == 0 ? 0 : static_cast<double>(told) / static_cast<double>(all);
}

/// The largest contrast of any pixel of the place with the colour that fills most of it.
double contrast_in(const QRect& place, const QImage& picture, const Vision& vision) {
  Counts colors;
  for (int y = place.top(); y <= place.bottom(); ++y)
    for (int x = place.left(); x <= place.right(); ++x) ++colors[pixel(picture, x, y)];
  const Color ground = std::ranges::max_element(colors, {}, &Counts::value_type::second)->first;
  double most = 1;
  for (const auto& [color, count] : colors) most = std::max(most, contrast_seen(color, ground, vision));
  return most;
}

/// Where Qt's own widgets say something.
std::vector<std::pair<QString, QRect>> texts_in(const MainWindow& window) {
  std::vector<std::pair<QString, QRect>> texts;
  const auto add = [&](const auto& widgets) {
    for (const auto* widget : widgets) {
      const QRect place = QRect(widget->mapTo(&window, QPoint()), widget->size()) & window.rect();
      const bool cut = !widget->visibleRegion().contains(QRect(QPoint(), widget->size()));
      if (widget->isVisible() && widget->isEnabled() && !cut && !widget->text().trimmed().isEmpty())
        texts.emplace_back(widget->text(), place);
    }
  };
  add(window.findChildren<QLabel*>());
  add(window.findChildren<QToolButton*>());
  add(window.findChildren<QPushButton*>());
  return texts;
}

struct RealWindow {
  std::unique_ptr<RunSource> source = (test_application(), make_session_source(nullptr));
  MainWindow window{*source, {.opengl = false, .start_words = "test", .theme = ThemeChoice::light, .scale = 1, .autoplay = false}};

  RealWindow() {
    const DefaultRun shipped = default_run();
    window.resize(1600, 900);
    window.show();
    window.open_checkpoint(shipped.checkpoint, load_prompt({}, shipped.prompt.string()));
    REQUIRE(
        QTest::qWaitFor([this] { return window.navigator().run() && !window.navigator().is_opening() && is_settled(); }, long_enough_ms));
    window.navigator().move({.token = 118, .layer = 2, .slot = 2, .row = 3, .column = 9});
  }
  bool is_settled() {
    const auto& panels = window.stage().panels();
    return window.navigator().is_current() &&
           std::ranges::none_of(panels, [](const ViewPanel* panel) { return panel->isVisible() && panel->is_pending(); });
  }
  QImage picture() {
    REQUIRE(QTest::qWaitFor([this] { return is_settled(); }, long_enough_ms));
    return window.grab().toImage().convertToFormat(QImage::Format_RGB32);
  }
};

}  // namespace

TEST_CASE("screenshots: in every arrangement and theme, marks and words can be told from their ground without red, green or blue cones",
          "[screenshots]") {
  RealWindow test;
  for (const Preset& preset : presets()) {
    test.window.arrange(arrangement_of(preset.views));
    for (const ThemeChoice theme : {ThemeChoice::light, ThemeChoice::dark, ThemeChoice::high_contrast}) {
      test.window.set_theme(theme);
      const QImage picture = test.picture();
      const Theme& colors = test.window.frame().theme;
      const std::pair<const char*, Color> marks[] = {{"needle", colors.needle}, {"question", colors.question}, {"chosen", colors.accent}};
      for (const auto& [name, mark] : marks) {
        const Counts grounds = grounds_of(mark, picture);
        REQUIRE_FALSE(grounds.empty());
        for (const Vision& vision : visions) {
          INFO(preset.id << ", theme " << static_cast<int>(theme) << ", " << vision.name << ", " << name);
          CHECK(share_told(mark, grounds, vision) >= 0.9);
        }
      }
      for (const auto& [text, place] : texts_in(test.window)) {
        for (const Vision& vision : visions) {
          INFO(preset.id << ", theme " << static_cast<int>(theme) << ", " << vision.name << ", “" << text.toStdString() << "”");
          CHECK(contrast_in(place, picture, vision) >= 4.5);
        }
      }
    }
  }
}

}  // namespace statescope::screenshot_test

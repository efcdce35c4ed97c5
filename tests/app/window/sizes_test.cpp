// The window on every size of screen and type: nothing leaves the screen, and presenting, no view goes that a lesson names.
#include <QAbstractButton>
#include <QAbstractScrollArea>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QSlider>
#include <set>

#include "app/canvas/text_canvas.h"
#include "app/lesson/lesson_page.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

namespace statescope::sizes_test {
namespace {

constexpr QSize sizes[] = {{1280, 720}, {1440, 900}, {1600, 1000}, {3840, 2160}};
constexpr float scales[] = {1, 2, 3};

bool is_control(const QWidget& widget) {
  return qobject_cast<const QAbstractButton*>(&widget) || qobject_cast<const QComboBox*>(&widget) ||
         qobject_cast<const QAbstractSpinBox*>(&widget) || qobject_cast<const QSlider*>(&widget) || qobject_cast<const QLineEdit*>(&widget);
}

/// What is scrolled to may lie outside.
bool scrolls(const QWidget& widget) {
  for (const QWidget* parent = widget.parentWidget(); parent; parent = parent->parentWidget())
    if (qobject_cast<const QAbstractScrollArea*>(parent)) return true;
  return false;
}

QRect place_in(const QWidget& widget, const QWidget& window) { return {widget.mapTo(&window, QPoint()), widget.size()}; }

void check_controls(MainWindow& window) {
  int seen = 0;
  for (const QWidget* widget : window.findChildren<QWidget*>()) {
    if (!widget->isVisible() || !is_control(*widget)) continue;
    if (const auto* button = qobject_cast<const QPushButton*>(widget); button && window.lesson_page().isAncestorOf(button)) {
      INFO(button->text().toStdString());
      CHECK(button->width() >= button->sizeHint().width());
    }
    if (scrolls(*widget)) continue;
    ++seen;
    INFO(widget->metaObject()->className() << " " << widget->accessibleName().toStdString());
    if (!window.rect().contains(place_in(*widget, window))) {
      const QRect place = place_in(*widget, window);
      CAPTURE(place.x(), place.y(), place.width(), place.height());
      CHECK(window.rect().contains(place));
    }
  }
  const bool all_folds = static_cast<float>(window.height()) / window.frame().scale < 320;
  CHECK(seen > (all_folds ? -1 : 3));
}

/// Its drawing, in the size that it has, is whole.
void check_drawing(const ViewPanel& panel, const Frame& frame) {
  QWidget& surface = const_cast<ViewPanel&>(panel).surface();
  TextCanvas canvas({static_cast<float>(surface.width()), static_cast<float>(surface.height())});
  panel.view().draw(canvas, {0, 0, canvas.size().w, canvas.size().h}, frame);
  CHECK_FALSE(canvas.lines().empty());
  CHECK(canvas.open_clips() == 0);
}

/// At one size of type and screen; Qt lays out in the next turn.
void take(MainWindow& window, const QSize& size, float scale) {
  if (window.wanted_scale() != scale) window.set_scale(scale);
  QTest::qWait(1);  // a screen of its own comes first, where it presents
  const auto has_size = [&] {
    if (window.size() == size) return true;
    window.resize(size);
    return false;
  };
  REQUIRE(QTest::qWaitFor(has_size, long_enough_ms));
  QTest::qWait(1);
}

}  // namespace

TEST_CASE("sizes: in every arrangement all controls are on the screen, presenting or not, and on the start page") {
  TestWindow test;
  for (const float scale : scales) {
    for (const QSize& size : sizes) {
      take(test.window, size, scale);
      INFO("start page, " << size.width() << "x" << size.height() << ", scale " << scale);
      check_controls(test.window);
    }
  }
  test.open();
  for (const bool presents : {false, true}) {
    if (presents) test.window.toggle_presenter();
    for (const float scale : scales) {  // outermost: a change of type costs the most
      for (const Preset& preset : presets()) {
        test.window.arrange_as(preset);
        for (const QSize& size : sizes) {
          take(test.window, size, scale);
          INFO(preset.id << ", " << size.width() << "x" << size.height() << ", scale " << scale << ", presenting " << presents);
          check_controls(test.window);
          if (!presents) continue;
          CHECK(test.window.frame().scale >= scale);
          for (const ViewPanel* panel : test.window.stage().panels()) CHECK(panel->isVisible());
        }
      }
    }
  }
}

TEST_CASE("sizes: presenting enlarges pictures as well as type") {
  TestWindow test(false, {1600, 1000});
  test.open();
  for (const Preset& preset : presets()) {
    INFO(preset.id);
    test.window.arrange_as(preset);
    QTest::qWait(1);
    const auto area = [&] {
      double sum = 0;
      for (ViewPanel* panel : test.window.stage().panels())
        if (panel->isVisible()) sum += static_cast<double>(panel->surface().width()) * panel->surface().height();
      return sum;
    };
    const double before = area();
    test.window.toggle_presenter();
    take(test.window, {1600, 1000}, 1);
    CHECK(area() > 1.2 * before);
    CHECK(test.window.frame().scale > 1.1f);
    test.window.toggle_presenter();
    take(test.window, {1600, 1000}, 1);
  }
}

TEST_CASE("sizes: presenting, every lesson's step has all views that it names, on every screen and with every type") {
  const std::unique_ptr<RunSource> source = (test_application(), make_session_source(nullptr));
  MainWindow window(
      *source, {.theme = ThemeChoice::light, .scale = 1, .autoplay = false, .make_source = [] { return make_session_source(nullptr); }});
  window.set_reduce_motion(true);
  window.resize(sizes[0]);
  window.show();
  LessonPlayer& lesson = window.lesson();
  const auto stands = [&] {
    const auto settled = [&] { return lesson.lesson() && lesson.is_ready() && window.navigator().is_current(); };
    return QTest::qWaitFor(settled, long_enough_ms);
  };
  const auto check_stage = [&](const Stage& stage) {
    REQUIRE(stage.panels().size() == lesson.picture().views.size());
    for (std::size_t i = 0; i < stage.panels().size(); ++i) {
      ViewPanel& panel = *stage.panels()[i];
      const float scale = window.frame().scale;
      INFO(lesson.picture().views[i].view->id << ", scale " << scale);
      CHECK(&panel.row() == lesson.picture().views[i].view);
      CHECK(panel.isVisible());
      CHECK(window.rect().contains(place_in(panel, window)));
      CHECK(panel.surface().width() >= 160 * scale);
      CHECK(panel.surface().height() >= 100 * scale);
      check_drawing(panel, window.frame());
    }
  };
  window.toggle_presenter();
  std::size_t lessons = 0;
  for (const std::filesystem::path& file : shipped_lessons()) {
    window.open_lesson(file);
    REQUIRE(stands());
    ++lessons;
    for (std::size_t step = 0; step < lesson.lesson()->steps.size(); ++step) {
      const auto check = [&](const QSize& size, float scale) {
        take(window, size, scale);
        INFO(file.filename().string() << ", step " << step + 1 << ", " << size.width() << "x" << size.height() << ", type " << scale);
        check_controls(window);
        CHECK(window.lesson_page().isVisible());
        for (const auto* text : window.lesson_page().findChildren<QScrollArea*>())  // once laid out it is no wider than what is seen of it
          CHECK(QTest::qWaitFor([&] { return text->widget()->width() <= text->viewport()->width(); }, long_enough_ms));
        check_stage(window.stage());
        for (const Stage* stage : window.rows().peer_stages()) check_stage(*stage);
      };
      check(sizes[0], scales[step % std::size(scales)]);  // where there is least room
      if (step == 0)
        for (std::size_t i = 1; i < std::size(sizes); ++i) check(sizes[i], scales[(lessons + i) % std::size(scales)]);
      lesson.next();
      if (lesson.index() == step) lesson.next();
      REQUIRE(stands());
    }
  }
}

TEST_CASE("sizes: presenting a lesson on a projector, no picture of its steps becomes smaller") {
  const std::unique_ptr<RunSource> source = (test_application(), make_session_source(nullptr));
  MainWindow window(
      *source, {.theme = ThemeChoice::light, .scale = 1, .autoplay = false, .make_source = [] { return make_session_source(nullptr); }});
  window.set_reduce_motion(true);
  window.resize(sizes[0]);
  window.show();
  LessonPlayer& lesson = window.lesson();
  const auto panels = [&] {  // of all models
    std::vector<ViewPanel*> all = window.stage().panels();
    for (const Stage* stage : window.rows().peer_stages()) all.insert(all.end(), stage->panels().begin(), stage->panels().end());
    return all;
  };
  const auto stands = [&] {
    const auto drawn = [](ViewPanel* panel) {
      panel->surface().grab();
      return !panel->isVisible() || (!panel->is_pending() && !panel->view().sheets().empty());
    };
    const auto settled = [&] {
      return lesson.lesson() && lesson.is_ready() && window.navigator().is_current() && std::ranges::all_of(panels(), drawn);
    };
    return QTest::qWaitFor(settled, long_enough_ms);
  };
  // Of each view its largest plot, or, where it has none, all of it.
  const auto areas = [&] {
    std::vector<float> all;
    for (ViewPanel* panel : panels()) {
      panel->surface().grab();
      float largest = 0;
      for (const HitRegions::ZoomPlot& plot : panel->hits().plots()) largest = std::max(largest, plot.rect.w * plot.rect.h);
      all.push_back(largest > 0 ? largest : static_cast<float>(panel->surface().width() * panel->surface().height()));
    }
    return all;
  };
  const auto compare = [&](const std::filesystem::path& file, std::size_t step, const QSize& size) {
    take(window, size, 1);
    REQUIRE(stands());
    const std::vector<float> before = areas();
    const bool all_shown = std::ranges::all_of(panels(), &QWidget::isVisible);
    window.toggle_presenter();
    take(window, size, 1);
    REQUIRE(stands());
    const std::vector<float> presented = areas();
    REQUIRE(presented.size() == before.size());
    // Where some were folded away, the others had their room.
    for (std::size_t i = 0; all_shown && i < before.size(); ++i) {
      INFO(file.filename().string() << ", step " << step + 1 << ", model " << i / lesson.picture().views.size() << ", "
                                    << panels()[i]->row().id);
      CHECK(presented[i] >= 0.95f * before[i]);  // the question above it may need one more line
    }
    window.toggle_presenter();
    take(window, size, 1);
  };
  for (const std::filesystem::path& file : shipped_lessons()) {
    window.open_lesson(file);
    REQUIRE(stands());
    std::set<std::string> seen;  // the same views have the same room
    for (std::size_t step = 0; step < lesson.lesson()->steps.size(); ++step) {
      std::string views = lesson.picture().beside;
      for (const ViewLook& look : lesson.picture().views) views += " " + std::string(look.view->id) + std::to_string(look.mode);
      if (seen.insert(views).second) {
        compare(file, step, sizes[0]);
        if (step == 0) compare(file, step, sizes[2]);
      }
      lesson.next();
      if (lesson.index() == step) lesson.next();
      REQUIRE(stands());
    }
  }
}

}  // namespace statescope::sizes_test

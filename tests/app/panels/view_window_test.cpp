// A view in a window of its own: it leaves the stage, follows the cursor and the keys, comes back, and is remembered.
#include "app/panels/view_window.h"

#include <QGuiApplication>
#include <QScreen>

#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

namespace statescope::view_window_test {
namespace {

std::vector<std::string> views_of(const MainWindow& window) { return window.stage().arrangement().views; }

}  // namespace

TEST_CASE("views apart: a key puts the view in a window of its own, with its keys, and back at the end of the stage") {
  TestWindow test;
  test.open();
  const std::vector<std::string> before = views_of(test.window);
  REQUIRE(before.size() > 1);
  ViewPanel& first = *test.window.stage().panels().front();
  first.set_view(*find_view("state"));
  first.set_mode(1);
  first.surface().setFocus();
  test.press(Qt::Key_X, Qt::ShiftModifier);
  REQUIRE(test.window.views_apart().size() == 1);
  ViewWindow& apart = *test.window.views_apart().front();
  CHECK(apart.isVisible());
  CHECK(apart.isWindow());
  CHECK(apart.windowTitle() == "State – Statescope");
  CHECK(apart.accessibleName() == "State");
  CHECK(apart.panel().row().id == "state");
  CHECK(apart.panel().view().mode() == 1);
  CHECK(views_of(test.window).size() == before.size() - 1);
  REQUIRE(&test.window.focused_panel() == &apart.panel());
  // Keys do there what they do here.
  REQUIRE(QTest::qWaitForWindowActive(&apart, long_enough_ms));
  const std::int64_t token = test.token();
  QTest::keyClick(&apart, Qt::Key_Right);
  CHECK(test.token() == token + 1);
  QTest::qWait(1);
  CHECK(apart.panel().view().describe().find("token " + std::to_string(token + 1)) != std::string::npos);
  if (QGuiApplication::screens().size() > 1) CHECK(apart.screen() != test.window.screen());
  QTest::keyClick(&apart, Qt::Key_X, Qt::ShiftModifier);
  CHECK(test.window.views_apart().empty());
  CHECK(views_of(test.window).size() == before.size());
  CHECK(views_of(test.window).back() == "state");
  CHECK(test.window.stage().panels().back()->view().mode() == 1);
  CHECK(&test.window.focused_panel() == test.window.stage().panels().back());
}

TEST_CASE("views apart: dragged by its question out of the window, a view gets a window of its own there; dragged onto it, it goes back") {
  TestWindow test;
  test.open();
  const std::size_t before = views_of(test.window).size();
  const auto drag = [](ViewPanel& panel, QPoint to) {
    QLabel* const question = panel.findChild<QLabel*>("question");
    const auto send = [&](QEvent::Type type, QPoint at, Qt::MouseButton button, Qt::MouseButtons buttons) {
      QMouseEvent event(type, question->mapFromGlobal(QPointF(at)), QPointF(at), button, buttons, {});
      QApplication::sendEvent(question, &event);
    };
    const QPoint from = question->mapToGlobal(QPoint(5, 5));
    send(QEvent::MouseButtonPress, from, Qt::LeftButton, Qt::LeftButton);
    send(QEvent::MouseMove, (from + to) / 2, Qt::NoButton, Qt::LeftButton);
    send(QEvent::MouseMove, to, Qt::NoButton, Qt::LeftButton);
    send(QEvent::MouseButtonRelease, to, Qt::LeftButton, Qt::NoButton);
  };
  ViewPanel& first = *test.window.stage().panels().front();
  const std::string_view id = first.row().id;
  drag(first, test.window.mapToGlobal(QPoint(700, 400)));
  CHECK(test.window.views_apart().empty());  // it was let go inside
  const QPoint outside = test.window.mapToGlobal(test.window.rect().bottomRight()) + QPoint(200, -300);
  drag(first, outside);
  REQUIRE(test.window.views_apart().size() == 1);
  ViewWindow& apart = *test.window.views_apart().front();
  CHECK(apart.panel().row().id == id);
  CHECK(apart.pos() == outside);
  CHECK(views_of(test.window).size() == before - 1);
  drag(apart.panel(), apart.mapToGlobal(QPoint(100, 300)));
  CHECK(test.window.views_apart().size() == 1);
  drag(apart.panel(), test.window.mapToGlobal(QPoint(700, 400)));
  CHECK(test.window.views_apart().empty());
  CHECK(views_of(test.window).back() == id);
}

TEST_CASE("views apart: a closed window gives its view back; the last view and the text stay where they are") {
  TestWindow test;
  test.open();
  test.press(Qt::Key_X, Qt::ShiftModifier);
  REQUIRE(test.window.views_apart().size() == 1);
  const std::size_t left = views_of(test.window).size();
  const std::string id(test.window.views_apart().front()->panel().row().id);
  test.window.views_apart().front()->close();
  CHECK(test.window.views_apart().empty());
  CHECK(views_of(test.window).size() == left + 1);
  CHECK(views_of(test.window).back() == id);
  while (test.window.stage().panels().size() > 1) test.window.stage().close_view();
  test.press(Qt::Key_X, Qt::ShiftModifier);
  CHECK(test.window.views_apart().empty());
  CHECK(test.window.said() == "The last view stays in this window");
  test.window.strip().surface().setFocus();
  test.press(Qt::Key_X, Qt::ShiftModifier);
  CHECK(test.window.said() == "Only a view of the stage can have a window of its own");
}

TEST_CASE("views apart: they are remembered with their way of looking, and come back with the program; presenting leaves them") {
  TestSettings kept;
  {
    TestWindow test(false, {1400, 900}, &kept.settings);
    test.open();
    ViewPanel& first = *test.window.stage().panels().front();
    first.set_view(*find_view("state"));
    first.set_mode(1);
    first.surface().setFocus();
    test.press(Qt::Key_X, Qt::ShiftModifier);
    REQUIRE(test.window.views_apart().size() == 1);
    test.window.toggle_presenter();
    CHECK(test.window.views_apart().front()->isVisible());
    CHECK(test.window.views_apart().front()->panel().row().id == "state");
    test.window.toggle_presenter();
    test.window.close();
    CHECK(test.window.views_apart().empty());
  }
  TestWindow again(false, {1400, 900}, &kept.settings);
  QTest::qWait(1);
  REQUIRE(again.window.views_apart().size() == 1);
  ViewWindow& apart = *again.window.views_apart().front();
  CHECK(apart.panel().row().id == "state");
  CHECK(apart.panel().view().mode() == 1);
  CHECK(apart.isVisible());
  again.open();
  CHECK(apart.panel().view().describe().find("token 0") != std::string::npos);
}

}  // namespace statescope::view_window_test

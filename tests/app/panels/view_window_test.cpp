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

// Where the window stands when it first opens, and when it comes back.
#include "app/window/window_place.h"

#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

namespace statescope::window_place_test {

TEST_CASE("a first window has its usual size where the screen has room for it and its frame, else all of the screen") {
  const QSize usual{1440, 900};
  const WindowPlace on_large = first_place({0, 0, 1920, 1080}, usual);
  CHECK(on_large.rect.size() == usual);
  CHECK_FALSE(on_large.maximised);
  CHECK(QRect(0, 0, 1920, 1080).contains(on_large.rect));
  for (const QRect& small : {QRect(0, 0, 1280, 720), QRect(0, 0, 800, 500), QRect(0, 0, 1440, 900), QRect(60, 30, 1400, 1000)}) {
    const WindowPlace place = first_place(small, usual);
    CHECK(place.rect == small);
    CHECK(place.maximised);
  }
}

TEST_CASE("a window on a small screen takes all of it, and never wants to be larger") {
  TestWindow test;
  test.open();
  for (const QSize& screen : {QSize(1280, 720), QSize(800, 500), QSize(426, 240)}) {
    test.window.take_place({{0, 0}, screen});
    QTest::qWait(1);
    CHECK(test.window.isMaximized());
    CHECK(test.window.minimumWidth() <= screen.width());
    CHECK(test.window.minimumHeight() <= screen.height());
  }
}

TEST_CASE("place, size and whether it is maximised come back, also from presenting") {
  TestSettings kept;
  const QRect screen(0, 0, 1920, 1080);
  const auto last_time = [&](const auto& what) {
    TestWindow test(false, {1200, 760}, &kept.settings);
    test.window.take_place(screen);
    what(test);
    test.window.close();
  };
  last_time([](TestWindow& test) { test.window.resize(700, 500); });
  last_time([](TestWindow& test) {
    CHECK(test.window.size() == QSize(700, 500));
    test.press(Qt::Key_F);
    CHECK(test.window.isFullScreen());
  });
  last_time([](TestWindow& test) {
    CHECK(test.window.size() == QSize(700, 500));
    CHECK_FALSE(test.window.isFullScreen());
    test.window.showMaximized();
    test.press(Qt::Key_F);
    test.press(Qt::Key_F);
    CHECK(test.window.isMaximized());
    CHECK_FALSE(test.window.isFullScreen());
    test.press(Qt::Key_F);
  });
  last_time([](TestWindow& test) {
    CHECK(test.window.isMaximized());
    CHECK_FALSE(test.window.isFullScreen());
  });
}

}  // namespace statescope::window_place_test

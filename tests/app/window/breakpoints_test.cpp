#include "app/runs/breakpoints.h"

#include <QCheckBox>
#include <QListWidget>
#include <QPushButton>

#include "app/pages/breakpoint_page.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

namespace statescope::breakpoints_test {
namespace {

using Kind = Breakpoint::Kind;

Breakpoint on(Kind kind, std::int64_t number = 0, std::string text = {}) {
  return {.kind = kind, .number = number, .text = std::move(text)};
}

constexpr float kept[] = {1, 0.9f, 0.7f, 0.45f, 0.45f, 0.55f, 0.4f};  // of the needle, after tokens 5 … 11

/// Tokens of the fake run where it stops.
std::vector<std::int64_t> stops(const Breakpoint& breakpoint, bool routed = true) {
  const auto run = fake_run(20);
  const auto snapshot = fake_snapshot(run, routed ? 0 : 2, 0, 0);
  std::vector<std::int64_t> result;
  for (std::int64_t t = 0; t < 20; ++t)
    if (stops_at(breakpoint, {.run = *run, .routing = snapshot->routing.get(), .kept_from = 5, .kept = kept}, t)) result.push_back(t);
  return result;
}

using Tokens = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("where breakpoints stop") {
  CHECK(stops(on(Kind::token, 7)) == Tokens{7});
  CHECK(stops(on(Kind::token, 70)).empty());
  CHECK(stops(on(Kind::needle)) == Tokens{3});
  CHECK(stops(on(Kind::question)) == Tokens{12});
  CHECK(stops(on(Kind::answer)).empty());
  CHECK(stops(on(Kind::partition, 3)) == Tokens{2, 6, 10, 14, 18});  // partition n takes token n − 1 and every fourth after it
  CHECK(stops(on(Kind::partition, 3), false).empty());
  CHECK(stops(on(Kind::partition, 5)).empty());
  CHECK(stops(on(Kind::partition, 0)).empty());
  CHECK(stops(on(Kind::text, 0, "Anna")) == Tokens{3, 14, 19});
  CHECK(stops(on(Kind::text, 0, "anna is 41")) == Tokens{3});  // the run ends with token 19, an anna
  CHECK(stops(on(Kind::text, 0, "mill.")) == Tokens{9});       // white space does not matter
  CHECK(stops(on(Kind::text, 0, " ")).empty());
  CHECK(stops(on(Kind::survival, 50)) == Tokens{8, 11});
  CHECK(stops(on(Kind::survival, 100)) == Tokens{6});
  CHECK(stops(on(Kind::survival, 10)).empty());
  CHECK(words_of(on(Kind::partition, 3)) == "partition 3 is chosen");
}

TEST_CASE("the next stop is the nearest mark or enabled breakpoint, either way") {
  const auto run = fake_run(20);
  std::vector<Breakpoint> some = {on(Kind::token, 5), on(Kind::text, 0, "mill")};
  CHECK(next_stop(some, {.run = *run}, 0, 1) == 3);
  CHECK(next_stop(some, {.run = *run}, 3, 1) == 5);
  CHECK(next_stop(some, {.run = *run}, 12, -1) == 9);
  some[0].enabled = false;
  CHECK(next_stop(some, {.run = *run}, 3, 1) == 9);
  CHECK_FALSE(next_stop(some, {.run = *run}, 12, 1));
  CHECK_FALSE(next_stop(some, {.run = *run}, 19, 1));
  CHECK_FALSE(next_stop({}, {.run = *run}, 0, -1));
}

TEST_CASE("B sets and removes a breakpoint at the token; playing and Ctrl+Right stop there and say why") {
  TestWindow test;
  test.open();
  test.window.go_to_token(7);
  test.press(Qt::Key_B);
  REQUIRE(test.window.playback().breakpoints().size() == 1);
  CHECK(test.window.said() == "Breakpoint at token 7");
  test.window.go_to_token(4);
  test.press(Qt::Key_Right, Qt::ControlModifier);
  CHECK(test.token() == 7);
  CHECK(test.window.said().contains("token 7"));
  test.window.go_to_token(4);
  test.navigator().set_speed(16);
  float least = 1;  // at the stop, nothing moves
  const auto watch = [&] { least = test.token() == 7 ? std::min(least, test.navigator().cursor().progress) : least; };
  QObject context;
  QObject::connect(&test.navigator(), &Navigator::snapshot_changed, &context, watch);
  QObject::connect(&test.navigator(), &Navigator::motion_changed, &context, watch);
  test.press(Qt::Key_Space);
  REQUIRE(QTest::qWaitFor([&] { return !test.navigator().is_playing(); }, long_enough_ms));
  CHECK(test.token() == 7);
  CHECK(least == 1.0f);
  CHECK(test.navigator().cursor().progress == 1.0f);
  CHECK(test.window.said().startsWith("Stopped at token 7"));
  test.press(Qt::Key_B);
  CHECK(test.window.playback().breakpoints().empty());
}

TEST_CASE("playing stops where a partition is chosen; switched off it does not") {
  TestWindow test;
  test.open(16);
  test.window.playback().add(on(Kind::partition, 3));
  test.navigator().set_speed(16);
  test.press(Qt::Key_Space);
  REQUIRE(QTest::qWaitFor([&] { return !test.navigator().is_playing(); }, long_enough_ms));
  CHECK(test.token() == 2);
  CHECK(test.window.said() == "Stopped at token 2: partition 3 is chosen");
  test.press(Qt::Key_Space);  // goes on to the next
  REQUIRE(QTest::qWaitFor([&] { return !test.navigator().is_playing(); }, long_enough_ms));
  CHECK(test.token() == 6);
  test.window.playback().enable(0, false);
  test.press(Qt::Key_Space);
  REQUIRE(QTest::qWaitFor([&] { return !test.navigator().is_playing(); }, long_enough_ms));
  CHECK(test.token() == 15);
}

TEST_CASE("playing stops where less than half of the needle is left, once that is known") {
  TestWindow test;
  test.open(20);
  CHECK_FALSE(test.source.asked.contains(0));  // nobody wants to know
  test.window.playback().add(on(Kind::survival, 50));
  REQUIRE(test.source.asked.contains(0));
  const auto& asked = test.source.asked[0];
  REQUIRE(asked.questions.size() == 1);
  NeedleStory story;
  story.all.kept.assign(std::begin(kept), std::end(kept));
  asked.tell(asked.questions[0], {.answer = std::make_shared<const NeedleStory>(story), .refused = {}, .progress = 1});
  test.navigator().set_speed(16);
  test.press(Qt::Key_Space);
  REQUIRE(QTest::qWaitFor([&] { return !test.navigator().is_playing(); }, long_enough_ms));
  CHECK(test.token() == 8);  // the needle ends before token 6
  CHECK(test.window.said() == "Stopped at token 8: less than 50 % is left of the needle");
}

TEST_CASE("breakpoints as a list: add, switch off, remove, by keyboard") {
  TestWindow test;
  test.open();
  test.press(Qt::Key_B, Qt::ControlModifier);
  REQUIRE(test.window.side().page() == SidePage::breakpoints);
  auto* page = test.window.side().findChild<BreakpointPage*>();
  CHECK(page->findChild<QComboBox*>()->hasFocus());
  page->findChild<QLineEdit*>()->setFocus();
  TestWindow::type("3");
  TestWindow::type_key(Qt::Key_Return);
  REQUIRE(test.window.playback().breakpoints().size() == 1);
  CHECK(test.window.playback().breakpoints()[0] == on(Kind::partition, 3));
  CHECK(test.navigator().cursor().slot == 0);  // 3 was typed, not pressed
  QTest::qWait(1);
  auto* list = page->findChild<QListWidget*>();
  list->setFocus();
  TestWindow::type_key(Qt::Key_Space);
  CHECK_FALSE(test.window.playback().breakpoints()[0].enabled);
  CHECK_FALSE(test.navigator().is_playing());
  QTest::qWait(1);
  TestWindow::type_key(Qt::Key_Delete);
  CHECK(QTest::qWaitFor([&] { return test.window.playback().breakpoints().empty(); }, long_enough_ms));
}

TEST_CASE("a range is looped, also up to the end of the run") {
  TestWindow test;
  test.open(8);
  test.navigator().set_speed(16);
  const auto rounds = [&](std::int64_t first, std::int64_t last) {
    int back = 0;
    std::int64_t before = test.token(), least = before, most = before;
    const auto watch = QObject::connect(&test.navigator(), &Navigator::snapshot_changed, [&] {
      back += test.token() < before;
      before = test.token();
      least = std::min(least, before);
      most = std::max(most, before);
    });
    test.press(Qt::Key_Space);
    CHECK(QTest::qWaitFor([&] { return back >= 2 && test.navigator().is_playing(); }, long_enough_ms));
    QObject::disconnect(watch);
    CHECK(least == first);
    CHECK(most == last);
    test.press(Qt::Key_Space);
    QTest::qWait(100);
    CHECK_FALSE(test.navigator().is_playing());
  };
  test.window.go_to_token(4);
  test.press(Qt::Key_O, Qt::ShiftModifier);
  test.window.go_to_token(2);
  test.press(Qt::Key_I, Qt::ShiftModifier);
  CHECK(test.window.said() == "Playing loops over tokens 2 to 4");
  CHECK(test.window.action("loop")->isChecked());
  rounds(2, 4);
  test.press(Qt::Key_R);
  CHECK_FALSE(test.window.playback().loop());
  test.window.go_to_token(5);
  test.press(Qt::Key_I, Qt::ShiftModifier);
  rounds(5, 7);
}

}  // namespace statescope::breakpoints_test

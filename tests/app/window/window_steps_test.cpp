// From token to token, by step, played or while the run grows: which picture and which numbers stand there meanwhile.
#include <QAbstractItemView>
#include <QLabel>
#include <QSignalSpy>
#include <algorithm>

#include "tests/app/window/window_cases.h"
#include "tests/catch.h"
#include "views/parts.h"

namespace statescope::window_steps_test {
namespace {

/// Whether the picture in focus says that it is of another place.
bool is_pale(TestWindow& test) {
  const auto labels = test.window.stage().focused_panel().findChildren<QLabel*>("pending");
  return std::ranges::any_of(labels, [](const QLabel* label) { return !label->text().isEmpty(); });
}

}  // namespace

TEST_CASE("only the snapshot of the wanted place is shown") {
  TestWindow test;
  test.open();
  test.source.at_once = false;
  const auto shown = test.navigator().snapshot();
  test.press(Qt::Key_Right);
  test.press(Qt::Key_Right);
  REQUIRE(test.source.requests.size() == 2);
  CHECK(test.token() == 2);  // the cursor moves at once
  CHECK(test.window.strip().view().describe().find("Token 2") != std::string::npos);
  CHECK_FALSE(test.navigator().is_current());
  CHECK(test.navigator().snapshot() == shown);  // the old picture stays
  CHECK(test.window.stage().panels().back()->is_pending());
  CHECK(value_of(test.window.side(), "Now") == QString::fromUtf8("–"));  // but no old number as today's

  test.source.answer(test.source.requests[0]);  // token 1: too late
  CHECK(test.navigator().snapshot() == shown);
  test.source.answer(test.source.requests[1]);
  CHECK(test.navigator().is_current());
  CHECK(test.navigator().snapshot()->token == 2);
}

TEST_CASE("answers of an earlier run are dropped") {
  TestWindow test;
  test.open();
  test.source.at_once = false;
  test.press(Qt::Key_Right);
  const FakeSource::Request old = test.source.requests.front();
  const auto old_run = test.source.run;
  test.source.at_once = true;
  test.open(32);
  const auto shown = test.navigator().snapshot();
  CHECK(shown->run == test.source.run);
  test.navigator().step(1);
  old.done(fake_snapshot(old_run, 0, 0, 1));
  CHECK(test.navigator().snapshot()->run == test.source.run);
}

TEST_CASE("while a run grows the table waits, and is right once it stands") {
  TestWindow test;
  test.open(16);
  Q_EMIT test.window.strip().focused();
  const QAbstractItemModel& model = *values_table(test).model();
  test.navigator().generate_more(3);
  test.source.grow(fake_run(17));
  test.source.grow(fake_run(18));
  CHECK(model.rowCount() == 16);
  test.source.stand(fake_run(19));
  CHECK(model.rowCount() == 19);
}

TEST_CASE("playing moves only progress between snapshots and stops at the end") {
  TestWindow test;
  test.open(4);
  test.navigator().set_speed(16);
  QSignalSpy motion(&test.navigator(), &Navigator::motion_changed);
  test.press(Qt::Key_Space);
  CHECK(test.navigator().is_playing());
  CHECK(QTest::qWaitFor([&] { return !test.navigator().is_playing(); }, long_enough_ms));
  CHECK(test.token() == 3);
  CHECK(test.navigator().cursor().progress == 1.0f);
  CHECK(motion.count() >= 3);
  test.navigator().set_reduce_motion(true);
  motion.clear();
  test.press(Qt::Key_Space);  // from the beginning again
  CHECK(QTest::qWaitFor([&] { return !test.navigator().is_playing(); }, long_enough_ms));
  CHECK(test.token() == 3);
  CHECK(motion.count() == 0);
}

TEST_CASE("a played step that takes its time does not pale the picture at once, one that was asked for does") {
  TestWindow test;
  test.open();
  test.source.at_once = false;
  test.navigator().set_speed(1000);
  test.navigator().play();
  REQUIRE(QTest::qWaitFor([&] { return test.token() == 1; }, long_enough_ms));
  QTest::qWait(400);
  CHECK_FALSE(is_pale(test));
  test.navigator().pause();
  test.navigator().step(1);
  CHECK(QTest::qWaitFor([&] { return is_pale(test); }, long_enough_ms));
}

TEST_CASE("a picture stays as it is while its run grows, and pales where another run has come") {
  TestWindow test;
  test.window.open_checkpoint("fake.h5", {});
  test.source.grow(fake_run(16));
  CHECK(test.navigator().is_current());
  test.source.at_once = false;
  test.source.grow(fake_run(32));
  CHECK_FALSE(test.navigator().is_current());
  QTest::qWait(400);
  CHECK_FALSE(is_pale(test));
  test.window.open_checkpoint("other.h5", {});
  test.source.grow(fake_run(16, "other"));
  CHECK(QTest::qWaitFor([&] { return is_pale(test); }, long_enough_ms));
}

TEST_CASE("while a played step moves, the inspector keeps the numbers of the token before") {
  QString moving, arrived;
  TestWindow test;
  test.open();
  test.navigator().move({.token = {}, .layer = {}, .head = {}, .slot = {}, .row = 3, .column = 4});
  QObject::connect(&test.navigator(), &Navigator::snapshot_changed, [&] { moving = value_of(test.window.side(), "Now"); });
  QObject::connect(&test.navigator(), &Navigator::motion_changed, [&] {
    if (test.navigator().cursor().progress < 1) return;
    arrived = value_of(test.window.side(), "Now");
    test.navigator().pause();
  });
  test.press(Qt::Key_Space);
  REQUIRE(QTest::qWaitFor([&] { return !arrived.isEmpty(); }, long_enough_ms));
  REQUIRE(test.token() == 1);
  CHECK(moving == QString::fromStdString(number(fake_cell(0, 0, 0, 0, 3, 4), 9)));
  CHECK(arrived == QString::fromStdString(number(fake_cell(0, 1, 0, 0, 3, 4), 9)));
}

TEST_CASE("a key takes over from a play that began by itself") {
  TestWindow test;
  test.navigator().set_autoplay(true);
  test.open(64);
  REQUIRE(QTest::qWaitFor([&] { return test.navigator().is_autoplaying(); }, long_enough_ms));
  test.press(Qt::Key_BracketRight);
  CHECK_FALSE(test.navigator().is_playing());
  test.press(Qt::Key_Space);  // asked for: a change of head leaves it alone
  test.press(Qt::Key_BracketLeft);
  CHECK(test.navigator().is_playing());
  test.press(Qt::Key_Left);
  CHECK_FALSE(test.navigator().is_playing());
}

}  // namespace statescope::window_steps_test

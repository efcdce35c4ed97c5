#include "app/window/places.h"

#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

namespace statescope::places_test {
namespace {

Cursor at(std::int64_t token, std::int64_t layer = 0) { return {.token = token, .layer = layer}; }

}  // namespace

TEST_CASE("places: back and forth, and a new move ends what was ahead") {
  Places places;
  CHECK_FALSE(places.back());
  places.arrive(at(0), 0, false);
  places.arrive(at(7), 10000, false);
  places.arrive(at(7, 2), 20000, false);
  CHECK_FALSE(places.forth());
  CHECK(places.back()->layer == 0);
  CHECK(places.back()->token == 0);
  CHECK_FALSE(places.back());
  CHECK(places.forth()->token == 7);
  places.arrive(at(7), 20100, false);  // the window has gone there
  places.arrive(at(9), 20200, false);
  CHECK_FALSE(places.forth());
  CHECK(places.back()->token == 7);
  CHECK(places.back()->token == 0);
}

TEST_CASE("places: a scrub and a play are one move each; the cell is no place of its own") {
  Places places;
  places.arrive(at(0), 0, false);
  for (int i = 1; i <= 50; ++i) places.arrive(at(i), 5000 + i * 20, false);
  for (int i = 51; i <= 60; ++i) places.arrive(at(i), 10000 + i * 700, true);
  Cursor cell = at(60);
  cell.row = 3;
  places.arrive(cell, 90000, false);
  places.arrive(at(2), 100000, false);
  CHECK(places.back()->row == 3);
  CHECK(places.back()->token == 50);
  CHECK(places.back()->token == 0);
}

TEST_CASE("Z goes back to the place before, Shift+Z forth again") {
  TestWindow test;
  test.open();
  test.press(Qt::Key_End);
  QTest::qWait(650);
  test.press(Qt::Key_Up);
  QTest::qWait(650);
  test.press(Qt::Key_Right, Qt::ControlModifier);  // nothing ahead
  test.press(Qt::Key_Home);
  const Cursor& cursor = test.navigator().cursor();
  test.press(Qt::Key_Z);
  CHECK(cursor.token == 63);
  CHECK(cursor.layer == 1);
  test.press(Qt::Key_Z);
  CHECK(cursor.layer == 0);
  test.press(Qt::Key_Z);
  CHECK(cursor.token == 0);
  test.press(Qt::Key_Z);
  CHECK(cursor.token == 0);
  test.press(Qt::Key_Z, Qt::ShiftModifier);
  test.press(Qt::Key_Z, Qt::ShiftModifier);
  CHECK(cursor.layer == 1);
  CHECK(test.navigator().is_current());
}

}  // namespace statescope::places_test

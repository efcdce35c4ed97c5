// What the window shows of a run, and what is pointed at and clicked in it.
#include <QAbstractItemView>
#include <QToolTip>
#include <optional>

#include "app/cli/commands.h"
#include "app/panels/header.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"
#include "views/chosen.h"
#include "views/parts.h"

namespace statescope::window_test {
namespace {

CursorMove to_token(std::int64_t token) { return {.token = token, .layer = {}, .head = {}, .slot = {}, .row = {}, .column = {}}; }

}  // namespace

TEST_CASE("a run opens at its first token, and its model stands in the header") {
  TestWindow test;
  test.open(64);
  CHECK(test.source.opened == "fake.h5");
  CHECK(test.token() == 0);
  CHECK(test.navigator().is_current());
  CHECK(test.window.windowTitle().contains("fake"));
  QString header;
  for (const QLabel* label : test.window.findChild<Header*>()->findChildren<QLabel*>()) header += label->text() + " ";
  for (const char* part : {"fake", "sse_gla", "3 layers", "1.2 M parameters", "CPU, 2 threads"}) CHECK(header.contains(part));
}

TEST_CASE("the inspector tells the chosen cell exactly") {
  TestWindow test;
  test.open();
  test.navigator().move({.token = 5, .layer = {}, .head = 1, .slot = 2, .row = 3, .column = 4});
  const float before = fake_cell(0, 4, 2, 1, 3, 4), now = fake_cell(0, 5, 2, 1, 3, 4);
  REQUIRE(before != now);  // token 5 writes to partition 2
  CHECK(value_of(test.window.side(), "Before") == QString::fromStdString(number(before, 9)));
  CHECK(value_of(test.window.side(), "Now") == QString::fromStdString(number(now, 9)));
  CHECK(value_of(test.window.side(), "Difference").endsWith(QString::fromStdString(number(now - before, 9))));
  test.navigator().move({.token = {}, .layer = 2, .head = {}, .slot = {}, .row = {}, .column = {}});
  CHECK(value_of(test.window.side(), "Now") == QString::fromUtf8("–"));
}

TEST_CASE("on a layer of softmax attention a head is chosen, with keys and in the inspector") {
  TestWindow test;
  test.open();
  test.navigator().move({.token = {}, .layer = 2, .head = 1, .slot = {}, .row = {}, .column = {}});
  const Cursor& cursor = test.navigator().cursor();
  CHECK(cursor.head == 1);
  test.press(Qt::Key_BracketRight);
  test.press(Qt::Key_BracketRight);
  CHECK(cursor.head == 2);
  for (const QComboBox* picker : test.window.side().findChildren<QComboBox*>())
    if (picker->accessibleName() == "Head") CHECK((picker->isEnabled() && picker->count() == 3 && picker->currentIndex() == 2));
  test.navigator().move({.token = {}, .layer = 0, .head = {}, .slot = {}, .row = {}, .column = {}});
  CHECK(cursor.head == 1);
}

TEST_CASE("the table repeats the view in focus") {
  TestWindow test;
  test.open();
  const QAbstractItemModel& model = *values_table(test).model();
  CHECK(model.rowCount() == 24 + 5);  // rows of the state, and the slots as a whole  // the state's rows, and one column for their names
  CHECK(model.columnCount() == 1 + 32 + 2);
  test.navigator().move(to_token(9));
  CHECK(model.index(2, 5).data().toString().toStdString() == value_text(fake_cell(0, 9, 0, 0, 2, 4)));
  Q_EMIT test.window.strip().focused();
  CHECK(model.rowCount() == 64);
}

TEST_CASE("a click on a token goes there, the pointer over a cell chooses it") {
  TestWindow test;
  test.open();
  ViewPanel& strip = test.window.strip();
  QWidget& text = strip.surface();
  text.repaint();
  std::optional<QPoint> place;
  for (int x = 0; x < text.width() && !place; ++x)
    if (strip.hits().at({static_cast<float>(x), 14}) == Hit(0, 7)) place = QPoint(x + 2, 14);
  REQUIRE(place);
  QTest::mouseClick(&text, Qt::LeftButton, {}, *place);
  CHECK(test.token() == 7);

  ViewPanel& state = *test.window.stage().panels().back();
  state.surface().repaint();
  const QPointF place_of_cell(0.15 * state.surface().width(), 0.25 * state.surface().height());
  const auto id = state.hits().at({static_cast<float>(place_of_cell.x()), static_cast<float>(place_of_cell.y())});
  REQUIRE(id);
  QTest::mouseMove(&state.surface(), place_of_cell.toPoint());
  REQUIRE(QTest::qWaitFor([] { return QToolTip::isVisible(); }, long_enough_ms));
  CHECK(test.navigator().cursor().row == state.view().on_hit(*id).row);
  CHECK(test.navigator().cursor().column == state.view().on_hit(*id).column);
  test.press(Qt::Key_Right);  // its numbers are no longer those under the pointer
  CHECK(QTest::qWaitFor([] { return !QToolTip::isVisible(); }, long_enough_ms));
}

TEST_CASE("D compares with this token, says so, and takes it back") {
  TestWindow test;
  test.open();
  test.navigator().move({.token = 7});
  test.press(Qt::Key_D);
  CHECK(test.navigator().cursor().reference == 7);
  CHECK(test.window.said().startsWith("Compared with token 7"));
  const View& state = test.window.stage().panels()[1]->view();
  CHECK(state.modes()[state.mode()] == "Difference");
  test.press(Qt::Key_D);
  CHECK(test.navigator().cursor().reference == -1);
  CHECK(test.window.said() == "Compared with no token");
  CHECK(state.mode() == 0);
  test.press(Qt::Key_D);
  test.press(Qt::Key_Right);
  test.press(Qt::Key_Escape);
  CHECK(test.navigator().cursor().reference == -1);
  CHECK(state.mode() == 0);
}

TEST_CASE("a click on the words over a state, or on the bar beside a row, chooses all of it; the pointer over them does not") {
  TestWindow test;
  test.open();
  ViewPanel& state = *test.window.stage().panels().back();
  REQUIRE(state.row().id == "state");
  const Cursor& cursor = test.navigator().cursor();
  const auto place_of = [&](auto wanted) {
    state.surface().repaint();
    for (int y = 0; y < state.surface().height(); y += 2)
      for (int x = 0; x < state.surface().width(); x += 2)
        if (const auto id = state.hits().at({static_cast<float>(x), static_cast<float>(y)}); id && wanted(state.view().on_hit(*id)))
          return QPoint(x, y);
    return QPoint(-1, -1);
  };
  const QPoint whole = place_of([](const CursorMove& move) { return move.row == kAllRows; });
  const QPoint bar = place_of([](const CursorMove& move) { return move.row.value_or(-1) > 0 && move.column == -1; });
  REQUIRE((whole.x() >= 0 && bar.x() >= 0));
  test.navigator().point_at(1, 1);
  for (const QPoint& at : {whole, bar}) {
    QTest::mouseMove(&state.surface(), at);
    QTest::qWait(1);
    CHECK((cursor.row == 1 && cursor.column == 1));
  }
  QTest::mouseClick(&state.surface(), Qt::LeftButton, {}, whole);
  CHECK((cursor.row == kAllRows && cursor.column == -1));
  QTest::mouseClick(&state.surface(), Qt::LeftButton, {}, bar);
  CHECK((cursor.row > 0 && cursor.column == -1));
}

}  // namespace statescope::window_test

#include <QAbstractItemView>
#include <QAccessible>
#include <QCheckBox>
#include <QComboBox>
#include <QDropEvent>
#include <QMenuBar>
#include <QMimeData>
#include <QPushButton>
#include <QSignalSpy>
#include <QStatusBar>
#include <QToolTip>
#include <fstream>

#include "app/cli/commands.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"
#include "views/chosen.h"
#include "views/parts.h"

namespace statescope::window_test {
namespace {

QString value_of(const Side& side, const char* name) {
  for (const QLabel* label : side.findChildren<QLabel*>())
    if (label->accessibleName() == name) return label->text();
  return {};
}

QTableView& values_table(TestWindow& test) {
  for (QTableView* table : test.window.findChildren<QTableView*>())
    if (table->accessibleName() == "Values of the view in focus") return *table;
  throw std::logic_error("no table");
}

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

TEST_CASE("the table repeats the view in focus") {
  TestWindow test;
  test.open();
  const QAbstractItemModel& model = *values_table(test).model();
  CHECK(model.rowCount() == 24);  // the state's rows, and one column for their names
  CHECK(model.columnCount() == 33);
  test.navigator().move(to_token(9));
  CHECK(model.index(2, 5).data().toString().toStdString() == number(fake_cell(0, 9, 0, 0, 2, 4), 9));
  Q_EMIT test.window.strip().focused();
  CHECK(model.rowCount() == 64);
}

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

TEST_CASE("a longer run keeps the place, another prompt begins anew") {
  TestWindow test;
  test.open(16);
  test.press(Qt::Key_End);
  test.navigator().generate_more(4);
  CHECK(test.source.generated == 20);
  test.source.stand(fake_run(20));
  CHECK(test.token() == 15);
  CHECK(test.navigator().tokens() == 20);
  test.navigator().read({});
  test.source.stand(fake_run(8));
  CHECK(test.token() == 0);
}

TEST_CASE("generation under way can be cancelled, and the cursor stays where it is") {
  TestWindow test;
  test.open(16);
  test.press(Qt::Key_End);
  QSignalSpy ended(&test.navigator(), &Navigator::opening_ended);
  test.navigator().generate_more(8);
  test.source.opening.progress(0.3, "generating");
  CHECK(test.window.findChild<QProgressBar*>()->isVisible());
  test.source.grow(fake_run(20));
  CHECK(test.token() == 15);
  CHECK(test.navigator().tokens() == 20);
  CHECK(test.navigator().is_current());
  CHECK(test.navigator().is_opening());
  CHECK(ended.count() == 0);
  test.press(Qt::Key_Escape);
  CHECK(test.source.cancelled == 1);
  test.source.opening.failed(Cancelled());
  CHECK(ended.count() == 1);
  CHECK_FALSE(test.navigator().is_opening());
  CHECK_FALSE(test.window.findChild<QProgressBar*>()->isVisible());
}

TEST_CASE("what failed does not come back with the next command") {
  TestWindow test;
  test.window.open_checkpoint("fake.h5", {.text = "the grass", .spans = {}, .ids = {}, .expected = {}, .generate = {}});
  test.source.stand(fake_run(16));
  test.navigator().read({.text = "xyzzy", .spans = {}, .ids = {}, .expected = {}, .generate = {}});
  test.source.opening.failed(Error("no"));
  CHECK(test.navigator().prompt().text == "the grass");
  test.navigator().generate_more(4);
  CHECK(test.navigator().prompt().text == "the grass");
  test.source.stand(fake_run(20));

  test.window.open_checkpoint("other.h5", test.navigator().prompt());
  CHECK(test.source.opened == "other.h5");
  CHECK(test.source.read_prompt.text == "the grass");
  test.source.opening.failed(UnknownWordError("text: word \"the\" (number 1, byte 0) is not among the 52 words of this model"));
  CHECK(test.window.error_bar().message().startsWith("other.h5 does not know every word"));
  test.source.opened.clear();
  test.navigator().generate_more(4);
  CHECK(test.source.opened.empty());
  CHECK(test.navigator().prompt().text == "the grass");
  test.source.stand(fake_run(20));
  CHECK(test.window.error_bar().isVisible());  // more of the old run is no answer to it
  test.navigator().read({.text = "k1 v1", .spans = {}, .ids = {}, .expected = {}, .generate = {}});
  CHECK(test.source.opened == "other.h5");
  CHECK(test.source.read_prompt.text == "k1 v1");
  test.source.opened.clear();
  test.source.stand(fake_run(8));
  test.navigator().read({.text = "k2", .spans = {}, .ids = {}, .expected = {}, .generate = {}});
  CHECK(test.source.opened.empty());
}

const char* const kOtherWords = "text: word \"the\" (number 1, byte 0) is not among the 52 words of this model";

TEST_CASE("a refused checkpoint waits for a prompt only as long as the window says so") {
  TestWindow test;
  test.open();
  const auto refuse = [&] {
    test.window.open_checkpoint("other.h5", {.text = "the grass", .spans = {}, .ids = {}, .expected = {}, .generate = {}});
    test.source.opening.failed(UnknownWordError(kOtherWords));
    CHECK(test.window.error_bar().message().contains("close this message to stay with fake"));
    test.source.opened.clear();
  };
  const auto stays = [&] {
    test.navigator().read({.text = "k1 v1", .spans = {}, .ids = {}, .expected = {}, .generate = {}});
    test.source.stand(fake_run(8));
    return test.source.opened.empty();
  };
  refuse();
  test.press(Qt::Key_Escape);
  CHECK_FALSE(test.window.error_bar().isVisible());
  CHECK(stays());
  refuse();
  test.window.error_bar().findChild<QToolButton*>()->click();
  CHECK(stays());
  refuse();
  test.window.open_path("nowhere/prompt.json");  // another message stands there
  CHECK(stays());
  refuse();
  CHECK_FALSE(stays());
}

TEST_CASE("a dropped checkpoint that does not know the prompt's words reads an example of its own, and says so") {
  TestWindow test;
  test.window.open_checkpoint("fake.h5", {.text = "The sea is calm.", .spans = {}, .ids = {}, .expected = {}, .generate = {}});
  test.source.stand(fake_run(8));
  test.window.open_path("other.h5");
  CHECK(test.source.read_prompt.text == "The sea is calm.");
  test.source.opening.failed(UnknownWordError(kOtherWords));
  CHECK(test.navigator().is_opening());
  CHECK(test.source.opened == "other.h5");
  CHECK(test.source.read_prompt.text == first_prompt({}, "other.h5").text);
  CHECK(test.window.said().startsWith("other does not know every word"));
  CHECK_FALSE(test.window.error_bar().isVisible());
  test.source.opening.failed(UnknownWordError(kOtherWords));  // nor that example's
  CHECK(test.window.error_bar().message().startsWith("other.h5 does not know every word"));
  CHECK_FALSE(test.navigator().is_opening());
}

TEST_CASE("every key in an open list is the list's: Esc closes it alone") {
  TestWindow test;
  test.open();
  for (const SidePage page : {SidePage::prompt, SidePage::interventions, SidePage::breakpoints, SidePage::figure}) {
    test.window.show_page(page);
    QTest::qWait(1);
    for (QComboBox* box : test.window.side().currentWidget()->findChildren<QComboBox*>()) {
      if (!box->isVisible()) continue;
      box->setFocus();
      box->showPopup();
      REQUIRE(QApplication::activePopupWidget());
      QTest::keyClick(box->view(), Qt::Key_D);
      CHECK(test.navigator().cursor().reference == -1);
      QTest::keyClick(box->view(), Qt::Key_Escape);
      CHECK_FALSE(box->view()->isVisible());
      CHECK(test.window.side().page() == page);
      test.window.activateWindow();
    }
    test.press(Qt::Key_Escape);
    CHECK(test.window.side().page() == SidePage::inspector);
  }
}

TEST_CASE("a prompt read again keeps its spans unless its text was changed") {
  TestWindow test;
  test.window.open_checkpoint("fake.h5",
                              {.text = "the grass", .spans = {{SpanKind::needle, 4, 9}}, .ids = {}, .expected = "was", .generate = {}});
  test.source.stand(fake_run(16));
  test.window.show_page(SidePage::prompt);
  auto* text = test.window.side().findChild<QPlainTextEdit*>();
  const auto buttons = test.window.side().findChildren<QPushButton*>();
  QPushButton* read = *std::ranges::find(buttons, "Read it", &QPushButton::text);
  read->click();
  CHECK(test.source.read_prompt.expected == "was");
  CHECK(test.source.read_prompt.spans.size() == 1);
  CHECK(test.source.read_prompt.generate == 0);
  test.source.stand(fake_run(16));
  QTest::keyClicks(text, "x");  // in the place of the text of before
  read->click();
  CHECK(test.source.read_prompt.text == "x");
  CHECK(test.source.read_prompt.expected.empty());
  CHECK(test.source.read_prompt.spans.empty());
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
  const auto says_so = [&] {
    const auto labels = test.window.stage().focused_panel().findChildren<QLabel*>("pending");
    return std::ranges::any_of(labels, [](const QLabel* label) { return !label->text().isEmpty(); });
  };
  test.source.at_once = false;
  test.navigator().set_speed(1000);
  test.navigator().play();
  REQUIRE(QTest::qWaitFor([&] { return test.token() == 1; }, long_enough_ms));
  QTest::qWait(400);
  CHECK_FALSE(says_so());
  test.navigator().pause();
  test.navigator().step(1);
  CHECK(QTest::qWaitFor(says_so, long_enough_ms));
}

TEST_CASE("a picture stays as it is while its run grows, and pales where another run has come") {
  TestWindow test;
  test.window.open_checkpoint("fake.h5", {});
  const auto says_so = [&] {
    const auto labels = test.window.stage().focused_panel().findChildren<QLabel*>("pending");
    return std::ranges::any_of(labels, [](const QLabel* label) { return !label->text().isEmpty(); });
  };
  test.source.grow(fake_run(16));
  CHECK(test.navigator().is_current());
  test.source.at_once = false;
  test.source.grow(fake_run(32));
  CHECK_FALSE(test.navigator().is_current());
  QTest::qWait(400);
  CHECK_FALSE(says_so());
  test.window.open_checkpoint("other.h5", {});
  test.source.grow(fake_run(16, "other"));
  CHECK(QTest::qWaitFor(says_so, long_enough_ms));
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

TEST_CASE("errors stand in the window until something works") {
  TestWindow test;
  test.window.open_checkpoint("missing.h5", {});
  test.source.opening.failed(Error("missing.h5: no such file"));
  CHECK(test.window.error_bar().isVisible());
  CHECK(test.window.error_bar().message() == "missing.h5: no such file");
  test.window.error_bar().findChild<QToolButton*>()->click();
  CHECK_FALSE(test.window.error_bar().isVisible());

  test.window.open_path("nowhere/prompt.json");
  CHECK(test.window.error_bar().isVisible());
  test.open();
  CHECK_FALSE(test.window.error_bar().isVisible());
}

TEST_CASE("escape cancels an opening, which is no error") {
  TestWindow test;
  test.window.open_checkpoint("big.h5", {});
  test.source.opening.progress(0.3, "reading weights");
  test.press(Qt::Key_Escape);
  CHECK(test.source.cancelled == 1);
  test.source.opening.failed(Cancelled());
  CHECK_FALSE(test.window.error_bar().isVisible());
  CHECK_FALSE(test.navigator().is_opening());
}

TEST_CASE("a file dropped on the window opens") {
  TestWindow test;
  QMimeData files;
  files.setUrls({QUrl::fromLocalFile("/models/dropped.h5")});
  QDragEnterEvent enter({10, 10}, Qt::CopyAction, &files, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&test.window, &enter);
  CHECK(enter.isAccepted());
  const auto* mark = test.window.findChild<QWidget*>("dropping");
  CHECK(mark->isVisible());
  CHECK(mark->size() == test.window.centralWidget()->size());
  CHECK_FALSE(test.window.said().isEmpty());
  QDropEvent drop({10, 10}, Qt::CopyAction, &files, Qt::LeftButton, Qt::NoModifier);
  drop.ignore();
  QApplication::sendEvent(&test.window, &drop);
  CHECK(drop.isAccepted());
  CHECK(test.source.opened == "/models/dropped.h5");
  CHECK_FALSE(mark->isVisible());
}

TEST_CASE("a text dropped on the window is read as a prompt; an address is not taken") {
  TestWindow test;
  test.open();
  QMimeData text, address;
  text.setText("The sea is calm.\n");
  address.setUrls({QUrl("https://example.org/")});
  QDragEnterEvent with_address({10, 10}, Qt::CopyAction, &address, Qt::LeftButton, Qt::NoModifier);
  with_address.ignore();
  QApplication::sendEvent(&test.window, &with_address);
  CHECK_FALSE(with_address.isAccepted());
  const auto* mark = test.window.findChild<QWidget*>("dropping");
  CHECK_FALSE(mark->isVisible());
  QDragEnterEvent enter({10, 10}, Qt::CopyAction, &text, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&test.window, &enter);
  CHECK(enter.isAccepted());
  CHECK(mark->isVisible());
  QDragLeaveEvent leave;
  QApplication::sendEvent(&test.window, &leave);
  CHECK_FALSE(mark->isVisible());
  CHECK(test.window.said().isEmpty());
  QApplication::sendEvent(&test.window, &enter);
  QDropEvent drop({10, 10}, Qt::CopyAction, &text, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&test.window, &drop);
  CHECK(test.source.read_prompt.text == "The sea is calm.");
}

TEST_CASE("a click on a token goes there, the pointer over a cell chooses it") {
  TestWindow test;
  test.open();
  ViewPanel& strip = test.window.strip();
  QWidget& text = strip.surface();
  text.repaint();
  std::optional<QPoint> place;
  for (int x = 0; x < text.width() && !place; ++x)
    if (strip.hits().at({static_cast<float>(x), 14}) == 7) place = QPoint(x + 2, 14);
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
  test.press(Qt::Key_D);
  CHECK(test.navigator().cursor().reference == -1);
  CHECK(test.window.said() == "Compared with no token");
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

TEST_CASE("all that can be used has a name and can be reached by Tab, on every page") {
  TestWindow test;
  test.open();
  const auto check = [&] {
    for (QWidget* widget : test.window.findChildren<QWidget*>()) {
      const bool used = widget->focusPolicy() != Qt::NoFocus || qobject_cast<QAbstractButton*>(widget);
      if (!used || !widget->isVisible() || widget->objectName().startsWith("qt_") || qobject_cast<QMenuBar*>(widget)) continue;
      QAccessibleInterface* interface = QAccessible::queryAccessibleInterface(widget);
      INFO(widget->metaObject()->className() << " in " << widget->parentWidget()->metaObject()->className());
      REQUIRE(interface);
      CHECK_FALSE(interface->text(QAccessible::Name).isEmpty());
      CHECK((widget->focusPolicy() & Qt::TabFocus));
    }
  };
  for (const SidePage page : {SidePage::inspector, SidePage::prompt, SidePage::about, SidePage::keys, SidePage::preferences,
                              SidePage::breakpoints, SidePage::figure, SidePage::interventions, SidePage::model}) {
    if (test.window.side().page() != page) test.window.show_page(page);
    REQUIRE(test.window.side().page() == page);
    check();
  }
  test.window.show_palette();
  check();
  test.window.palette().leave();
  for (ViewPanel* panel : test.window.findChildren<ViewPanel*>()) {
    const QString said = panel->surface().accessibleDescription();
    CHECK(said.toStdString() == panel->view().describe());
    CHECK_FALSE(said.isEmpty());
  }
}

TEST_CASE("preferences are chosen by keyboard, at once, and remembered") {
  TestSettings kept;
  {
    TestWindow test(false, {1400, 900}, &kept.settings);
    test.open();
    test.press(Qt::Key_Comma, Qt::ControlModifier);
    REQUIRE(test.window.side().page() == SidePage::preferences);
    TestWindow::type_key(Qt::Key_End);  // of the themes
    CHECK(test.window.theme() == ThemeChoice::high_contrast);
    CHECK(test.window.frame().theme.ground == high_contrast_theme().ground);
    for (QCheckBox* box : test.window.side().findChildren<QCheckBox*>()) {
      box->setFocus();
      TestWindow::type_key(Qt::Key_Space);
    }
    CHECK(test.window.reduces_motion());
    CHECK_FALSE(test.window.plays_by_itself());
    test.window.set_scale(1.5f);
  }
  TestWindow again(false, {1400, 900}, &kept.settings);
  CHECK(again.window.reduces_motion());
  CHECK_FALSE(again.window.plays_by_itself());
}

TEST_CASE("presenting: larger type, a clean screen, a remote's keys, and back as it was") {
  TestWindow test;
  test.open();
  test.press(Qt::Key_F);
  CHECK(test.window.frame().scale == 1.5f);
  CHECK(test.window.wanted_scale() == 1.0f);
  CHECK_FALSE(test.window.menuBar()->isVisible());
  CHECK_FALSE(test.window.side().isVisible());
  test.press(Qt::Key_PageDown);
  test.press(Qt::Key_PageDown);
  test.press(Qt::Key_PageUp);
  CHECK(test.token() == 1);
  CHECK_FALSE(test.window.statusBar()->isVisible());
  test.press(Qt::Key_R);
  CHECK(test.window.statusBar()->isVisible());  // there is something to say
  test.press(Qt::Key_PageUp);
  CHECK_FALSE(test.window.statusBar()->isVisible());
  test.press(Qt::Key_PageDown);
  test.press(Qt::Key_B);
  CHECK(test.window.is_blank());
  CHECK(test.window.grab().toImage().pixelColor(test.window.width() / 2, test.window.height() / 2) == QColor(Qt::black));
  CHECK(test.window.playback().breakpoints().empty());
  test.press(Qt::Key_B);
  CHECK_FALSE(test.window.is_blank());
  test.press(Qt::Key_B);
  test.press(Qt::Key_Escape);
  CHECK_FALSE(test.window.is_blank());
  CHECK(test.window.is_presenting());
  test.press(Qt::Key_Escape);
  CHECK_FALSE(test.window.is_presenting());
  CHECK(test.window.frame().scale == 1.0f);
  CHECK(test.window.menuBar()->isVisible());
}

TEST_CASE("type of 3 on a projector: what does not fit folds, a view and the text stay") {
  TestWindow test(false, {1280, 720});
  test.open();
  for (const float scale : {1.0f, 1.5f, 2.0f, 3.0f}) {
    test.window.set_scale(scale);
    QTest::qWait(1);
    INFO(scale);
    CHECK(test.window.size() == QSize(1280, 720));
    int shown = 0;
    for (ViewPanel* panel : test.window.stage().panels()) shown += panel->isVisible() && panel->surface().height() > 60;
    CHECK(shown >= 1);
    CHECK(test.window.strip().surface().height() >= 80 * scale);
    CHECK(test.window.strip().geometry().bottom() < 720);
  }
  CHECK_FALSE(test.window.side().isVisible());
}

TEST_CASE("themes change every colour at once") {
  TestWindow test;
  test.open();
  const auto ground = [&] { return test.window.grab().toImage().pixelColor(3, test.window.height() / 2); };
  test.window.set_theme(ThemeChoice::light);
  CHECK(ground() == to_qcolor(light_theme().ground));
  test.window.set_theme(ThemeChoice::dark);
  CHECK(ground() == to_qcolor(dark_theme().ground));
  CHECK(test.window.action("theme-dark")->isChecked());
}

}  // namespace statescope::window_test

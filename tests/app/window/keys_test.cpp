#include <QAction>
#include <QListWidget>
#include <QMenu>
#include <QMenuBar>
#include <QSignalSpy>
#include <QStyle>
#include <set>

#include "app/controls/commands.h"
#include "app/pages/key_page.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"
#include "views/chosen.h"

namespace statescope::keys_test {
namespace {

void collect(const QMenu& menu, std::set<const QAction*>& into) {
  for (const QAction* action : menu.actions()) {
    if (action->menu())
      collect(*action->menu(), into);
    else
      into.insert(action);
  }
}

}  // namespace

TEST_CASE("no key and no id means two things") {
  std::set<QString> keys;
  std::set<std::string_view> ids;
  for (const Command& command : commands()) {
    CHECK(ids.insert(command.id).second);
    for (const QKeySequence& key : keys_of(command)) {
      INFO(command.id << " " << key.toString().toStdString());
      CHECK_FALSE(key.isEmpty());
      CHECK(keys.insert(key.toString()).second);
    }
  }
}

TEST_CASE("the keys of the design are there") {
  std::set<QString> keys;
  for (const Command& command : commands())
    for (const QKeySequence& key : keys_of(command)) keys.insert(key.toString());
  for (const char* key : {"Space", "Left",   "Right", "Shift+Left", "Shift+Right", "Ctrl+Left", "Ctrl+Right", "Home",    "End",   "Up",
                          "Down",  "[",      "]",     "1",          "9",           "G",         "+",          "-",       "0",     "F",
                          "F1",    "Ctrl+O", "PgUp",  "PgDown",     "B",           "E",         "Z",          "Shift+Z", "Ctrl+K"}) {
    INFO(key);
    CHECK(keys.contains(QKeySequence(QString::fromLatin1(key)).toString()));
  }
}

TEST_CASE("every command is in a menu, with its keys") {
  TestWindow test;
  std::set<const QAction*> in_menus;
  for (const QAction* menu : test.window.menuBar()->actions()) collect(*menu->menu(), in_menus);
  for (const Command& command : commands()) {
    INFO(command.id);
    const QList<QKeySequence> keys = keys_of(command);
    for (int i = 0; i < (command.one_per_key ? static_cast<int>(keys.size()) : 1); ++i) {
      const QAction* action = test.window.action(std::string(command.id) + (command.one_per_key ? std::to_string(i + 1) : std::string()));
      CHECK(in_menus.contains(action));
      CHECK(action->shortcuts() == (command.one_per_key ? QList{keys[i]} : keys));
    }
  }
}

TEST_CASE("menus grey what would do nothing, while they are open; what begins a group is a command") {
  TestWindow test;
  QMenu* const file = test.window.actions().menu(Menu::file);
  Q_EMIT file->aboutToShow();
  CHECK_FALSE(test.window.action("save-session")->isEnabled());
  CHECK_FALSE(test.window.action("compare-stop")->isEnabled());
  CHECK(test.window.action("open-file")->isEnabled());
  Q_EMIT file->aboutToHide();
  CHECK(test.window.action("save-session")->isEnabled());
  test.open();
  Q_EMIT file->aboutToShow();
  CHECK(test.window.action("save-session")->isEnabled());
  Q_EMIT file->aboutToHide();
  CHECK(std::ranges::count_if(commands(), begins_group) > 10);
  std::set<QString> letters;
  for (const QAction* menu : test.window.menuBar()->actions()) {
    const qsizetype at = menu->text().indexOf('&');
    REQUIRE(at >= 0);
    CHECK(letters.insert(menu->text().mid(at + 1, 1).toLower()).second);
  }
}

TEST_CASE("every command does no harm where nothing is open, though its key is pressed") {
  TestWindow test;
  for (const Command& command : commands()) {
    const std::string_view id = command.id;
    const bool asks_for_file = id.starts_with("open-") || id == "compare" || id == "training" || id == "lesson-open";
    if (asks_for_file || id == "quit") continue;
    INFO(id);
    const int keys = command.one_per_key ? static_cast<int>(keys_of(command).size()) : 1;
    for (int key = 0; key < keys; ++key) command.run(test.window, key);
    test.window.escape();
  }
  CHECK_FALSE(test.navigator().run());
}

TEST_CASE("F1 lists every command, and finds them by name and key") {
  TestWindow test;
  test.press(Qt::Key_F1);
  REQUIRE(test.window.side().page() == SidePage::keys);
  auto* list = test.window.side().findChild<KeyPage*>()->findChild<QTableWidget*>();
  std::set<QString> listed;
  for (int row = 0; row < list->rowCount(); ++row) listed.insert(list->item(row, 1)->text());
  for (const Actions::Row& row : test.window.actions().rows())
    CHECK(std::ranges::any_of(listed, [&](const QString& name) { return (name + " ·").startsWith(row.action->text() + " ·"); }));
  CHECK(listed.contains("High contrast · Theme"));
  CHECK(listed.contains("1× · Type and spacing"));
  CHECK(listed.contains("Partition 3"));
  QTest::qWait(1);
  const int margin = list->style()->pixelMetric(QStyle::PM_FocusFrameHMargin) + 1;
  for (int row = 0; row < list->rowCount(); ++row) {
    const QRect cell = list->visualItemRect(list->item(row, 1));
    const int lines =
        list->fontMetrics().boundingRect(cell.adjusted(margin, 0, -margin, 0), Qt::TextWordWrap, list->item(row, 1)->text()).height();
    INFO(list->item(row, 1)->text().toStdString());
    CHECK(cell.height() >= lines);
  }
  const auto shown = [list] {
    int count = 0;
    for (int row = 0; row < list->rowCount(); ++row) count += !list->isRowHidden(row);
    return count;
  };
  TestWindow::type("shift+left");
  CHECK(shown() >= 1);
  CHECK(shown() < 10);
  CHECK(list->item(list->currentRow(), 1)->text() == "Ten tokens back");
  TestWindow::type("no such thing");
  CHECK(shown() == 0);
  TestWindow::type_key(Qt::Key_F1);
  CHECK(test.window.side().page() == SidePage::inspector);
  CHECK(test.window.focused_panel().surface().hasFocus());
}

TEST_CASE("a key can be changed, taken from another command, remembered and had back") {
  TestSettings kept;
  {
    TestWindow test(false, {1400, 900}, &kept.settings);
    test.open();
    test.press(Qt::Key_F1);
    auto* page = test.window.side().findChild<KeyPage*>();
    TestWindow::type("next token");
    page->findChild<QKeySequenceEdit*>()->setFocus();
    QSignalSpy finished(page->findChild<QKeySequenceEdit*>(), &QKeySequenceEdit::editingFinished);
    TestWindow::type_key(Qt::Key_J);
    REQUIRE(finished.wait(long_enough_ms));  // another key might follow
    REQUIRE(page->findChild<QKeySequenceEdit*>()->keySequence() == QKeySequence("J"));
    const auto press_button = [&](const char* text) {
      for (auto* button : page->findChildren<QPushButton*>())
        if (button->text() == text) return button->click();
      FAIL(text);
    };
    press_button("Use it");
    CHECK(test.window.action("next")->shortcuts() == QList{QKeySequence("J")});
    CHECK(test.window.action("next")->toolTip() == "Next token (J)");
    CHECK(test.window.findChild<TimeSlider*>()->toolTip() ==
          QStringLiteral("Token (%1  J)").arg(QKeySequence(Qt::Key_Left).toString(QKeySequence::NativeText)));
    page->findChild<QKeySequenceEdit*>()->setKeySequence(QKeySequence("Space"));
    bool said = false;
    for (const auto* label : page->findChildren<QLabel*>()) said |= label->text() == "Space is the key of “Play or pause”, which loses it.";
    CHECK(said);
    press_button("Take it");
    CHECK(test.window.action("play")->shortcuts().isEmpty());
    test.press(Qt::Key_Escape);
    test.press(Qt::Key_Space);
    CHECK(test.token() == 1);
    test.press(Qt::Key_Right);
    CHECK(test.token() == 1);
  }
  TestWindow test(false, {1400, 900}, &kept.settings);
  test.open();
  CHECK(test.window.action("next")->shortcuts() == QList{QKeySequence("Space")});
  CHECK(test.window.action("play")->shortcuts().isEmpty());
  test.window.actions().reset_keys(test.window.actions().row("play"));
  CHECK(test.window.action("next")->shortcuts().isEmpty());
  test.window.actions().reset_all_keys();
  for (const Actions::Row& row : test.window.actions().rows()) CHECK(row.action->shortcuts() == row.usual);
  CHECK(kept.settings.allKeys().filter("keys/").isEmpty());
}

TEST_CASE("keys move the cursor and stop at the ends") {
  TestWindow test;
  test.open(64);
  const Cursor& cursor = test.navigator().cursor();
  CHECK(cursor.token == 0);
  test.press(Qt::Key_Left);
  CHECK(cursor.token == 0);
  test.press(Qt::Key_Right);
  CHECK(cursor.token == 1);
  test.press(Qt::Key_PageDown);
  CHECK(cursor.token == 2);
  test.press(Qt::Key_Right, Qt::ShiftModifier);
  CHECK(cursor.token == 12);
  test.press(Qt::Key_Left, Qt::ShiftModifier);
  CHECK(cursor.token == 2);
  test.press(Qt::Key_Right, Qt::ControlModifier);
  CHECK(cursor.token == 3);  // the needle
  test.press(Qt::Key_Right, Qt::ControlModifier);
  CHECK(cursor.token == 12);  // the question
  test.press(Qt::Key_Right, Qt::ControlModifier);
  CHECK(cursor.token == 12);
  test.press(Qt::Key_Left, Qt::ControlModifier);
  CHECK(cursor.token == 3);
  test.press(Qt::Key_End);
  CHECK(cursor.token == 63);
  test.press(Qt::Key_Right);
  CHECK(cursor.token == 63);
  test.press(Qt::Key_Home);
  CHECK(cursor.token == 0);
}

TEST_CASE("keys choose layer, head, partition and cell") {
  TestWindow test;
  test.open();
  const Cursor& cursor = test.navigator().cursor();
  test.press(Qt::Key_BracketRight);
  CHECK(cursor.head == 1);
  test.press(Qt::Key_BracketRight);
  CHECK(cursor.head == 1);
  test.press(Qt::Key_BracketLeft);
  CHECK(cursor.head == 0);
  test.press(Qt::Key_3);
  CHECK(cursor.slot == 3);
  test.press(Qt::Key_9);  // there is no ninth
  CHECK(cursor.slot == 3);
  test.press(Qt::Key_S);
  CHECK(cursor.slot == 0);
  test.press(Qt::Key_Down, Qt::AltModifier);
  CHECK(cursor.row == 0);
  CHECK(cursor.column == 0);
  test.press(Qt::Key_Right, Qt::AltModifier);
  CHECK(cursor.column == 1);
  test.press(Qt::Key_Up);
  CHECK(cursor.layer == 1);
  test.press(Qt::Key_Up);
  test.press(Qt::Key_Up);
  CHECK(cursor.layer == 2);
  CHECK(cursor.row == 0);  // that layer keeps no state: the choice waits
  CHECK(cursor.column == 1);
  test.press(Qt::Key_BracketRight);
  test.press(Qt::Key_Down, Qt::AltModifier);
  test.press(Qt::Key_Down);
  CHECK(cursor.layer == 1);
  CHECK(cursor.head == 1);  // softmax attention has heads, too
  CHECK(cursor.row == 0);
}

TEST_CASE("W and Shift+W choose the cell's row and the whole partition; pointing does not take them away, choosing does") {
  TestWindow test;
  test.open();
  const Cursor& cursor = test.navigator().cursor();
  test.press(Qt::Key_W);
  CHECK((cursor.row == 0 && cursor.column == -1));
  test.press(Qt::Key_Down, Qt::AltModifier);  // the next row, whole
  CHECK((cursor.row == 1 && cursor.column == -1));
  test.navigator().point_at(2, 3);
  CHECK((cursor.row == 1 && cursor.column == -1));
  test.press(Qt::Key_W, Qt::ShiftModifier);
  CHECK((cursor.row == kAllRows && cursor.column == -1));
  test.navigator().point_at(2, 3);
  test.press(Qt::Key_Up);
  test.press(Qt::Key_2);  // in every layer and partition
  CHECK((cursor.row == kAllRows && cursor.layer == 1 && cursor.slot == 2));
  test.press(Qt::Key_W);
  CHECK(cursor.row == 0);
  test.press(Qt::Key_Right, Qt::AltModifier);
  CHECK((cursor.row == 0 && cursor.column == 0));
  test.navigator().point_at(2, 3);
  CHECK((cursor.row == 2 && cursor.column == 3));
}

TEST_CASE("a widget in focus keeps the keys that are its own") {
  TestWindow test;
  test.open();
  auto* slider = test.window.findChild<Transport*>()->findChild<QSlider*>();
  slider->setFocus();
  QTest::keyClick(slider, Qt::Key_Up);  // the layer elsewhere, the token here
  CHECK(test.navigator().cursor().layer == 0);
  CHECK(test.token() == 1);
  test.window.ask_for_token();
  auto* number = test.window.findChild<Transport*>()->findChild<TokenNumber*>();
  CHECK(number->hasFocus());
  QTest::keyClicks(number, "17");
  CHECK(number->text() == "17");
  CHECK(test.navigator().cursor().slot == 0);  // 1 and 7 are partitions elsewhere
  QTest::keyClick(number, Qt::Key_Return);
  CHECK(test.token() == 17);

  test.window.ask_for_token();
  QTest::keyClicks(number, "30");
  QTest::keyClick(number, Qt::Key_Escape);
  CHECK_FALSE(number->hasFocus());
  CHECK(number->text() == "17");
  CHECK(test.source.cancelled == 0);
  test.window.ask_for_token();
  QTest::keyClicks(number, "31");
  slider->setFocus();
  CHECK(number->text() == "17");
  CHECK(test.token() == 17);
}

TEST_CASE("Enter presses the button that has the keyboard") {
  TestWindow test;
  test.open();
  test.window.show_page(SidePage::preferences);
  const auto buttons = test.window.side().currentWidget()->findChildren<QPushButton*>();
  QPushButton* const back = *std::ranges::find(buttons, QString("Back to the inspector"), &QPushButton::text);
  back->setFocus();
  QTest::keyClick(back, Qt::Key_Return);
  CHECK(test.window.side().page() == SidePage::inspector);
}

TEST_CASE("a lesson chosen from the list has the keyboard at its picture, where Space plays, not at the button that leaves it") {
  TestWindow test;
  test.open();
  test.press(Qt::Key_F2);
  REQUIRE(qobject_cast<QListWidget*>(QApplication::focusWidget()));
  TestWindow::type_key(Qt::Key_Return);
  REQUIRE(test.window.lesson().lesson());
  CHECK(test.window.focused_panel().surface().hasFocus());
}

TEST_CASE("letters typed in a list box choose in it, and are no commands there") {
  TestWindow test;
  test.open();
  test.window.show_page(SidePage::interventions);
  auto& kind = *test.window.findChild<QComboBox*>("kind");
  REQUIRE(QApplication::focusWidget() == &kind);
  TestWindow::type("Route");  // R: loop, O, U, T, E: export
  CHECK(kind.currentText().startsWith("Route"));
  CHECK(test.window.side().page() == SidePage::interventions);
  CHECK_FALSE(test.window.playback().loop());
  TestWindow::type_key(Qt::Key_I, Qt::ControlModifier);  // commands with Ctrl stay commands
  CHECK(test.window.side().page() == SidePage::inspector);
}

TEST_CASE("zoom keys give the drawing more room, 0 gives it back") {
  TestWindow test;
  test.open();
  test.press(Qt::Key_Plus);
  CHECK(test.window.focused_panel().zoom() > 1);
  test.press(Qt::Key_0);
  CHECK(test.window.focused_panel().zoom() == 1);
  test.press(Qt::Key_Minus);
  CHECK(test.window.focused_panel().zoom() == 1);
}

TEST_CASE("menus: while one is open its entries have letters of their own, and nowhere else") {
  TestWindow test;
  test.open();
  for (QAction* title : test.window.menuBar()->actions()) {
    QMenu& menu = *title->menu();
    INFO(title->text().toStdString());
    menu.popup({10, 10});
    QString letters;
    for (const QAction* entry : menu.actions())
      if (const auto at = entry->text().indexOf('&'); at >= 0) letters += entry->text()[at + 1].toLower();
    CHECK(letters.size() >= std::min<qsizetype>(menu.actions().size() / 2, 10));
    for (const QChar letter : letters) CHECK(letters.count(letter) == 1);
    menu.close();
    for (const QAction* entry : menu.actions()) CHECK_FALSE(entry->text().contains('&'));
  }
  CHECK(test.window.action("next")->text() == "Next token");
}

}  // namespace statescope::keys_test

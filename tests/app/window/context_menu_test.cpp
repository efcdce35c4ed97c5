// The menu of a place in a view and of a table: what it does there and what it copies.
#include <QClipboard>
#include <QMenu>

#include "app/pages/words_page.h"
#include "app/panels/find_bar.h"
#include "app/panels/transport.h"
#include "app/window/context_menu.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"
#include "views/chosen.h"

namespace statescope::context_menu_test {
namespace {

QMenu* open_menu() { return qobject_cast<QMenu*>(QApplication::activePopupWidget()); }

QAction* entry(QMenu& menu, const QString& text) {
  for (QAction* action : menu.actions()) {
    if (action->text() == text) return action;
    if (action->menu())
      if (QAction* below = entry(*action->menu(), text)) return below;
  }
  return nullptr;
}

/// Chooses an entry of the menu that is open.
void choose(const QString& text) {
  QMenu* const menu = open_menu();
  REQUIRE(menu);
  QAction* const action = entry(*menu, text);
  INFO(text.toStdString());
  REQUIRE(action);
  CHECK(action->isEnabled());
  QWidget* const window = menu->parentWidget();
  action->trigger();
  menu->close();
  window->activateWindow();  // as a desktop does
  CHECK(QTest::qWaitForWindowActive(window, long_enough_ms));
}

QString copied() { return QApplication::clipboard()->text(); }

/// The middle of a region that leads to a token other than the cursor's.
QPoint token_in(ViewPanel& panel, std::int64_t here) {
  for (int y = 0; y < panel.surface().height(); y += 4) {
    for (int x = 0; x < panel.surface().width(); x += 4) {
      const auto hit = panel.hits().at({static_cast<float>(x), static_cast<float>(y)});
      if (hit && panel.view().on_hit(*hit).token.value_or(here) != here) return {x, y};
    }
  }
  FAIL("no token is drawn");
  return {};
}

}  // namespace

TEST_CASE("place menu: the right button chooses the place, sets a breakpoint there and copies what stands there") {
  TestWindow test;
  test.open();
  ViewPanel& strip = test.window.strip();
  strip.surface().repaint();
  const QPoint at = token_in(strip, 0);
  QTest::mouseClick(&strip.surface(), Qt::RightButton, {}, at);
  REQUIRE(open_menu());
  const std::int64_t token = test.token();
  CHECK(token != 0);
  choose("Breakpoint at this token");
  REQUIRE(test.window.playback().breakpoints().size() == 1);
  CHECK(test.window.playback().breakpoints()[0].number == token);
  QTest::mouseClick(&strip.surface(), Qt::RightButton, {}, at);
  choose("Copy the token");
  CHECK(copied().toStdString() == test.navigator().run()->tokens[static_cast<std::size_t>(token)].text);
  QTest::mouseClick(&strip.surface(), Qt::RightButton, {}, at);
  choose("Compare with this token");
  CHECK(test.navigator().cursor().reference == token);
}

TEST_CASE("place menu: by key, of the view in focus: table with tabs, picture, who wrote it, export") {
  TestWindow test;
  test.open();
  ViewPanel& state = *test.window.stage().panels()[1];
  REQUIRE(state.row().id == "state");
  state.surface().setFocus();
  const auto ask = [&] {
    test.press(Qt::Key_F10, Qt::ShiftModifier);
    REQUIRE(open_menu());
  };
  ask();
  const std::vector<Table> tables = state.view().tables();
  REQUIRE(tables.size() > 1);  // each by itself
  const Table& table = tables[0];
  choose("A line for each " + QString::fromStdString(table.columns[0]));
  const QStringList lines = copied().split('\n', Qt::SkipEmptyParts);
  REQUIRE(lines.size() == std::ssize(table.rows) + 1);
  CHECK(lines[0].count('\t') == std::ssize(table.columns) - 1);
  CHECK(lines[1].startsWith(QString::fromStdString(table.rows[0][0]) + '\t'));
  ask();
  test.navigator().move({.row = 2, .column = 1});
  ask();
  choose("Copy the value");
  bool is_number = false;
  copied().toFloat(&is_number);
  CHECK(is_number);  // nothing else
  CHECK(copied().toStdString() == state.view().value({}));
  ask();
  choose("Copy the picture");
  CHECK(QApplication::clipboard()->pixmap().size() == state.surface().grab().size());
  ask();
  choose("The whole partition");
  CHECK(test.navigator().cursor().row == kAllRows);
  test.press(Qt::Key_Down, Qt::AltModifier);
  ask();
  choose("Its row");
  CHECK(test.navigator().cursor().row >= 0);
  CHECK(test.navigator().cursor().column == -1);
  ask();
  choose(test.window.action("zero-head")->text());
  CHECK_FALSE(test.source.intervened.empty());
  ask();
  choose(test.window.action("export")->text());
  CHECK(test.window.side().page() == SidePage::figure);
}

TEST_CASE("place menu: a drag with the right button moves the drawing and opens nothing") {
  TestWindow test;
  test.open();
  QWidget& surface = test.window.focused_panel().surface();
  test.press(Qt::Key_Plus);
  QTest::mousePress(&surface, Qt::RightButton, {}, {100, 100});
  QTest::mouseMove(&surface, {60, 60});
  QTest::mouseMove(&surface, {40, 40});
  QTest::mouseRelease(&surface, Qt::RightButton, {}, {40, 40});
  CHECK_FALSE(open_menu());
}

TEST_CASE("table menu: the value, the chosen rows or all; Ctrl+C takes the chosen rows") {
  TestWindow test(false, {1600, 1000});
  test.open();
  QTableView& table = values_table(test);
  REQUIRE(table.model()->rowCount() > 2);
  table.setFocus();
  table.selectRow(1);
  const auto cell = [&](int row, int column) { return table.model()->index(row, column).data().toString(); };
  QTest::keyClick(&table, Qt::Key_C, Qt::ControlModifier);
  CHECK(copied().split('\n', Qt::SkipEmptyParts).size() == 1);
  CHECK(copied().startsWith(cell(1, 0) + (table.model()->columnCount() > 1 ? "\t" + cell(1, 1) : QString())));
  show_menu_here(test.window);
  const std::vector<Table> tables = test.window.focused_panel().view().tables();
  choose("A line for each " + QString::fromStdString(tables.back().columns[0]));
  CHECK(copied().split('\n', Qt::SkipEmptyParts).size() == std::ssize(tables.back().rows) + 1);
  table.setFocus();
  show_menu_here(test.window);
  choose("Copy the value");
  CHECK(copied() == cell(1, 0));
}

TEST_CASE("find: words of the text, from place to place, marked on the time line until it is left") {
  TestWindow test;
  test.open();
  test.press(Qt::Key_F, Qt::ControlModifier);
  FindBar& bar = test.window.find_bar();
  REQUIRE(bar.isVisible());
  const std::string word = test.navigator().run()->tokens[5].text;
  const QString wanted = QString::fromStdString(word).trimmed();
  const std::vector<std::int64_t> all = tokens_with(*test.navigator().run(), wanted).first;
  REQUIRE_FALSE(all.empty());
  CHECK(tokens_with(*test.navigator().run(), " " + wanted.toUpper() + " ").first == all);
  TestWindow::type(wanted);
  REQUIRE(QTest::qWaitFor([&] { return bar.found().first == all; }, long_enough_ms));
  CHECK(test.window.frame().shown.found == bar.found().all);
  CHECK(std::ranges::count(all, test.token()) == 1);
  CHECK(test.window.findChild<TimeSlider*>()->found() == all);
  const std::int64_t first = test.token();
  for (std::size_t i = 0; i < all.size(); ++i) TestWindow::type_key(Qt::Key_Return);
  CHECK(test.token() == first);
  TestWindow::type_key(Qt::Key_Escape);
  CHECK_FALSE(bar.isVisible());
  CHECK(test.window.findChild<TimeSlider*>()->found().empty());
  CHECK(test.window.frame().shown.found.empty());
  CHECK(test.window.focused_panel().surface().hasFocus());
}

TEST_CASE("find: words of several tokens have all of them marked") {
  RunInfo run;
  for (const char* text : {"c", "od", "e ", "co", "de", "x"}) run.tokens.push_back({.id = 0, .text = text});
  const FoundTokens found = tokens_with(run, "code");
  CHECK(found.first == std::vector<std::int64_t>{0, 3});
  CHECK(found.all == std::vector<std::int64_t>{0, 1, 2, 3, 4});
  CHECK(tokens_with(run, "dec").all == std::vector<std::int64_t>{1, 2, 3});
}

TEST_CASE("words: each has its meaning; a view's own are shown alone, then all") {
  TestWindow test;
  test.open();
  test.press(Qt::Key_F1, Qt::ShiftModifier);
  REQUIRE(test.window.side().page() == SidePage::words);
  auto* list = test.window.side().findChild<WordsPage*>()->findChild<QListWidget*>();
  const auto shown = [list] {
    QStringList terms;
    for (int row = 0; row < list->count(); ++row)
      if (!list->item(row)->isHidden()) terms += list->item(row)->text().section('\n', 0, 0);
    return terms;
  };
  const QStringList all = shown();
  for (const char* term : {"fair", "clear", "recomputed", "keyframe", "exact", "lost to misrouting"}) CHECK(all.contains(term));
  TestWindow::type("misrout");
  CHECK(shown() == QStringList{"lost to misrouting"});
  ViewPanel& routing = *test.window.stage().panels()[0];
  test.window.show_words_of(routing);
  CHECK(shown().contains("fair"));
  CHECK_FALSE(shown().contains("half-life"));
  test.window.side().findChild<WordsPage*>()->show_all();
  CHECK(shown() == all);
}

}  // namespace statescope::context_menu_test

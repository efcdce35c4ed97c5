// What a screen reader finds in the window, and that the keyboard reaches all of it.
#include <QAccessible>
#include <QMenu>
#include <QMenuBar>
#include <set>

#include "app/window/palette_entries.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

namespace statescope::accessibility_test {
namespace {

/// Roles that a reader acts on.
bool is_control(QAccessible::Role role) {
  switch (role) {
    case QAccessible::PushButton:
    case QAccessible::CheckBox:
    case QAccessible::RadioButton:
    case QAccessible::ComboBox:
    case QAccessible::SpinBox:
    case QAccessible::Slider:
    case QAccessible::EditableText:
    case QAccessible::Table:
    case QAccessible::List:
    case QAccessible::MenuItem:
    case QAccessible::ButtonMenu:
    case QAccessible::ProgressBar:
      return true;
    default:
      return false;
  }
}

/// Every control that is shown below `here`, with its parents' names for the message of a failing test.
void check_names(QAccessibleInterface* here, const std::string& path, int& controls) {
  if (here->state().invisible) return;
  const std::string name = here->text(QAccessible::Name).toStdString();
  const std::string at = path + "/" + (name.empty() ? std::to_string(here->role()) : name);
  if (is_control(here->role())) {
    ++controls;
    const bool inner = here->object() && here->object()->objectName().startsWith("qt_");
    if (!inner) {
      INFO(at);
      CHECK_FALSE(name.empty());
    }
    return;  // what is in it belongs to it
  }
  for (int i = 0; i < here->childCount(); ++i)
    if (QAccessibleInterface* child = here->child(i)) check_names(child, at, controls);
}

int check_window(TestWindow& test) {
  int controls = 0;
  check_names(QAccessible::queryAccessibleInterface(&test.window), "", controls);
  return controls;
}

}  // namespace

TEST_CASE("every control has a name for the screen reader: each view, each page, before and after a run has opened") {
  TestWindow test;
  CHECK(check_window(test) > 0);
  test.open();
  for (const ViewRow& row : view_catalogue()) {
    if (row.id == strip_view) continue;
    test.window.stage().panels().front()->set_view(row);
    CHECK(check_window(test) > 10);
  }
  for (int page = 0; page < test.window.side().count(); ++page) {
    if (test.window.side().page() != static_cast<SidePage>(page)) test.window.show_page(static_cast<SidePage>(page));
    CHECK(check_window(test) > 10);
  }
  test.window.show_palette();
  CHECK(check_window(test) > 10);
}

TEST_CASE("every action has a key or stands in a menu, and the palette finds every one") {
  TestWindow test;
  test.open();
  std::set<const QAction*> in_menus;
  for (const QMenu* menu : test.window.menuBar()->findChildren<QMenu*>())
    for (const QAction* action : menu->actions()) in_menus.insert(action);
  const std::vector<PaletteEntry> entries = palette_entries(test.window);
  for (const Actions::Row& row : test.window.actions().rows()) {
    INFO(row.id);
    CHECK((in_menus.contains(row.action) || !row.action->shortcuts().isEmpty()));
    CHECK(std::ranges::any_of(entries, [&](const PaletteEntry& entry) { return entry.text == row.action->text(); }));
  }
  for (const ViewRow& row : view_catalogue()) {
    if (row.id == strip_view) continue;
    CHECK(std::ranges::any_of(entries, [&](const PaletteEntry& entry) { return entry.text == view_words(row.title); }));
  }
}

TEST_CASE("Tab comes through every control of the window and back to the first") {
  TestWindow test;
  test.open();
  QWidget* const first = QApplication::focusWidget();
  REQUIRE(first);
  std::set<const QWidget*> reached;
  for (int i = 0; i < 200; ++i) {
    QWidget* const here = QApplication::focusWidget();
    if (!reached.insert(here).second) break;
    QTest::keyClick(here, Qt::Key_Tab);
  }
  for (const QWidget* widget : test.window.findChildren<QWidget*>()) {
    const bool tabbed = widget->isVisible() && widget->isEnabled() && (widget->focusPolicy() & Qt::TabFocus) && !widget->focusProxy();
    if (!tabbed || qobject_cast<const QMenuBar*>(widget)) continue;
    INFO(widget->metaObject()->className() << " " << widget->accessibleName().toStdString());
    CHECK(reached.contains(widget));
  }
}

TEST_CASE("an enlarged drawing is moved by keys") {
  TestWindow test;
  test.open();
  ViewPanel& panel = test.window.focused_panel();
  const auto picture = [&] { return panel.surface().grab().toImage(); };
  const QImage fitted = picture();
  test.press(Qt::Key_Plus);
  test.press(Qt::Key_Plus);
  const QImage middle = picture();
  CHECK(middle != fitted);
  test.press(Qt::Key_Right, Qt::AltModifier | Qt::ShiftModifier);
  const QImage right = picture();
  CHECK(right != middle);
  test.press(Qt::Key_Left, Qt::AltModifier | Qt::ShiftModifier);
  CHECK(picture() == middle);
  test.press(Qt::Key_Down, Qt::AltModifier | Qt::ShiftModifier);
  CHECK(picture() != middle);
  test.press(Qt::Key_0);
  CHECK(picture() == fitted);
}

}  // namespace statescope::accessibility_test

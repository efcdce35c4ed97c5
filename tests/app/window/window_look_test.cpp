// The look of the window: keyboard and names on every page, preferences, presenting, type that is large, themes.
#include <QAbstractItemView>
#include <QAccessible>
#include <QCheckBox>
#include <QComboBox>
#include <QMenuBar>
#include <QStatusBar>

#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

namespace statescope::window_look_test {

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

TEST_CASE("presenting: a remote's start key begins it, its blank key blanks, and the class sees the pointer") {
  TestWindow test;
  test.open();
  CHECK(test.window.cursor().shape() == Qt::ArrowCursor);
  for (const Qt::KeyboardModifiers modifiers : {Qt::NoModifier, Qt::ShiftModifier}) {
    test.press(Qt::Key_F5, modifiers);
    CHECK(test.window.is_presenting());
    test.press(Qt::Key_F5, modifiers);  // pressed again by a remote that has lost count
    CHECK(test.window.is_presenting());
    const QPixmap pointer = test.window.stage().panels().front()->surface().cursor().pixmap();
    CHECK(pointer.width() >= 40 * test.window.frame().scale);
    const QImage ring = pointer.toImage();
    CHECK(ring.pixelColor(ring.width() / 2, ring.height() / 2).alpha() == 0);  // what it points at is seen through it
    const QString speed = test.window.findChild<Transport*>()->findChild<QComboBox*>()->currentText();
    test.press(Qt::Key_Period);
    CHECK(test.window.is_blank());
    test.press(Qt::Key_Period);
    CHECK_FALSE(test.window.is_blank());
    CHECK(test.window.findChild<Transport*>()->findChild<QComboBox*>()->currentText() == speed);
    test.press(Qt::Key_Escape);
    CHECK_FALSE(test.window.is_presenting());
    CHECK(test.window.stage().panels().front()->surface().cursor().shape() == Qt::ArrowCursor);
  }
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

}  // namespace statescope::window_look_test

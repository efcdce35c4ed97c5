// What the window's tests share: one application, a window over a fake source, keys.
#pragma once

#include <QLabel>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <stdexcept>

#include "app/controls/theme.h"
#include "app/window/main_window.h"
#include "tests/app/window/fake_source.h"
#include "tests/app/window/qt_application.h"

namespace statescope {

/// The one application, in the window's style.
inline QApplication& test_application() {
  static QApplication& application = [] {
    qt_application();
    set_up_application();
    return std::ref(qt_application());
  }();
  return application;
}

/// The longest that a test waits for what must come: on a slow machine, under a sanitizer, beside other work.
inline constexpr int long_enough_ms = 60'000;

/// A file of settings that goes with the test.
struct TestSettings {
  QTemporaryDir folder;
  QSettings settings{folder.filePath("settings.ini"), QSettings::IniFormat};
};

/// A window on a run of 64 tokens, answered at once, without playing by itself.
struct TestWindow {
  explicit TestWindow(bool opengl = false, QSize size = {1400, 900}, QSettings* settings = nullptr)
      : window(
            (test_application(), source),
            {.opengl = opengl, .start_words = "test", .theme = ThemeChoice::light, .scale = 1, .settings = settings, .autoplay = false}) {
    window.resize(size);
    window.show();
    window.activateWindow();
    QTest::qWait(1);
  }

  void open(std::int64_t tokens = 64) {
    window.open_checkpoint("fake.h5", {});
    source.stand(fake_run(tokens));
    QTest::qWait(1);
  }
  void press(int key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    QTest::keyClick(window.focused_panel().surface().window(), static_cast<Qt::Key>(key), modifiers);
  }
  /// Types into whatever has the keyboard.
  static void type(const QString& text) { QTest::keyClicks(QApplication::focusWidget(), text); }
  static void type_key(int key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    QTest::keyClick(QApplication::focusWidget(), static_cast<Qt::Key>(key), modifiers);
  }
  Navigator& navigator() { return window.navigator(); }
  std::int64_t token() { return navigator().cursor().token; }

  FakeSource source;
  MainWindow window;
};

/// What the inspector, or a page in its place, says under this name.
inline QString value_of(const Side& side, const char* name) {
  for (const QLabel* label : side.findChildren<QLabel*>())
    if (label->accessibleName() == name) return label->text();
  return {};
}

inline QTableView& values_table(TestWindow& test) {
  for (QTableView* table : test.window.findChildren<QTableView*>())
    if (table->accessibleName() == "Values of the view in focus") return *table;
  throw std::logic_error("no table");
}

}  // namespace statescope

// The window in other languages: what is translated, and that nothing of the shell is left out.
#include <QCheckBox>
#include <QMenuBar>
#include <QProcess>
#include <QPushButton>
#include <QRegularExpression>
#include <algorithm>
#include <fstream>

#include "app/canvas/text_canvas.h"
#include "app/figure/from_view.h"
#include "app/lesson/lesson_page.h"
#include "app/runs/breakpoints.h"
#include "app/window/palette_entries.h"
#include "app/window/translation.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"
#include "views/words.h"

namespace statescope::translation_test {
namespace {

/// A language in which every text stands in «», also those of views.
class Quoting : public QTranslator {
 public:
  Quoting() {
    QCoreApplication::installTranslator(this);
    set_translator(translated_words);
  }
  ~Quoting() override {
    set_translator(nullptr);
    QCoreApplication::removeTranslator(this);
  }
  bool isEmpty() const override { return false; }
  QString translate(const char*, const char* source, const char*, int) const override {
    return QStringLiteral("«%1»").arg(QString::fromUtf8(source));
  }
};

/// What the fake run, the engine and the platform say: names.
const char* const data_words[] = {"softmax_attention", "CPU, 2 threads", "Ctrl+Return", "Ctrl+K", "Statescope",
                                  "sse_gla",           "shared",         "fake",        "test",   "sse"};

/// What stands outside «» and is neither data nor without letters.
QString untranslated(QString text) {
  static const QRegularExpression quoted("«[^«»]*»"), letters("[A-Za-z]{2,}"), tags("</?[a-z]+>");
  text.remove(tags);
  while (text.contains(quoted)) text.remove(quoted);  // one may stand within another
  for (const char* word : data_words) text.remove(word, Qt::CaseInsensitive);
  return text.contains(letters) ? text : QString();
}

QStringList texts_of(const QWidget& widget) {
  QStringList texts = {widget.toolTip(), widget.accessibleName(), widget.accessibleDescription()};
  if (const auto* label = qobject_cast<const QLabel*>(&widget)) texts += label->text();
  if (const auto* button = qobject_cast<const QAbstractButton*>(&widget)) texts += button->text();
  if (const auto* line = qobject_cast<const QLineEdit*>(&widget)) texts += line->placeholderText();
  if (const auto* edit = qobject_cast<const QPlainTextEdit*>(&widget)) texts += edit->placeholderText();
  if (const auto* box = qobject_cast<const QComboBox*>(&widget); box && box->objectName() != "names")
    for (int i = 0; i < box->count(); ++i) texts += box->itemText(i);
  for (const QAction* action : widget.actions()) texts += {action->text(), action->toolTip()};
  return texts;
}

/// All that a view says of where the pointer may stand, and its table.
QStringList texts_of(const View& view) {
  constexpr float w = 1200, h = 700, step = 50;
  QStringList texts = {QString::fromStdString(view.describe())};
  TextCanvas canvas({w, h});
  view.draw(canvas, {0, 0, w, h}, {light_theme(), 1});
  for (float y = 0; y < h; y += step)
    for (float x = 0; x < w; x += step)
      if (const auto hit = canvas.hits().at({x, y})) texts += QString::fromStdString(view.tooltip(*hit));
  const Table table = view.table();
  for (const std::string& name : table.columns) texts += QString::fromStdString(name);
  return texts;
}

QByteArray content(const QString& path) {
  QFile file(path);
  REQUIRE(file.open(QFile::ReadOnly));
  return file.readAll();
}

/// The focused view as a figure, its numbers and its caption.
QList<QByteArray> files_of_figure(TestWindow& test) {
  const QTemporaryDir folder;
  FigureExport figure{.recipe = test.window.focused_panel().recipe().value(),
                      .spec = {},
                      .device = {},
                      .path = folder.filePath("a.svg").toStdString(),
                      .with_data = true,
                      .with_caption = true};
  write_figure(figure);
  QList<QByteArray> files;
  for (const QString& name : QDir(folder.path()).entryList(QDir::Files)) files += content(folder.filePath(name));
  return files;
}

}  // namespace

TEST_CASE("every text of the shell is translated: menus, labels, buttons, lists, tooltips, names for the screen reader") {
  test_application();
  const Quoting language;
  TestWindow test;
  test.open();
  test.navigator().move({.token = 5, .row = 3, .column = 4});
  for (const ViewRow& row : view_catalogue()) {
    if (row.id != strip_view) test.window.stage().panels().front()->set_view(row);
    for (int page = 0; page <= static_cast<int>(SidePage::interventions); ++page) {
      if (test.window.side().page() != static_cast<SidePage>(page)) test.window.show_page(static_cast<SidePage>(page));
      for (const QWidget* widget : test.window.findChildren<QWidget*>()) {
        if (widget->objectName().startsWith("qt_") || qobject_cast<const QMenu*>(widget)) continue;
        INFO(widget->metaObject()->className() << " in " << widget->parentWidget()->metaObject()->className());
        for (const QString& text : texts_of(*widget)) CHECK(untranslated(text).toStdString() == "");
      }
    }
  }
}

TEST_CASE("what views say of themselves and under the pointer is translated in the window, looked at in every way") {
  test_application();
  const Quoting language;
  TestWindow test;
  test.open();
  ViewPanel& panel = *test.window.stage().panels().front();
  for (const ViewRow& row : view_catalogue()) {
    if (row.id == strip_view) continue;
    panel.set_view(row);
    const auto modes = static_cast<int>(panel.view().modes().size());
    for (int mode = 0; mode < std::max(1, modes); ++mode) {
      if (modes > 0) panel.set_mode(static_cast<std::size_t>(mode));
      INFO(row.id << ", mode " << mode);
      for (const QString& text : texts_of(panel.view())) CHECK(untranslated(text).toStdString() == "");
    }
  }
}

TEST_CASE("figures, their numbers and their captions are English, whatever the window's language") {
  test_application();
  TestWindow test;
  test.open();
  for (const char* view : {"routing", "state"}) {
    test.window.focused_panel().set_view(*find_view(view));
    const auto built_anew = [&] {
      for (const std::int64_t token : {7, 5}) test.navigator().move({.token = token});
    };
    built_anew();
    const QList<QByteArray> plain = files_of_figure(test);
    REQUIRE(plain.size() == 3);
    const Quoting language;
    built_anew();
    CHECK(QString::fromStdString(test.window.focused_panel().view().describe()).contains("«"));
    CHECK(files_of_figure(test) == plain);
  }
}

TEST_CASE("every menu, every entry of the palette and all that the status bar says is translated") {
  test_application();
  const Quoting language;
  TestWindow test;
  test.open();
  for (const QMenu* menu : test.window.menuBar()->findChildren<QMenu*>())
    if (!menu->isEmpty()) CHECK(untranslated(menu->title()).toStdString() == "");
  for (const Actions::Row& row : test.window.actions().rows()) {
    INFO(row.id);
    CHECK(row.action->text().startsWith("«"));
  }
  for (const PaletteEntry& entry : palette_entries(test.window)) {
    const std::vector<LessonEntry>& lessons = test.window.lesson_page().entries();
    if (std::ranges::count(lessons, entry.text, &LessonEntry::title) > 0) continue;  // a lesson's file says them
    CHECK(untranslated(entry.text).toStdString() == "");
    CHECK(untranslated(entry.kind).toStdString() == "");
  }
  for (const int key : {Qt::Key_B, Qt::Key_R, Qt::Key_R}) {
    test.press(key);
    CHECK(test.window.said().startsWith("«"));
  }
  for (const auto kind : {Breakpoint::Kind::token, Breakpoint::Kind::needle, Breakpoint::Kind::question, Breakpoint::Kind::answer,
                          Breakpoint::Kind::text, Breakpoint::Kind::partition, Breakpoint::Kind::survival})
    CHECK(words_of({.kind = kind, .text = {}}).startsWith("«"));
}

TEST_CASE("a compiled translation of the reader's language is loaded; other languages stay English") {
#ifdef STATESCOPE_LRELEASE
  test_application();
  const QTemporaryDir folder;
  const std::string source = folder.filePath("statescope_eo.ts").toStdString();
  std::ofstream(source)
      << R"(<?xml version="1.0" encoding="utf-8"?><!DOCTYPE TS><TS version="2.1" language="eo"><context><name>Commands</name>
    <message><source>Quit</source><translation>Eliri</translation></message><message><source>File</source><translation>Dosiero</translation></message>
    </context></TS>)";
  REQUIRE(QProcess::execute(STATESCOPE_LRELEASE, {"-silent", QString::fromStdString(source)}) == 0);
  {
    const Translation esperanto(QLocale(QLocale::Esperanto), {folder.path()});
    TestWindow test;
    CHECK(test.window.action("quit")->text() == "Eliri");
    CHECK(test.window.menuBar()->actions().first()->text() == "&Dosiero");
    CHECK(test.window.action("preferences")->text() == "Preferences");  // not in the file
  }
  const Translation latvian(QLocale(QLocale::Latvian), {folder.path()});
  TestWindow test;
  CHECK(test.window.action("quit")->text() == "Quit");
#else
  WARN("not tested: Qt's lrelease is not installed");
#endif
}

}  // namespace statescope::translation_test

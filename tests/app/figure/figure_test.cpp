#include "app/figure/from_view.h"

#include <sys/resource.h>

#include <QCheckBox>
#include <QComboBox>
#include <QDir>
#include <QFile>
#include <QPushButton>
#include <QSvgRenderer>
#include <cmath>
#include <csignal>

#include "app/assets.h"
#include "app/cli/commands.h"
#include "engine/error.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

namespace statescope::figure_test {
namespace {

QByteArray bytes(const QString& path) {
  QFile file(path);
  REQUIRE(file.open(QIODevice::ReadOnly));
  return file.readAll();
}

/// While it lives, files end after a kilobyte, as on a full disk.
class SmallFiles {
 public:
  SmallFiles() {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{1000, before_.rlim_max};
    signal_ = std::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallFiles() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

 private:
  rlimit before_{};
  void (*signal_)(int) = SIG_DFL;
};

/// The focused view on paper of 89 × 60 mm.
void write(TestWindow& test, const QString& path) {
  FigureExport figure{.recipe = test.window.focused_panel().recipe().value(), .spec = {}, .device = {}, .path = path.toStdString()};
  figure.spec.height_mm = 60;
  write_figure(figure);
}

/// The page of export, once it has said something of what it wrote.
QString result_of(TestWindow& test) {
  const auto* result = test.window.side().findChild<QLabel*>("result");
  REQUIRE(result);
  CHECK(QTest::qWaitFor([&] { return !result->text().isEmpty() && !result->text().startsWith("Writing"); }, long_enough_ms));
  return result->text();
}

}  // namespace

TEST_CASE("a figure has the size asked for, in each format") {
  TestWindow test;
  test.open();
  const QTemporaryDir folder;

  write(test, folder.filePath("state.png"));
  const QImage picture(folder.filePath("state.png"));
  CHECK(picture.size() == QSize(2102, 1417));  // 600 dpi
  CHECK(picture.pixelColor(2, 2) == to_qcolor(light_theme().panel));

  write(test, folder.filePath("state.SVG"));
  const QSvgRenderer svg(folder.filePath("state.SVG"));
  CHECK(svg.isValid());
  CHECK(svg.viewBox().size() == QSize(336, 227));

  write(test, folder.filePath("state.pdf"));
  const QByteArray pdf = bytes(folder.filePath("state.pdf"));
  CHECK(pdf.startsWith("%PDF"));
  const qsizetype at = pdf.indexOf("/MediaBox [");
  REQUIRE(at > 0);
  const QList<QByteArray> box = pdf.mid(at + 11, pdf.indexOf(']', at) - at - 11).simplified().split(' ');
  CHECK(std::abs(box[2].toDouble() - 89 / 25.4 * 72) < 1);
  CHECK(std::abs(box[3].toDouble() - 60 / 25.4 * 72) < 1);
}

TEST_CASE("a figure that cannot be written says so and leaves nothing") {
  TestWindow test;
  test.open();
  const QTemporaryDir folder;
  CHECK_THROWS_AS(write(test, folder.filePath("state.gif")), Error);
  CHECK_THROWS_AS(write(test, folder.filePath("no/such/folder/state.pdf")), Error);
  const SmallFiles full;
  CHECK_THROWS_AS(write(test, folder.filePath("state.pdf")), Error);
  CHECK(QDir(folder.path()).isEmpty());
}

TEST_CASE("E offers the focused view as a file; Return writes it, in light colours whatever the theme") {
  TestWindow test;
  test.open();
  test.window.set_theme(ThemeChoice::dark);
  const QTemporaryDir folder;
  test.press(Qt::Key_E);
  REQUIRE(test.window.side().page() == SidePage::figure);
  auto* path = qobject_cast<QLineEdit*>(QApplication::focusWidget());
  REQUIRE(path);
  CHECK(path->text().endsWith("fake-state-token0.pdf"));
  path->setText(folder.filePath("mine.png"));
  TestWindow::type_key(Qt::Key_Return);
  CHECK(result_of(test).startsWith("Wrote"));
  CHECK(QImage(folder.filePath("mine.png")).pixelColor(2, 2) == to_qcolor(light_theme().panel));
  path->setText(folder.filePath("mine.doc"));
  TestWindow::type_key(Qt::Key_Return);
  CHECK(result_of(test).contains("must end in .pdf, .svg, .png or .eps"));
}

TEST_CASE("the page of export has everything in sight at 1280 × 720") {
  TestWindow test;
  test.open();
  test.window.resize(1280, 720);
  test.press(Qt::Key_E);
  const auto in_sight = [](const QWidget* control) { return control->visibleRegion().boundingRect() == control->rect(); };
  const auto all = [&] {
    const QWidget* page = test.window.side().currentWidget();
    bool seen = true;
    for (const QComboBox* box : page->findChildren<QComboBox*>()) seen = seen && in_sight(box);
    for (const QAbstractButton* button : page->findChildren<QAbstractButton*>())
      seen = seen && (button->isHidden() || !button->isVisibleTo(page) || in_sight(button));
    return seen;
  };
  CHECK(QTest::qWaitFor(all, long_enough_ms));
}

TEST_CASE("the page of export asks before it replaces a file that it has not written itself; by keyboard alone") {
  TestWindow test;
  test.open();
  const QTemporaryDir folder;
  const QString file = folder.filePath("mine.png");
  const auto store = [](const QString& name) {
    QFile other(name);
    REQUIRE(other.open(QIODevice::WriteOnly));
    other.write("somebody else's");
  };
  const auto is_stored = [](const QString& name) { return QFileInfo(name).size() == 15; };
  store(file);
  test.press(Qt::Key_E);
  auto* path = qobject_cast<QLineEdit*>(QApplication::focusWidget());
  REQUIRE(path);
  path->setText(file);
  TestWindow::type_key(Qt::Key_Return);
  const auto chosen = [] { return qobject_cast<QPushButton*>(QApplication::focusWidget()); };
  REQUIRE(chosen());
  CHECK(chosen()->text() == "Keep");
  CHECK(chosen()->accessibleDescription() == "mine.png already exists.");
  TestWindow::type_key(Qt::Key_Return);
  CHECK(QApplication::focusWidget() == path);
  CHECK(is_stored(file));
  TestWindow::type_key(Qt::Key_Return);
  TestWindow::type_key(Qt::Key_Tab);
  REQUIRE(chosen());
  CHECK(chosen()->text() == "Replace");
  TestWindow::type_key(Qt::Key_Return);
  CHECK(result_of(test).startsWith("Wrote"));
  CHECK_FALSE(is_stored(file));

  path->setFocus();
  TestWindow::type_key(Qt::Key_Return);  // its own file
  CHECK(result_of(test).startsWith("Wrote"));

  store(folder.filePath("mine.data.h5"));
  for (QCheckBox* box : test.window.side().findChildren<QCheckBox*>())
    if (box->text() == "Numbers, .h5") box->setChecked(true);
  path->setFocus();
  TestWindow::type_key(Qt::Key_Return);
  REQUIRE(chosen());
  CHECK(chosen()->accessibleDescription() == "mine.data.h5 already exists.");
  CHECK(is_stored(folder.filePath("mine.data.h5")));
}

TEST_CASE("the page of export shows the figure as it will be, and as other eyes see it") {
  TestWindow test;
  test.open();
  test.press(Qt::Key_E);
  const auto shown = [&] {
    for (const QLabel* label : test.window.side().findChildren<QLabel*>())
      if (label->accessibleName() == "The figure") return label->pixmap().toImage();
    return QImage();
  };
  const auto box = [&](const QString& name) {
    for (QComboBox* candidate : test.window.side().findChildren<QComboBox*>())
      if (candidate->accessibleName() == name) return candidate;
    return static_cast<QComboBox*>(nullptr);
  };
  REQUIRE(QTest::qWaitFor([&] { return !shown().isNull(); }, long_enough_ms));
  const QImage column = shown();
  CHECK(column.width() > column.height());
  box("Preview")->setCurrentIndex(4);
  REQUIRE(QTest::qWaitFor([&] { return shown().isGrayscale(); }, long_enough_ms));
  box("Preview")->setCurrentIndex(0);
  box("Size")->setCurrentIndex(4);
  const auto is_slide = [&] { return std::abs(static_cast<double>(shown().width()) / shown().height() - 16.0 / 9) < 0.02; };
  CHECK(QTest::qWaitFor(is_slide, long_enough_ms));
}

TEST_CASE("a figure that the window opens again leads to what it was made from, interventions and all") {
  test_application();
  const DefaultRun shipped = default_run();
  const std::unique_ptr<RunSource> source = make_session_source(nullptr);
  MainWindow window(*source, {.opengl = false, .start_words = "test", .theme = ThemeChoice::light, .scale = 1, .autoplay = false});
  window.show();
  const PromptInput prompt = load_prompt({}, shipped.prompt.string());
  window.open_checkpoint(shipped.checkpoint, prompt);
  Navigator& navigator = window.navigator();
  const auto settled = [&] { return navigator.run() && !navigator.is_opening() && navigator.is_current(); };
  REQUIRE(QTest::qWaitFor(settled, long_enough_ms));
  navigator.intervene({parse_intervention("zero partition 4 at 240")});
  REQUIRE(QTest::qWaitFor([&] { return settled() && navigator.run()->branch.number == 1; }, long_enough_ms));
  navigator.move({.token = 250, .layer = 1, .head = 0, .slot = 2});
  window.focused_panel().set_view(*find_view("attention"));
  REQUIRE(QTest::qWaitFor([&] { return settled() && !window.focused_panel().is_pending(); }, long_enough_ms));
  ViewRecipe one_partition = window.focused_panel().recipe().value();
  one_partition.mode = 3;
  CHECK(panel_of(one_partition, {}, navigator.prompt()).mode == "Only partition 1");
  window.focused_panel().set_view(*find_view("similarity"));
  REQUIRE(QTest::qWaitFor([&] { return settled() && !window.focused_panel().is_pending(); }, long_enough_ms));
  const QTemporaryDir folder;
  FigureExport figure{
      .recipe = window.focused_panel().recipe().value(), .spec = {}, .device = "cpu", .path = folder.filePath("a.pdf").toStdString()};
  figure.spec.panels = {panel_of(figure.recipe, {navigator.checkpoint().string()}, navigator.prompt())};
  figure.with_data = figure.with_caption = true;
  REQUIRE(write_figure(figure).empty());
  CHECK(QDir(folder.path()).entryList(QDir::Files) == QStringList{"a.caption.txt", "a.data.h5", "a.pdf"});

  window.open_checkpoint(shipped.checkpoint, prompt);
  REQUIRE(QTest::qWaitFor([&] { return settled() && navigator.run()->branch.number == 0; }, long_enough_ms));
  window.focused_panel().set_view(*find_view("state"));
  window.open_path(figure.path);
  REQUIRE(QTest::qWaitFor([&] { return settled() && navigator.cursor().token == 250; }, long_enough_ms));
  CHECK(navigator.run()->branch.interventions == std::vector<std::string>{"zero partition 4 at 240"});
  CHECK(navigator.cursor().layer == 1);
  CHECK(navigator.cursor().slot == 2);
  CHECK(window.stage().panels().front()->row().id == "similarity");

  window.open_path(shipped.prompt.parent_path() / "no-such-figure.pdf");
  CHECK(settled());
}

}  // namespace statescope::figure_test

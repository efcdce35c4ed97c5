#include "app/figure/figure.h"

#include <sys/resource.h>

#include <QDir>
#include <QFile>
#include <QSvgRenderer>
#include <cmath>
#include <csignal>

#include "engine/error.h"
#include "tests/app/window_cases.h"
#include "tests/catch.h"

namespace statescope {
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

}  // namespace

TEST_CASE("a figure has the size asked for, in each format") {
  TestWindow test;
  test.open();
  const QTemporaryDir folder;
  const View& view = test.window.focused_panel().view();
  const FigureSize size{.width_mm = 89, .height_mm = 60};

  write_figure(view, size, folder.filePath("state.png"));
  const QImage picture(folder.filePath("state.png"));
  CHECK(picture.size() == QSize(2102, 1417));  // 600 dpi
  CHECK(picture.pixelColor(2, 2) == to_qcolor(light_theme().panel));

  write_figure(view, size, folder.filePath("state.SVG"));
  const QSvgRenderer svg(folder.filePath("state.SVG"));
  CHECK(svg.isValid());
  CHECK(svg.viewBox().size() == QSize(336, 227));

  write_figure(view, size, folder.filePath("state.pdf"));
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
  const View& view = test.window.focused_panel().view();
  CHECK_THROWS_AS(write_figure(view, {}, folder.filePath("state.gif")), Error);
  CHECK_THROWS_AS(write_figure(view, {}, folder.filePath("no/such/folder/state.pdf")), Error);
  const SmallFiles full;
  CHECK_THROWS_AS(write_figure(view, {}, folder.filePath("state.pdf")), Error);
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
  CHECK(QImage(folder.filePath("mine.png")).pixelColor(2, 2) == to_qcolor(light_theme().panel));
  path->setText(folder.filePath("mine.doc"));
  TestWindow::type_key(Qt::Key_Return);
  bool said = false;
  for (const QLabel* label : test.window.side().findChildren<QLabel*>()) said |= label->text().contains("ends with .pdf, .svg or .png");
  CHECK(said);
}

}  // namespace statescope

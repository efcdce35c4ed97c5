#include "app/window_main.h"

#include <fmt/format.h>

#include <QApplication>
#include <QTimer>
#include <cstdio>

#include "app/main_window.h"
#include "app/theme.h"

namespace statescope {
namespace {

constexpr int settle_ms = 200;  // for layouts and the first frames, before a screenshot

void move_to(Navigator& navigator, const WindowOptions& options) {
  const auto wanted = [](std::int64_t index) { return index >= 0 ? std::optional(index) : std::nullopt; };
  CursorMove place;
  place.token = wanted(options.token);
  place.layer = wanted(options.layer);
  place.head = wanted(options.head);
  place.slot = wanted(options.slot);
  navigator.move(place);
}

/// Goes to the place asked for when the first run stands, writes the picture and ends the program.
void take_screenshot(MainWindow& window, const WindowOptions& options) {
  Navigator& navigator = window.navigator();
  window.resize(options.width, options.height);
  QObject::connect(&navigator, &Navigator::failed, qApp, [](const QString& message) {
    fmt::print(stderr, "statescope: {}\n", message.toStdString());
    QApplication::exit(1);
  });
  QObject::connect(&navigator, &Navigator::run_changed, &window, [&] { move_to(navigator, options); }, Qt::SingleShotConnection);
  const auto shoot = [&] {
    QTimer::singleShot(settle_ms, &window, [&] {
      const bool written = window.grab().save(QString::fromStdString(options.screenshot), "PNG");
      if (!written) fmt::print(stderr, "statescope: {} could not be written\n", options.screenshot);
      QApplication::exit(written ? 0 : 1);
    });
  };
  QObject::connect(&navigator, &Navigator::snapshot_changed, &window, shoot, Qt::SingleShotConnection);
}

std::unique_ptr<QSettings> open_settings(const WindowOptions& options) {
  const bool none = qEnvironmentVariableIsSet("STATESCOPE_NO_SETTINGS") || !options.screenshot.empty();
  return none ? nullptr : std::make_unique<QSettings>("statescope", "statescope");
}

QString drawn_with(bool opengl, const WindowOptions& options, const std::string& why_not) {
  if (opengl) return "Drawn with OpenGL.";
  if (options.software) return "Drawn without OpenGL, as asked.";
  return QStringLiteral("Drawn without OpenGL: %1.").arg(QString::fromStdString(why_not));
}

}  // namespace

int run_window(int argc, char** argv, const WindowOptions& options) {
  prepare_opengl();
  QApplication application(argc, argv);
  set_up_application();

  std::string why_not;
  const bool opengl = !options.software && opengl_is_available(why_not);
  const std::unique_ptr<QSettings> settings = open_settings(options);
  const std::unique_ptr<RunSource> source = make_session_source();
  MainWindow window(*source, {.opengl = opengl,
                              .drawn_with = drawn_with(opengl, options, why_not),
                              .theme = options.theme,
                              .scale = options.scale,
                              .settings = settings.get(),
                              .autoplay = options.autoplay && options.screenshot.empty()});
  window.resize(1440, 900);
  if (!options.screenshot.empty()) take_screenshot(window, options);
  window.show();
  if (!options.checkpoint.empty()) window.open_checkpoint(options.checkpoint, options.prompt);
  return QApplication::exec();
}

}  // namespace statescope

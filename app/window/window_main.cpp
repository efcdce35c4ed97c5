#include "app/window/window_main.h"

#include <fmt/format.h>

#include <QApplication>
#include <QSaveFile>
#include <QScreen>
#include <QTimer>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "app/common/interruption.h"
#include "app/common/runtime_folder.h"
#include "app/controls/theme.h"
#include "app/inspect/arguments.h"
#include "app/inspect/inspecting.h"
#include "app/lesson/player.h"
#include "app/remote/engine_runs.h"
#include "app/window/figure_in_window.h"
#include "app/window/main_window.h"
#include "app/window/translation.h"
#include "engine/place_words.h"

namespace statescope {
namespace {

constexpr int settle_ms = 200;  // for layouts and the first frames, before a screenshot
constexpr int look_ms = 100;
constexpr int away_ms = 15'000;  // that a screenshot waits for an engine which does not answer any more

void move_to(Navigator& navigator, const WindowOptions& options) {
  const auto wanted = [](std::int64_t index) { return index >= 0 ? std::optional(index) : std::nullopt; };
  CursorMove place;
  place.token = wanted(options.token);
  place.layer = wanted(options.layer);
  place.head = wanted(options.head);
  place.slot = wanted(options.slot);
  navigator.move(place);
}

/// One line where the place asked for is not in the run; else nothing.
std::string out_of_range(const Navigator& navigator, const WindowOptions& options) {
  const auto check = [](const char* what, std::int64_t index, std::int64_t count) {
    return index < count ? std::string() : no_such(what, index, count);
  };
  const std::vector<LayerInfo>& layers = navigator.run()->model.layers;
  const std::int64_t layer_index = options.layer >= 0 ? options.layer : navigator.cursor().layer;
  if (std::string words = check("token", options.token, navigator.tokens()); !words.empty()) return words;
  if (std::string words = check("layer", layer_index, std::ssize(layers)); !words.empty()) return words;
  const LayerInfo& layer = layers[static_cast<std::size_t>(layer_index)];
  if (std::string words = check("head", options.head, std::max<std::int64_t>(1, layer.most_heads())); !words.empty()) return words;
  return check("slot", options.slot, std::max<std::int64_t>(1, layer.slots()));
}

void fail(const std::string& words) {
  fmt::print(stderr, "statescope: {}\n", words);
  QApplication::exit(1);
}

QtMessageHandler usual_messages = nullptr;

/// What Qt says while it looks for a place for windows is of interest only where it finds none; then it would abort.
void hear_of_display(QtMsgType type, const QMessageLogContext& where, const QString& words) {
  static QString reason, general;
  const QLatin1String category(where.category);
  if (category == QLatin1String("qt.qpa.plugin")) {
    if (general.isEmpty()) general = words;
  } else if (category.startsWith(QLatin1String("qt.qpa"))) {
    reason = words;
  } else if (type != QtFatalMsg) {
    usual_messages(type, where, words);
  }
  if (type != QtFatalMsg) return;
  const QString& said = !reason.isEmpty() ? reason : !general.isEmpty() ? general : words;
  fmt::print(stderr, "statescope: no window can be opened: {}; without DISPLAY, WAYLAND_DISPLAY and QT_QPA_PLATFORM it writes pictures\n",
             said.simplified().toStdString());
  std::_Exit(1);
}

/// Every view has what it asked for.
bool is_settled(MainWindow& window) {
  return std::ranges::none_of(window.stage().panels(), [](const ViewPanel* panel) { return panel->isVisible() && panel->is_pending(); });
}

/// By the lesson's own keys, one step after the other.
void go_to_step(MainWindow& window, std::int64_t step, bool revealed, const std::function<void()>& then) {
  auto* wait = new QTimer(&window);
  QObject::connect(wait, &QTimer::timeout, &window, [&window, step, revealed, then, wait] {
    LessonPlayer& lesson = window.lesson();
    if (!lesson.lesson()) return fail(window.error_bar().message().toStdString());
    if (!lesson.is_ready() || !is_settled(window) || window.navigator().is_playing()) return;
    const bool before = static_cast<std::int64_t>(lesson.index()) + 1 < step && lesson.index() + 1 < lesson.lesson()->steps.size();
    if (before || (revealed && !lesson.is_revealed())) return lesson.next();
    wait->stop();
    then();
  });
  wait->start(settle_ms / 4);
}

/// Ends the program where the engine does not come back: a picture is not waited for for ever. One that comes back is nothing to speak of.
class PatienceWithEngine {
 public:
  PatienceWithEngine() {
    away_.setSingleShot(true);
    QObject::connect(&away_, &QTimer::timeout, [this] { fail(words_); });
  }
  void hear(LinkNews news, const std::string& words) {
    words_ = words;
    if (news == LinkNews::refused || news == LinkNews::ended) return fail(words);
    if (news != LinkNews::lost) return away_.stop();
    if (!away_.isActive()) away_.start(away_ms);
  }

 private:
  QTimer away_;
  std::string words_;
};

/// Ctrl+C, or being told to end, closes the window as its frame does: what belongs to it elsewhere, an engine that ssh has started, hears
/// of it.
class EndsWhenTold {
 public:
  EndsWhenTold() {
    QObject::connect(&look_, &QTimer::timeout, [] {
      if (Interruption::asked()) QApplication::exit(Interruption::status());
    });
    look_.start(look_ms);
  }

 private:
  const Interruption interruption_;
  QTimer look_;
};

/// One line where the window has not become as large as was asked; else nothing.
std::string another_size(const QWidget& window, const WindowOptions& options) {
  const QSize asked(options.width, options.height), least = window.minimumSize();
  if (window.size() == asked) return "";
  const bool is_too_small = asked.width() < least.width() || asked.height() < least.height();
  return is_too_small
             ? fmt::format("--size {}x{}: a window has at least {}x{}", asked.width(), asked.height(), least.width(), least.height())
             : fmt::format("--size {}x{}: this display gives the window {}x{}", asked.width(), asked.height(), window.width(),
                           window.height());
}

/// Goes to the place asked for when all has been read and generated, writes the picture and ends the program. What is remarked of a run
/// that stands all the same, such as its first NaN, is in the picture, and the program says it and ends with 1.
void take_screenshot(MainWindow& window, const WindowOptions& options) {
  Navigator& navigator = window.navigator();
  window.setWindowState(window.windowState() & ~Qt::WindowMaximized);
  window.resize(options.width, options.height);
  QObject::connect(&navigator, &Navigator::failed, qApp, [](const QString& message) { fail(message.toStdString()); });
  const auto remark = std::make_shared<QString>();
  QObject::connect(&navigator, &Navigator::device_failed, &window, [remark](const QString& message) { *remark = message; });
  auto* errors = new QTimer(&window);  // of what is read besides a checkpoint: a figure, a lesson, another model
  QObject::connect(errors, &QTimer::timeout, &window, [&window, remark] {
    if (const QString message = window.error_bar().message(); !message.isEmpty() && message != *remark) fail(message.toStdString());
  });
  errors->start(settle_ms);
  const auto shoot = [&, remark] {
    QTimer::singleShot(settle_ms, &window, [&, remark] {
      QSaveFile file(QString::fromStdString(options.screenshot));
      if (const std::string words = another_size(window, options); !words.empty()) return fail(words);
      const bool written = file.open(QIODevice::WriteOnly) && window.grab().save(&file, "PNG") && file.commit();
      if (!written) return fail(options.screenshot + " could not be written");
      if (!remark->isEmpty()) return fail(remark->toStdString());
      QApplication::exit(0);
    });
  };
  if (!options.lesson.empty()) return go_to_step(window, options.step, options.revealed, shoot);
  const auto go = [&, shoot] {
    if (!navigator.run()) return;
    if (const std::string words = out_of_range(navigator, options); !words.empty()) return fail(words);
    move_to(navigator, options);
    auto* rest = new QTimer(&window);
    QObject::connect(rest, &QTimer::timeout, &window, [&, shoot, rest] {
      if (!navigator.is_current() || !window.comparison().is_settled()) return;
      rest->stop();
      for (const auto& peer : window.comparison().peers())
        if (!peer->problem().isEmpty()) return fail(peer->problem().toStdString());
      shoot();
    });
    rest->start(20);
  };
  QObject::connect(&navigator, &Navigator::opening_ended, &window, go, Qt::SingleShotConnection);
}

/// To the views and the place asked for, each as soon as it can be.
void stand_at_place(MainWindow& window, const WindowOptions& options) {
  Navigator& navigator = window.navigator();
  if (!options.views.empty()) {
    const auto arrange = [&window, &options] {
      const std::vector<std::string_view> views(options.views.begin(), options.views.end());
      window.arrange(arrangement_of(views));
    };
    QObject::connect(&navigator, &Navigator::opened, &window, arrange, Qt::SingleShotConnection);
  }
  if (!options.screenshot.empty()) return;  // goes there by itself
  const auto go = [&window, &navigator, &options] {
    if (!navigator.run()) return;
    const std::string words = out_of_range(navigator, options);
    if (words.empty()) return move_to(navigator, options);
    window.error_bar().show_message(QString::fromStdString(words));
  };
  QObject::connect(&navigator, &Navigator::opening_ended, &window, go, Qt::SingleShotConnection);
}

std::unique_ptr<QSettings> open_settings(const WindowOptions& options) {
  const bool none = qEnvironmentVariableIsSet("STATESCOPE_NO_SETTINGS") || !options.screenshot.empty();
  return none ? nullptr : std::make_unique<QSettings>("statescope", "statescope");
}

/// Where the window's runs are.
struct Reader {
  std::optional<ReachedEngine> engine;  // none: here
  WindowDevice device;
  LinkHearing link;  // empty: the window says what becomes of the connection

  std::unique_ptr<RunSource> source(const WindowOptions& options) const {
    if (engine) return make_remote_source(engine->place(), link);
    const auto opened = [backend = device.backend] { return backend; };
    return make_session_source(device.backend ? opened : Session::OpenDevice(), options.device, options.memory);
  }
  std::unique_ptr<RunSource> another(const WindowOptions& options) const {
    if (engine) return make_remote_source(engine->place(), link);
    return make_session_source([&options] { return open_cuda_device(options.device); }, options.device, options.memory);
  }
};

/// Throws Error where an engine on another machine does not answer.
Reader reader_of(const WindowOptions& options) {
  Reader reader;
  if (!options.engine.empty()) {
    reader.engine.emplace(options.engine, options.engine_token_file, options.engine_authorities, options.engine_options);
  } else {
    reader.device = open_window_device(options.device);
  }
  return reader;
}

QString words_of(const Reader& reader, const std::string& why_no_opengl, const WindowOptions& options) {
  if (!reader.engine) return start_words(reader.device, why_no_opengl, options.device.precision);
  const QString place = QString::fromStdString(reader.engine->place().name);
  return why_no_opengl.empty()
             ? MainWindow::tr("Reads on the engine at %1; draws with OpenGL.").arg(place)
             : MainWindow::tr("Reads on the engine at %1; draws without OpenGL: %2.").arg(place, QString::fromStdString(why_no_opengl));
}

}  // namespace

WindowDevice open_window_device(const DeviceChoice& choice) {
  try {
    return {open_cuda_device(choice), ""};
  } catch (const DeviceError& error) {
    return {nullptr, fmt::format("Reads on the CPU: {}.", error.what())};
  } catch (const std::bad_alloc&) {
    return {nullptr, fmt::format("Reads on the CPU: {} is out of memory.", choice.name)};
  }
}

QString start_words(const WindowDevice& device, const std::string& why_no_opengl, Precision precision) {
  const std::shared_ptr<Backend> reader = device.backend ? device.backend : make_cpu_backend(0, precision);
  const QString reads = QString::fromStdString(reader->description());
  const bool opengl = why_no_opengl.empty();
  QStringList sentences = {
      opengl ? MainWindow::tr("Reads on %1; draws with OpenGL.").arg(reads)
             : MainWindow::tr("Reads on %1; draws without OpenGL: %2.").arg(reads, QString::fromStdString(why_no_opengl))};
  if (!device.why_cpu.empty()) sentences += QString::fromStdString(device.why_cpu);
  return sentences.join(" ");
}

int run_window(int argc, char** argv, const WindowOptions& options) {
  const RuntimeFolder runtime_folder;
  prepare_opengl();
  usual_messages = qInstallMessageHandler(hear_of_display);
  QApplication application(argc, argv);
  qInstallMessageHandler(usual_messages);
  set_up_application();
  const Translation translation{QLocale::system()};

  std::string why_no_opengl = options.software ? MainWindow::tr("as asked").toStdString() : "";
  const bool opengl = !options.software && opengl_is_available(why_no_opengl);
  const std::unique_ptr<QSettings> settings = open_settings(options);
  const std::optional<EndsWhenTold> end = options.engine.empty() ? std::nullopt : std::make_optional<EndsWhenTold>();
  Reader reader = reader_of(options);
  PatienceWithEngine patience;
  if (!options.screenshot.empty()) reader.link = [&patience](LinkNews news, const std::string& words) { patience.hear(news, words); };
  const std::unique_ptr<RunSource> source = reader.source(options);
  const PromptInput prompt =
      options.prompt_there ? EngineRuns(reader.engine->place()).prompt(*options.prompt_there, options.checkpoint.string()) : options.prompt;
  InspectArguments inspecting;  // each checkpoint of a training that is watched, on its own task
  inspecting.device = options.device;
  MainWindow window(*source,
                    {.opengl = opengl,
                     .start_words = words_of(reader, why_no_opengl, options),
                     .theme = options.theme,
                     .scale = options.scale,
                     .settings = settings.get(),
                     .autoplay = options.autoplay && options.screenshot.empty() && !options.has_place(),
                     .make_source = [&options, &reader] { return reader.another(options); },
                     .inspect = [&inspecting](const FoundCheckpoint& found,
                                              const TrainingWatch::Tell& tell) { return inspect_checkpoint(inspecting, found, tell); },
                     .kept_inspections = kept_results(inspecting),
                     .is_elsewhere = reader.engine.has_value()});
  window.take_place(window.screen()->availableGeometry());
  if (!options.screenshot.empty()) take_screenshot(window, options);
  if (options.has_place()) stand_at_place(window, options);
  window.show();
  if (!options.lesson.empty())
    window.open_lesson(options.lesson);
  else if (options.checkpoint.extension() == ".scope" || options.checkpoint.extension() == ".zip" || is_figure(options.checkpoint))
    window.open_path(options.checkpoint);
  else if (!options.checkpoint.empty())
    window.open_checkpoint(options.checkpoint, prompt);
  if (!options.training.empty()) window.watch_training(options.training);
  for (const std::filesystem::path& checkpoint : options.beside) window.compare_with(checkpoint);
  return QApplication::exec();
}

}  // namespace statescope

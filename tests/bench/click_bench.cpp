// From a click on the text to the changed picture: the real window on the shipped run, in every arrangement, as the platform draws it
// (QT_QPA_PLATFORM=offscreen: without OpenGL; under xvfb-run: with Mesa's software OpenGL). With HOST:PORT: on the engine that serves
// there.
#include <fmt/format.h>

#include <QElapsedTimer>
#include <QTest>
#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "app/assets.h"
#include "app/cli/commands.h"
#include "app/controls/theme.h"
#include "app/remote/remote_source.h"
#include "app/window/main_window.h"

using namespace statescope;

namespace {

constexpr int kClicks = 60;

bool stands(MainWindow& window) {
  return window.navigator().is_current() &&
         std::ranges::none_of(window.stage().panels(), [](const ViewPanel* panel) { return panel->isVisible() && panel->is_pending(); });
}

template <class Condition>
void wait_for(const Condition& condition) {
  while (!condition()) QCoreApplication::processEvents(QEventLoop::AllEvents | QEventLoop::WaitForMoreEvents);
}

/// Which views have been built and painted since the click.
class Painted : public QObject {
 public:
  explicit Painted(MainWindow& window) : window_(window) {
    for (ViewPanel* panel : window.stage().panels()) {
      if (!panel->isVisible()) continue;
      panel->surface().installEventFilter(this);
      connect(panel, &ViewPanel::changed, this, [this, panel] {
        if (window_.navigator().is_current()) built_.insert(&panel->surface());
      });
      ++views_;
    }
  }
  void click() {
    built_.clear(), painted_.clear();
    first_ms = all_ms = 0;
    clock_.start();
  }
  bool has_all() const { return all_ms > 0; }
  double ms() const { return static_cast<double>(clock_.nsecsElapsed()) / 1e6; }

  double first_ms = 0, all_ms = 0;  // until the first of the views, until all of them show another token

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() == QEvent::Paint && built_.contains(watched))
      QMetaObject::invokeMethod(
          this, [this, watched] { note(watched); }, Qt::QueuedConnection);  // when it has been painted
    return false;
  }

 private:
  void note(QObject* surface) {
    painted_.insert(surface);
    if (first_ms == 0) first_ms = ms();
    if (std::ssize(painted_) == views_ && all_ms == 0) all_ms = ms();
  }

  MainWindow& window_;
  std::ptrdiff_t views_ = 0;
  QElapsedTimer clock_;
  std::set<QObject*> built_, painted_;
};

struct Times {
  std::vector<double> first, all, answered;  // ms
};

Times click_around(MainWindow& window) {
  Times times;
  Painted painted(window);
  QWidget& text = window.strip().surface();
  std::mt19937 random(1);
  while (std::ssize(times.all) < kClicks) {
    const QPoint at(static_cast<int>(random() % static_cast<unsigned>(text.width())),
                    static_cast<int>(random() % static_cast<unsigned>(text.height())));
    const std::int64_t before = window.navigator().cursor().token;
    painted.click();
    QTest::mouseClick(&text, Qt::LeftButton, {}, at);
    if (window.navigator().cursor().token == before) continue;
    wait_for([&] { return painted.has_all() && stands(window); });
    times.first.push_back(painted.first_ms);
    times.all.push_back(painted.all_ms);
    times.answered.push_back(painted.ms());
  }
  return times;
}

std::string words(std::vector<double> ms) {
  std::ranges::sort(ms);
  return fmt::format("{:5.1f} {:5.1f}", ms[ms.size() / 2], ms.back());
}

}  // namespace

int main(int argc, char** argv) {
  prepare_opengl();
  QApplication application(argc, argv);
  set_up_application();
  std::string why;
  const bool opengl = opengl_is_available(why);
  const std::unique_ptr<RunSource> source = argc > 1 ? make_remote_source(engine_place(argv[1], "", "")) : make_session_source(nullptr);
  MainWindow window(*source, {.opengl = opengl, .start_words = {}, .theme = ThemeChoice::light, .scale = 1, .autoplay = false});
  window.resize(1440, 900);
  window.show();
  const DefaultRun run = default_run();
  window.open_checkpoint(run.checkpoint, load_prompt({}, run.prompt.string()));
  wait_for([&] { return window.navigator().run() && !window.navigator().is_opening() && stands(window); });
  fmt::print("from a click on the text, ms, median and worst of {}, {}: until\n{:24} {:>12} {:>12} {:>12}\n", kClicks,
             opengl ? "with OpenGL" : "without OpenGL", "", "a view shows", "all show it", "all is known");
  for (const Preset& preset : presets()) {
    window.arrange(arrangement_of(preset.views));
    wait_for([&] { return stands(window); });
    const Times times = click_around(window);
    fmt::print("{:24} {:>12} {:>12} {:>12}\n", preset.name, words(times.first), words(times.all), words(times.answered));
  }
}

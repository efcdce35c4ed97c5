// The real window, driven by mouse and keys through a real run: with OpenGL where there is a display, else as Qt paints.
// What it measures it says and does not judge: how fast a machine is decides nothing.
#include <fmt/format.h>

#include <QElapsedTimer>

#include "app/assets.h"
#include "app/canvas/text_canvas.h"
#include "app/cli/commands.h"
#include "app/lesson/player.h"
#include "tests/app/window/watchdog.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

namespace statescope::driven_test {
namespace {

#ifdef STATESCOPE_SANITIZE
constexpr std::int64_t long_run = 4096;  // the sanitizer reads 32k tokens in a minute
#else
constexpr std::int64_t long_run = 32'768;
#endif

bool with_opengl() {
  test_application();
  std::string why;
  return opengl_is_available(why);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

std::int64_t branch_of(const RunInfo& run) { return run.branch.number; }

/// Watches the stage: whatever is painted, at rest, of another place or branch than the cursor's must say that it waits.
class StaleFrames : public QObject {
 public:
  explicit StaleFrames(MainWindow& window) : window_(window) {
    for (ViewPanel* panel : window.stage().panels()) {
      panel->surface().installEventFilter(this);
      connect(panel, &ViewPanel::changed, this, [this, panel] {
        built_[panel] = {window_.navigator().cursor().token, branch_of(*window_.navigator().run())};
      });
    }
  }
  int painted() const { return painted_; }
  const std::vector<std::string>& stale() const { return stale_; }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() != QEvent::Paint) return false;
    ++painted_;
    for (const ViewPanel* panel : window_.stage().panels()) {
      if (watched != &const_cast<ViewPanel*>(panel)->surface() || !built_.contains(panel)) continue;
      const Place built = built_[panel], wanted{window_.navigator().cursor().token, branch_of(*window_.navigator().run())};
      if (built != wanted && window_.navigator().cursor().progress == 1 && !panel->is_pending())
        stale_.push_back(fmt::format("{} shows token {} of branch {} as if it were {} of branch {}", panel->row().id, built.token,
                                     built.branch, wanted.token, wanted.branch));
    }
    return false;
  }

 private:
  struct Place {
    std::int64_t token = 0, branch = 0;
    bool operator==(const Place&) const = default;
  };

  MainWindow& window_;
  std::map<const ViewPanel*, Place> built_;
  int painted_ = 0;
  std::vector<std::string> stale_;
};

/// A window on the shipped run and the real session.
struct Driven {
  explicit Driven(PromptInput prompt, bool autoplay = false)
      : source((test_application(), make_session_source(nullptr))),
        window(*source, {.opengl = with_opengl(),
                         .start_words = "test",
                         .theme = ThemeChoice::light,
                         .scale = 1,
                         .settings = nullptr,
                         .autoplay = autoplay,
                         .make_source = [] { return make_session_source(nullptr); }}) {
    window.resize(1400, 900);
    window.show();
    window.activateWindow();
    window.open_checkpoint(default_run().checkpoint, std::move(prompt));
    REQUIRE(QTest::qWaitFor([this] { return navigator().run() && !navigator().is_opening() && is_settled(); }, 10 * long_enough_ms));
  }

  Navigator& navigator() { return window.navigator(); }
  std::int64_t token() { return navigator().cursor().token; }
  /// Every view stands at the cursor.
  bool is_settled() {
    return navigator().is_current() &&
           std::ranges::none_of(window.stage().panels(), [](const ViewPanel* panel) { return panel->isVisible() && panel->is_pending(); });
  }
  bool settle() {
    return QTest::qWaitFor([this] { return is_settled(); }, long_enough_ms);
  }
  void press(int key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    QTest::keyClick(window.focused_panel().surface().window(), static_cast<Qt::Key>(key), modifiers);
  }

  std::unique_ptr<RunSource> source;
  MainWindow window;
};

PromptInput shipped_prompt() { return load_prompt({}, default_run().prompt.string()); }

/// The shipped prompt's words again and again.
PromptInput long_prompt() {
  const std::string words = shipped_prompt().text;
  PromptInput prompt;
  const auto length = std::ranges::count(words, ' ') + 1;
  for (std::int64_t i = 0; i < long_run + length; i += length) prompt.text += (i == 0 ? "" : " ") + words;
  prompt.generate = 0;
  return prompt;
}

/// Drags the mouse over `widget` from left to right and back, as fast as the window answers.
void drag(QWidget& widget, int y, int moves) {
  const int left = 8, right = widget.width() - 8;
  const auto at = [&](int i) {
    const int there = i <= moves / 2 ? i : moves - i;
    return QPoint(left + (right - left) * there / (moves / 2), y);
  };
  QTest::mousePress(&widget, Qt::LeftButton, {}, at(0));
  for (int i = 1; i <= moves; ++i) {
    QTest::mouseMove(&widget, at(i));
    QCoreApplication::processEvents();
  }
  QTest::mouseRelease(&widget, Qt::LeftButton, {}, at(moves));
}

}  // namespace

TEST_CASE("driven: the window opens, plays, moves pictures and steps back", "[opengl]") {
  Driven test(shipped_prompt());
  Watchdog watchdog;
  const StaleFrames frames(test.window);
  int moving = 0;
  std::vector<double> frame_ms;
  double cpu = thread_cpu_ms();
  QObject context;
  QObject::connect(&test.navigator(), &Navigator::motion_changed, &context, [&] {
    const double now = thread_cpu_ms();
    if (test.navigator().cursor().progress < 1 && moving++ > 0) frame_ms.push_back(now - cpu);
    cpu = now;
  });
  test.press(Qt::Key_Space);
  REQUIRE(QTest::qWaitFor([&] { return test.token() >= 3; }, long_enough_ms));
  test.press(Qt::Key_Space);
  CHECK_FALSE(test.navigator().is_playing());
  CHECK(moving > 0);
  const std::int64_t stopped = test.token();
  test.press(Qt::Key_Left);
  CHECK(test.token() == stopped - 1);
  REQUIRE(test.settle());
  CHECK(frames.painted() > 0);
  CHECK(frames.stale() == std::vector<std::string>());
  WARN("a frame of motion takes " << median(frame_ms) << " ms of the interface thread's CPU time with Qt and the driver (median of "
                                  << frame_ms.size() << "), the longest stretch of work " << watchdog.longest_ms() << " ms");
}

TEST_CASE("driven: it plays by itself, and the first picture moves soon", "[opengl]") {
  QElapsedTimer clock;
  clock.start();
  Driven test(shipped_prompt(), true);
  const qint64 standing = clock.elapsed();
  REQUIRE(QTest::qWaitFor([&] { return test.navigator().is_playing() && test.navigator().cursor().progress < 1; }, long_enough_ms));
  WARN("a picture stands " << standing << " ms after the window was asked for and moves after " << clock.elapsed() << " ms");
}

TEST_CASE("driven: 32k tokens are dragged through without a stale frame shown as current", "[opengl]") {
  Driven test(long_prompt());
  REQUIRE(test.navigator().tokens() >= long_run);
  const StaleFrames frames(test.window);
  Watchdog watchdog;
  TimeSlider& slider = *test.window.findChild<TimeSlider*>();
  drag(slider, slider.height() / 2, 200);
  CHECK(test.token() < long_run / 20);  // back at the left
  REQUIRE(test.settle());
  const double time = watchdog.take_longest_ms();

  test.window.go_to_token(long_run / 2);
  REQUIRE(test.settle());
  ViewPanel& strip = test.window.strip();
  drag(strip.surface(), 14, 200);
  CHECK(std::abs(test.token() - long_run / 2) <= long_run / 2);
  REQUIRE(test.settle());
  CHECK(frames.painted() > 0);
  CHECK(frames.stale() == std::vector<std::string>());
  WARN("dragging over the time line gave the interface thread at most " << time << " ms of work at a stretch, over the text "
                                                                        << watchdog.longest_ms() << " ms");
}

TEST_CASE("driven: two models are compared under one cursor and left again", "[opengl]") {
  Driven test(shipped_prompt());
  const std::int64_t tokens = test.navigator().tokens();
  Comparison& comparison = test.window.comparison();
  test.window.compare_with(assets_folder() / "checkpoints/niah/niah-gla.h5");
  REQUIRE(comparison.peers().size() == 1);
  PeerRun& peer = *comparison.peers().front();
  const auto both_stand = [&] {
    return QTest::qWaitFor([&] { return test.is_settled() && !comparison.is_opening() && comparison.is_settled(); }, long_enough_ms);
  };
  REQUIRE(both_stand());
  CHECK(peer.problem().toStdString() == "");
  CHECK(peer.follows());
  Watchdog watchdog;
  for (const int key : {Qt::Key_End, Qt::Key_Left, Qt::Key_Home, Qt::Key_Right, Qt::Key_Up, Qt::Key_BracketRight}) {
    test.press(key);
    REQUIRE(both_stand());
    CHECK(peer.navigator().is_current());
    CHECK(peer.navigator().cursor().token == test.token());
    CHECK(peer.navigator().snapshot()->run->model.name != test.navigator().snapshot()->run->model.name);
  }
  CHECK(test.navigator().tokens() == tokens);
  test.window.stop_comparing();
  CHECK(comparison.peers().empty());
  test.press(Qt::Key_Right);
  REQUIRE(test.settle());
  WARN("a step of two models: at most " << watchdog.longest_ms() << " ms of the interface thread's work at a stretch");
}

TEST_CASE("driven: a lesson is opened, gone through and left by keyboard alone", "[opengl]") {
  Driven test(shipped_prompt());
  LessonPlayer& lesson = test.window.lesson();
  const auto stands = [&] {
    return QTest::qWaitFor([&] { return lesson.lesson() && lesson.is_ready() && test.navigator().is_current(); }, long_enough_ms);
  };
  test.press(Qt::Key_F2);
  QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
  REQUIRE(stands());
  Watchdog watchdog;
  const std::size_t steps = lesson.lesson()->steps.size();
  for (std::size_t i = 0; i < steps; ++i) {
    INFO("step " << i + 1);
    CHECK(lesson.index() == i);
    if (lesson.step().question) test.press(Qt::Key_1, Qt::AltModifier);
    REQUIRE(stands());
    CHECK(lesson.is_revealed());
    if (i + 1 < steps) test.press(Qt::Key_N);
    REQUIRE(stands());
  }
  CHECK(lesson.index() == steps - 1);
  test.press(Qt::Key_L, Qt::ControlModifier | Qt::ShiftModifier);
  CHECK_FALSE(lesson.lesson());
  WARN("a lesson's steps: at most " << watchdog.longest_ms() << " ms of the interface thread's work at a stretch");
}

TEST_CASE("driven: intervenes, undoes and does it again by keyboard alone", "[opengl]") {
  Driven test(shipped_prompt());
  const std::int64_t token = 240;  // of the question, whose answer partition 4 has
  test.window.go_to_token(token);
  REQUIRE(test.settle());
  const auto state = [&] { return test.navigator().snapshot()->state.values; };
  const auto shows = [&](std::int64_t branch) {
    return QTest::qWaitFor(
        [&] { return branch_of(*test.navigator().run()) == branch && !test.navigator().is_opening() && test.is_settled(); },
        long_enough_ms);
  };
  const std::vector<float> own = state();
  const StaleFrames frames(test.window);
  Watchdog watchdog;

  test.press(Qt::Key_I, Qt::ControlModifier);
  const auto has_line = [] { return QApplication::focusWidget()->objectName() == "intervention"; };
  for (int i = 0; i < 10 && !has_line(); ++i) QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
  REQUIRE(has_line());
  QTest::keyClick(QApplication::focusWidget(), Qt::Key_A, Qt::ControlModifier);
  QTest::keyClicks(QApplication::focusWidget(), QStringLiteral("zero partition 4 at %1").arg(token));
  QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
  REQUIRE(shows(1));
  const std::vector<float> changed = state();
  CHECK(changed != own);
  CHECK(test.token() == token);

  test.press(Qt::Key_Escape);
  CHECK(test.window.side().page() == SidePage::inspector);
  for (int i = 0; i < 3; ++i) {
    test.press(Qt::Key_Z, Qt::ControlModifier);
    REQUIRE(shows(0));
    CHECK(state() == own);
    test.press(Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
    REQUIRE(shows(1));
    CHECK(state() == changed);
  }
  CHECK(frames.painted() > 0);
  CHECK(frames.stale() == std::vector<std::string>());
  WARN("an intervention, undone and done again: at most " << watchdog.longest_ms() << " ms of the interface thread's work at a stretch");
}

TEST_CASE("driven: from a click to the changed picture, and what each view's drawing costs", "[opengl]") {
  Driven test(shipped_prompt());
  ViewPanel& panel = *test.window.stage().panels().front();
  struct {
    double ms = 0;
    std::string view;
  } slowest_click, slowest_drawing;
  for (const ViewRow& row : view_catalogue()) {
    if (row.id == strip_view) continue;
    panel.set_view(row);
    REQUIRE(test.settle());
    for (const std::int64_t token : {20, 90, 60}) {
      QElapsedTimer clock;
      clock.start();
      test.window.go_to_token(token);
      REQUIRE(test.settle());
      panel.surface().repaint();
      if (const double ms = static_cast<double>(clock.nsecsElapsed()) / 1e6; ms > slowest_click.ms)
        slowest_click = {ms, std::string(row.id)};
      CHECK(test.token() == token);
    }
    for (std::size_t mode = 0; mode < std::max<std::size_t>(1, panel.view().modes().size()); ++mode, panel.next_mode()) {
      REQUIRE(test.settle());
      std::vector<double> ms;
      for (int i = 0; i < 5; ++i) {
        TextCanvas canvas({900, 600});
        const double begin = thread_cpu_ms();
        panel.view().draw(canvas, {0, 0, 900, 600}, test.window.frame());
        ms.push_back(thread_cpu_ms() - begin);
      }
      if (median(ms) > slowest_drawing.ms) slowest_drawing = {median(ms), fmt::format("{}, mode {}", row.id, mode)};
    }
  }
  WARN("from a click to the changed picture at most " << slowest_click.ms << " ms (" << slowest_click.view << "); drawing a view at most "
                                                      << slowest_drawing.ms << " ms of CPU time (" << slowest_drawing.view << ")");
}

}  // namespace statescope::driven_test

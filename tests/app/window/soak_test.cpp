// The real window under random use for as long as it is told, not among the tests that always run:
//   STATESCOPE_SOAK=1800 QT_QPA_PLATFORM=offscreen build/release/app_tests "soak*"
// seconds, and STATESCOPE_SOAK_SEED what it does. It ends at once where the window does not come to rest, and tells what was done last.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <QElapsedTimer>
#include <deque>
#include <fstream>
#include <functional>
#include <random>

#include "app/assets.h"
#include "app/cli/commands.h"
#include "app/figure/figure.h"
#include "app/lesson/player.h"
#include "engine/error.h"
#include "tests/app/window/watchdog.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

namespace statescope::soak_test {
namespace {

namespace fs = std::filesystem;

/// Of this process, resident.
double megabytes() {
  std::int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

std::vector<fs::path> files_in(const fs::path& folder, const std::string& begin, const std::string& end) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(begin) && name.ends_with(end)) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

/// A reader who does anything.
class Reader {
 public:
  explicit Reader(unsigned seed)
      : random_(seed),
        source_((test_application(), make_session_source(nullptr))),
        window_(*source_, {.opengl = false,
                           .start_words = "test",
                           .theme = ThemeChoice::light,
                           .scale = 1,
                           .settings = nullptr,
                           .autoplay = false,
                           .make_source = [] { return make_session_source(nullptr); }}),
        checkpoints_(files_in(assets_folder() / "checkpoints/niah", "niah-", ".h5")),
        lessons_(files_in(assets_folder() / "lessons", "", ".md")) {
    std::erase_if(lessons_, [](const fs::path& file) { return file.filename() == "README.md"; });
    window_.resize(1400, 900);
    window_.show();
    window_.activateWindow();
    window_.open_checkpoint(default_run().checkpoint, load_prompt({}, default_run().prompt.string()));
  }

  bool rests() {
    const auto at_rest = [&] {
      const Navigator& navigator = window_.navigator();
      const auto waits = [](const ViewPanel* panel) { return panel->isVisible() && panel->is_pending(); };
      return navigator.run() && !navigator.is_opening() && navigator.is_current() && !window_.comparison().is_opening() &&
             std::ranges::none_of(window_.stage().panels(), waits);
    };
    QTest::qWait(2);  // what was asked for begins
    return QTest::qWaitFor(at_rest, long_enough_ms);
  }

  /// What stands on the stage.
  std::string stage() const {
    std::string views;
    for (const ViewPanel* panel : window_.stage().panels())
      if (panel->isVisible()) views += fmt::format("{}{}", views.empty() ? "" : " ", panel->row().id);
    return views;
  }

  /// In words.
  std::string act() {
    const int kind = below(200);
    if (kind < 110) return press();
    if (kind < 140) return seek();
    if (kind < 165) return look();
    if (kind < 180) return export_view();
    if (kind < 192) return follow_lesson();
    if (kind < 196) return compare();
    return open(checkpoints_[static_cast<std::size_t>(below(static_cast<int>(checkpoints_.size())))]);
  }

 private:
  int below(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }

  std::string press() {
    static constexpr std::array keys{Qt::Key_Left,  Qt::Key_Right, Qt::Key_Up, Qt::Key_Down, Qt::Key_BracketLeft, Qt::Key_BracketRight,
                                     Qt::Key_Home,  Qt::Key_End,   Qt::Key_1,  Qt::Key_2,    Qt::Key_3,           Qt::Key_4,
                                     Qt::Key_Plus,  Qt::Key_Minus, Qt::Key_0,  Qt::Key_D,    Qt::Key_S,           Qt::Key_Space,
                                     Qt::Key_Escape};
    const Qt::Key key = keys[static_cast<std::size_t>(below(keys.size()))];
    const bool shift = below(8) == 0 && (key == Qt::Key_Left || key == Qt::Key_Right);
    QTest::keyClick(window_.focused_panel().surface().window(), key, shift ? Qt::ShiftModifier : Qt::NoModifier);
    if (key == Qt::Key_Space) {
      QTest::qWait(300);
      window_.navigator().pause();
    }
    return fmt::format("key {}", static_cast<int>(key));
  }
  std::string seek() {
    const int token = below(static_cast<int>(std::max<std::int64_t>(1, window_.navigator().tokens())));
    window_.go_to_token(token);
    return fmt::format("token {}", token);
  }
  ViewPanel& some_panel() {
    const auto& panels = window_.stage().panels();
    return *panels[static_cast<std::size_t>(below(static_cast<int>(panels.size())))];
  }
  std::string look() {
    ViewPanel& panel = some_panel();
    const ViewRow& row = view_catalogue()[static_cast<std::size_t>(below(static_cast<int>(view_catalogue().size())))];
    const bool takes_minutes = row.id == "needle_grid";
    if (below(2) == 0 || takes_minutes || row.id == strip_view) {
      panel.next_mode();
      return fmt::format("next mode of {}", panel.row().id);
    }
    panel.set_view(row);
    return fmt::format("view {}", row.id);
  }
  std::string export_view() {
    const ViewPanel& panel = some_panel();
    FigureSpec spec;
    set_size(spec, "double");
    std::vector<std::unique_ptr<PanelPicture>> pictures;
    pictures.push_back(picture_of(panel.view()));
    try {
      const QByteArray made =
          figure_bytes(Figure(spec, std::move(pictures)), below(2) == 0 ? FigureFormat::pdf : FigureFormat::svg, nullptr);
      REQUIRE(!made.isEmpty());
    } catch (const Error&) {  // it shows nothing, or has no room
    }
    return fmt::format("figure of {}", panel.row().id);
  }
  std::string follow_lesson() {
    if (window_.lesson().lesson() && below(6) > 0) {
      window_.next_step();
      return fmt::format("lesson's step {}", window_.lesson().lesson() ? window_.lesson().index() : 0);
    }
    if (window_.lesson().lesson()) {
      window_.leave_lesson();
      return "lesson left";
    }
    const fs::path lesson = lessons_[static_cast<std::size_t>(below(static_cast<int>(lessons_.size())))];
    window_.open_lesson(lesson);
    return "lesson " + lesson.filename().string();
  }
  std::string compare() {
    if (!window_.comparison().peers().empty()) {
      window_.stop_comparing();
      return "no other model";
    }
    const fs::path other = checkpoints_[static_cast<std::size_t>(below(static_cast<int>(checkpoints_.size())))];
    window_.compare_with(other);
    return "beside it " + other.filename().string();
  }
  std::string open(const fs::path& checkpoint) {
    window_.open_shipped(checkpoint);
    return "opens " + checkpoint.filename().string();
  }

  std::mt19937 random_;
  std::unique_ptr<RunSource> source_;
  MainWindow window_;
  std::vector<fs::path> checkpoints_, lessons_;
};

}  // namespace

TEST_CASE("soak: random use for hours, without a stall or memory that grows", "[.soak]") {
  const int seconds = std::max(1, qEnvironmentVariableIntValue("STATESCOPE_SOAK")),
            seed = qEnvironmentVariableIntValue("STATESCOPE_SOAK_SEED");
  Reader reader(static_cast<unsigned>(seed));
  REQUIRE(reader.rests());
  QElapsedTimer clock;
  clock.start();
  Watchdog watchdog;
  std::deque<std::string> last;
  std::vector<double> memory;  // at the end of each tenth of the time
  std::int64_t actions = 0;
  std::vector<std::pair<double, std::string>> stalls;  // more than 50 ms of work at a stretch, what was done and what is shown
  while (clock.elapsed() < std::int64_t{1000} * seconds) {
    watchdog.take_longest_ms();
    last.push_back(reader.act());
    if (last.size() > 12) last.pop_front();
    const bool rests = reader.rests();
    INFO(fmt::format("after {} actions, the last of them: {}", actions, fmt::join(last, ", ")));
    REQUIRE(rests);
    ++actions;
    const double stretch = watchdog.take_longest_ms();
    const bool is_export = last.back().starts_with("figure");  // made here, as no window does it
    if (!is_export && stretch > 50) stalls.emplace_back(stretch, fmt::format("{:.0f} ms ({}; {})", stretch, last.back(), reader.stage()));
    if (clock.elapsed() > 100 * std::int64_t{seconds} * (std::ssize(memory) + 1)) memory.push_back(megabytes());
  }
  std::string course;
  for (const double megabytes : memory) course += fmt::format(" {:.0f}", megabytes);
  std::ranges::sort(stalls, std::greater());
  std::vector<std::string> worst;
  for (std::size_t i = 0; i < std::min<std::size_t>(stalls.size(), 10); ++i) worst.push_back(stalls[i].second);
  WARN(fmt::format(
      "{} s, seed {}: {} actions; MB at each tenth:{}; {} of them gave the interface thread more than 50 ms of work at a stretch: {}",
      seconds, seed, actions, course, stalls.size(), fmt::join(worst, "; ")));
  constexpr double noise = 100;  // MB
  if (memory.size() > 5) CHECK(memory.back() < memory[memory.size() / 2] + noise);
}

}  // namespace statescope::soak_test

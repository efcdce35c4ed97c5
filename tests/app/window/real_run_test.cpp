// The window on a trained checkpoint and the real session: every view in every way of looking gets what it asks for, at any token.
#include <fmt/format.h>

#include "app/assets.h"
#include "app/cli/commands.h"
#include "tests/app/window/watchdog.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

namespace statescope::real_run_test {
namespace {

bool still_working(const ViewPanel& panel) { return panel.is_pending() || panel.view().describe().find("worked out") != std::string::npos; }

bool wait_for(const ViewPanel& panel) {
  return QTest::qWaitFor([&] { return !still_working(panel); }, long_enough_ms);
}

}  // namespace

TEST_CASE("real run: every view says what the shipped model's memory did, at the first, the needle's and the last token and back") {
  test_application();
  const DefaultRun shipped = default_run();
  const std::unique_ptr<RunSource> source = make_session_source(nullptr);
  MainWindow window(*source, {.opengl = false, .start_words = "test", .theme = ThemeChoice::light, .scale = 1, .autoplay = false});
  window.resize(1400, 900);
  window.show();
  window.open_checkpoint(shipped.checkpoint, load_prompt({}, shipped.prompt.string()));
  Navigator& navigator = window.navigator();
  REQUIRE(QTest::qWaitFor([&] { return navigator.run() && !navigator.is_opening() && navigator.is_current(); }, long_enough_ms));
  ViewPanel& panel = *window.stage().panels().front();
  Watchdog watchdog;
  struct {
    double ms = 0;
    std::string where;
  } busiest;
  for (const ViewRow& row : view_catalogue()) {
    if (row.id == strip_view) continue;
    panel.set_view(row);
    const std::size_t modes = std::max<std::size_t>(panel.view().modes().size(), 1);
    for (std::size_t mode = 0; mode < modes; ++mode, panel.next_mode()) {
      for (const std::int64_t token : {std::int64_t{0}, std::int64_t{118}, navigator.tokens() - 1, std::int64_t{117}}) {
        window.go_to_token(token);
        INFO(row.id << ", mode " << mode << ", token " << token);
        REQUIRE(wait_for(panel));
        CHECK(navigator.is_current());
        CHECK_FALSE(panel.view().describe().empty());
        const std::string where = fmt::format("{}, mode {}, token {}", row.id, mode, token);
        if (const double ms = watchdog.take_longest_ms(); ms > busiest.ms) busiest = {ms, where};
      }
    }
  }
  // Held down: every step replaces the questions of the one before.
  for (int i = 0; i < 60; ++i) {
    window.go_to_token((i * 37) % navigator.tokens());
    QTest::qWait(1);
  }
  CHECK(wait_for(panel));
  WARN("the interface thread had at most " << busiest.ms << " ms of work at a stretch (" << busiest.where << "), while a key was held down "
                                           << watchdog.longest_ms() << " ms");
}

}  // namespace statescope::real_run_test

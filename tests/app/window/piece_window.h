// A window on a small model with subword pieces and a chat template.
#pragma once

#include <memory>
#include <optional>

#include "app/runs/run_source.h"
#include "tests/app/cli/piece_model.h"
#include "tests/app/window/window_cases.h"
#include "tests/temporary_folder.h"

namespace statescope::test {

/// It reads "The sea is calm.", without playing by itself, and generates so many tokens; unset: as many as usual.
struct PieceWindow {
  explicit PieceWindow(std::optional<std::int64_t> generate = {})
      : source((test_application(), write_piece_model(folder / "model", kPieceTemplate), make_session_source(nullptr))),
        window(*source, {.opengl = false, .start_words = "test", .theme = ThemeChoice::light, .scale = 1, .autoplay = false}) {
    window.resize(1400, 900);
    window.show();
    window.activateWindow();
    window.open_checkpoint(folder / "model", {.text = "The sea is calm.", .spans = {}, .ids = {}, .expected = {}, .generate = generate});
  }
  /// Whether what was asked for is on the screen.
  bool settled() {
    const Navigator& navigator = window.navigator();
    return navigator.run() && !navigator.is_opening() && navigator.is_current();
  }
  bool stands() {
    return QTest::qWaitFor([&] { return settled(); }, long_enough_ms);
  }

  const TemporaryFolder folder;
  std::unique_ptr<RunSource> source;
  MainWindow window;
};

}  // namespace statescope::test

// The window shows a run as soon as its first tokens have been read; the rest of the prompt follows.
#include <QLabel>
#include <QSignalSpy>

#include "app/assets.h"
#include "engine/run/reading.h"
#include "engine/unread.h"
#include "kernels/backend.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

namespace statescope::window_unread_test {
namespace {

/// A run of 64 tokens of which so many have been read.
std::shared_ptr<const RunInfo> read_so_far(std::size_t tokens) {
  RunInfo run = *fake_run(64);
  run.tokens.resize(tokens);
  return std::make_shared<const RunInfo>(std::move(run));
}

bool says(const MainWindow& window, const QString& words) {
  return std::ranges::any_of(window.findChildren<QLabel*>(), [&](const QLabel* label) { return label->text() == words; });
}

}  // namespace

TEST_CASE("the first picture comes before the whole prompt has been read; at the end all is as if read at once") {
  test_application();
  const std::filesystem::path checkpoint = shipped_checkpoint("niah-sse-gla-n4k1");
  PromptInput prompt;
  for (std::int32_t i = 0; i < 700; ++i) prompt.ids.push_back(1 + i * 7 % 40);
  prompt.generate = 3;
  const std::unique_ptr<RunSource> source = make_session_source(nullptr);
  MainWindow window(*source, {.opengl = false, .start_words = "test", .theme = ThemeChoice::light, .scale = 1, .autoplay = false});
  window.show();
  Navigator& navigator = window.navigator();
  std::vector<std::int64_t> unread;
  QObject::connect(&navigator, &Navigator::snapshot_changed, &window,
                   [&] { unread.push_back(statescope::unread(*navigator.snapshot()->run)); });
  window.open_checkpoint(checkpoint, prompt);
  REQUIRE(QTest::qWaitFor([&] { return navigator.run() && !navigator.is_opening() && navigator.is_current(); }, long_enough_ms));
  CHECK(unread.front() > 0);
  CHECK(statescope::unread(*navigator.run()) == 0);
  CHECK(navigator.cursor().token == 0);

  const auto opened = open_checkpoint(checkpoint);
  const auto model = Model::load(opened, make_cpu_backend());
  Reading at_once(model, make_tokenizer(*opened, model->vocab()), prompt);
  for (int i = 0; i < 3; ++i) at_once.generate_one();
  REQUIRE(navigator.tokens() == 703);
  for (const std::int64_t token : {0L, 100L, 127L, 128L, 500L, 699L, 702L}) {
    window.go_to_token(token);
    REQUIRE(QTest::qWaitFor([&] { return navigator.is_current(); }, long_enough_ms));
    const std::shared_ptr<const Snapshot> expected = at_once.snapshot(0, 0, token);
    CHECK(navigator.snapshot()->state.values == expected->state.values);
    CHECK(navigator.snapshot()->predictions.front().probability == expected->predictions.front().probability);
    CHECK(navigator.run()->tokens[static_cast<std::size_t>(token)].id == expected->run->tokens[static_cast<std::size_t>(token)].id);
  }
}

TEST_CASE("a token that has not been read yet is being read, and the cursor goes there when it has been") {
  TestWindow test;
  test.window.open_checkpoint("fake.h5", {});
  test.source.grow(read_so_far(16));
  CHECK(says(test.window, "/ 64, 16 read"));
  CHECK(test.token() == 0);
  test.navigator().move({.token = 40});
  CHECK(test.window.said() == "Token 40 is being read");
  CHECK(test.token() == 15);
  test.source.grow(read_so_far(32));
  CHECK(test.token() == 31);
  test.source.stand(fake_run(64));
  CHECK(test.token() == 40);
  CHECK(says(test.window, "/ 64"));
  CHECK(test.navigator().is_current());
}

TEST_CASE("playing waits until the prompt has been read, and says so") {
  TestWindow test;
  test.window.open_checkpoint("fake.h5", {});
  test.source.grow(read_so_far(4));
  test.navigator().set_speed(1000);
  test.press(Qt::Key_Space);
  CHECK(test.window.said() == "Plays as soon as the prompt has been read");
  QTest::qWait(100);
  CHECK(test.navigator().is_playing());
  CHECK(test.token() == 0);
  test.press(Qt::Key_Right);  // by hand it goes on at once
  CHECK(test.token() == 1);
  CHECK_FALSE(test.navigator().is_playing());
  test.press(Qt::Key_Space);
  test.source.stand(read_so_far(64));
  CHECK(test.window.said().isEmpty());
  REQUIRE(QTest::qWaitFor([&] { return !test.navigator().is_playing(); }, long_enough_ms));
  CHECK(test.token() == 63);
}

TEST_CASE("a checkpoint that is on its way is called by its name, beside the one that is shown") {
  TestWindow test;
  test.window.open_checkpoint("Small-0.8B", {});
  CHECK(says(test.window, "Small-0.8B"));
  CHECK_FALSE(says(test.window, "No model is open"));
  test.source.opening.progress(0, "opening");
  CHECK(says(test.window, "opening"));
  test.source.opening.failed(Cancelled());
  CHECK(says(test.window, "No model is open"));
  test.open();
  test.window.open_checkpoint("/models/Small-0.8B/", {});
  test.source.opening.progress(0.5, "reading");
  CHECK(says(test.window, "fake"));
  CHECK(says(test.window, "Small-0.8B: reading"));
  test.source.grow(read_so_far(16));
  test.source.opening.progress(0.6, "reading");
  CHECK(says(test.window, "reading"));
}

TEST_CASE("what was cancelled while it was read stays as far as it was read, and can be gone on with") {
  TestWindow test;
  test.window.open_checkpoint("fake.h5", {});
  test.source.grow(read_so_far(16));
  test.press(Qt::Key_Escape);
  CHECK(test.source.cancelled == 1);
  test.source.opening.failed(Cancelled());
  CHECK(test.navigator().tokens() == 16);
  CHECK(says(test.window, "/ 16"));
  test.navigator().generate_more(4);
  CHECK(test.source.generated == 68);
}

}  // namespace statescope::window_unread_test

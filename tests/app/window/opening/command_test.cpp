// The command line that opens the window as it stands.
#include "app/window/opening_command.h"

#include <QClipboard>

#include "app/assets.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

namespace statescope::opening_command_test {

TEST_CASE("opening command: checkpoint, prompt, place and views; what no line can bring is said") {
  const std::unique_ptr<RunSource> source = (test_application(), make_session_source(nullptr));
  MainWindow window(
      *source, {.theme = ThemeChoice::light, .scale = 1, .autoplay = false, .make_source = [] { return make_session_source(nullptr); }});
  window.show();
  CHECK(opening_command(window).line.empty());
  const std::filesystem::path checkpoint = std::filesystem::absolute(assets_folder() / "checkpoints/niah/niah-gla.h5").lexically_normal();
  window.open_shipped(checkpoint);
  const auto stands = [&] { return window.navigator().run() && !window.navigator().is_opening() && window.navigator().is_current(); };
  REQUIRE(QTest::qWaitFor(stands, long_enough_ms));
  window.arrange(arrangement_of(std::vector<std::string_view>{"state/Write", "decay"}));
  window.navigator().move({.token = 12, .layer = 2, .head = 1});
  REQUIRE(QTest::qWaitFor(stands, long_enough_ms));
  const OpeningCommand usual = opening_command(window);
  CHECK(usual.line.ends_with(" " + checkpoint.string() + " --token 12 --layer 2 --head 1 --slot 0 --view state/Write --view decay"));
  CHECK(usual.remark.isEmpty());

  const std::filesystem::path prompt = std::filesystem::absolute(assets_folder() / "prompts/needles-512.json").lexically_normal();
  window.open_path(prompt);
  REQUIRE(QTest::qWaitFor([&] { return stands() && window.navigator().tokens() > 400; }, long_enough_ms));
  CHECK(opening_command(window).line.find(" --prompt " + prompt.string() + " --token") != std::string::npos);

  window.navigator().read(
      {.text = "the code of hanna is 4 1", .spans = {{SpanKind::needle, 0, 8}}, .ids = {}, .expected = {}, .generate = 0});
  const bool read = QTest::qWaitFor([&] { return stands() && window.navigator().tokens() < 20; }, long_enough_ms);
  INFO(window.error_bar().message().toStdString());
  REQUIRE(read);
  const OpeningCommand own = opening_command(window);
  CHECK(own.line.find(R"( --text 'the code of hanna is 4 1' --token)") != std::string::npos);
  CHECK(own.remark == "It does not bring: what is marked in the text");
  window.action("copy-command")->trigger();
  CHECK(QApplication::clipboard()->text().toStdString() == opening_command(window).line);
}

}  // namespace statescope::opening_command_test

// What the window says of the model: that it reads no text and opens on ids, notes, a wrong answer, numbers that are none.
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QToolButton>
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "app/common/plain_words.h"
#include "app/pages/prompt_page.h"
#include "app/pages/prompt_text.h"
#include "app/panels/header.h"
#include "engine/run/sample_ids.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"
#include "tests/source.h"
#include "tests/temporary_folder.h"

namespace statescope::window_model_test {
namespace {

QString chips(const MainWindow& window) {
  QStringList words;
  for (const QToolButton* chip : window.findChild<Header*>()->findChildren<QToolButton*>("small"))
    if (chip->isVisible()) words += chip->text();
  return words.join(", ");
}

}  // namespace

TEST_CASE("a model without text opens on ids, says why, takes the reader's own, and the text comes back with the next model") {
  TestWindow test;
  test.source.known = {.no_text = "it has no tokenizer", .vocab = 100, .tokenizer = nullptr};
  test.window.open_checkpoint("plain", {.text = "the grass", .spans = {}, .ids = {}, .expected = {}, .generate = {}});
  auto branches = std::make_shared<BranchTree>();
  branches->prompt.ids = sample_ids(100);
  branches->checkpoint = "plain";
  test.source.opening.branches(branches);
  test.source.stand(fake_run(64));
  CHECK(chips(test.window) == "token ids, no text");
  test.window.show_page(SidePage::prompt);
  auto& page = *test.window.side().findChild<PromptPage*>();
  auto& text = *page.findChild<QPlainTextEdit*>();
  CHECK(ids_in(text.toPlainText().toStdString()) == sample_ids(100));
  CHECK(page.prompt().ids == sample_ids(100));
  for (const char* wrong : {"99999999999", "-3", "5 100"}) {
    text.selectAll();
    QTest::keyClicks(&text, wrong);
    INFO(wrong);
    const auto& counted = *page.findChild<QLabel*>("faint");
    REQUIRE(QTest::qWaitFor([&] { return !counted.text().isEmpty(); }, long_enough_ms));
    CHECK(counted.text() == "Token ids are whole numbers from 0 to 99 with spaces between them.");
    CHECK_FALSE(page.read_button()->isEnabled());
  }
  text.selectAll();
  QTest::keyClicks(&text, "5 6 7");
  REQUIRE(QTest::qWaitFor([&] { return page.read_button()->isEnabled(); }, long_enough_ms));
  const auto buttons = test.window.side().findChildren<QPushButton*>();
  (*std::ranges::find(buttons, "Read it", &QPushButton::text))->click();
  CHECK(test.source.read_prompt.ids == std::vector<std::int32_t>{5, 6, 7});
  test.source.stand(fake_run(3));
  test.source.known = {};
  test.window.open_path("other.h5");
  CHECK(test.source.read_prompt.text == "the grass");
  CHECK(test.source.read_prompt.ids.empty());
  test.source.stand(fake_run(8));
  CHECK(chips(test.window).isEmpty());
}

TEST_CASE("ids to begin with are of the vocabulary, and the same each time") {
  for (const std::int64_t vocab : {1, 7, 250'000}) {
    const std::vector<std::int32_t> ids = sample_ids(vocab);
    CHECK(ids.size() == 64);
    CHECK(ids == sample_ids(vocab));
    for (const std::int32_t id : ids) CHECK((id >= 0 && id < vocab));
    CHECK(std::equal(ids.begin(), ids.begin() + 32, ids.begin() + 32));
  }
}

TEST_CASE("what opening a model has to say stands in the header and on the model's page") {
  TestWindow test;
  RunInfo run = *fake_run(8);
  run.model.notes = {"2 tensors of a vision tower were passed over", "bias_x is not used; --force reads it all the same"};
  test.window.open_checkpoint("fake.h5", {});
  test.source.stand(std::make_shared<const RunInfo>(run));
  CHECK(chips(test.window) == "2 notes");
  for (QToolButton* chip : test.window.findChild<Header*>()->findChildren<QToolButton*>("small")) {
    if (!chip->isVisible()) continue;
    CHECK(chip->toolTip().endsWith("bias_x is not used"));
    chip->click();
  }
  CHECK(test.window.side().page() == SidePage::model);
  QString page;
  for (const QLabel* label : test.window.side().currentWidget()->findChildren<QLabel*>()) page += label->text() + "\n";
  for (const char* part : {"vision tower", "bias_x", "fake", "It reads and writes text"}) CHECK(page.contains(part));
}

TEST_CASE("the header says whether the answer is right") {
  TestWindow test;
  const auto said = [&](std::size_t expected) {
    RunInfo run = *fake_run(8);
    run.prompt_length = 7;
    run.expected = {run.tokens[expected]};
    test.window.open_checkpoint("fake.h5", {});
    test.source.stand(std::make_shared<const RunInfo>(run));
    const auto* answer = test.window.findChild<Header*>()->findChild<QLabel*>("answer");
    return answer->isVisible() ? answer->text() : QString();
  };
  CHECK(said(7) == "✓ right");
  CHECK(said(2) == "✗ wrong");
  test.open();
  CHECK_FALSE(test.window.findChild<Header*>()->findChild<QLabel*>("answer")->isVisible());
}

TEST_CASE("the window advises no option of the command line") {
  CHECK(without_options("gla has no tokenizer; give token ids with --ids instead") == "gla has no tokenizer");
  CHECK(without_options("text: word \"x\" is not known; --ids takes token ids instead") == "text: word \"x\" is not known");
  CHECK(without_options("a -- b; c") == "a -- b; c");
  TestWindow test;
  test.window.open_checkpoint("fake.h5", {});
  test.source.opening.failed(Error("it has no tokenizer; give token ids with --ids instead"));
  CHECK(test.window.error_bar().message() == "it has no tokenizer");
}

TEST_CASE("numbers that are not finite are told in the bar under the header") {
  TestWindow test;
  test.window.open_checkpoint("nan.h5", {});
  test.source.grow(fake_run(8));
  test.source.opening.not_finite("the model computes NaN from layer 1 on, at token 3");
  test.source.opening.done();
  CHECK(test.window.error_bar().isVisible());
  CHECK(test.window.error_bar().message().contains("layer 1"));
}

TEST_CASE("while a model opens, Esc says that it is heard") {
  TestWindow test;
  test.window.open_checkpoint("large", {});
  test.source.opening.progress(0, "opening");
  QTest::keyClick(&test.window, Qt::Key_Escape);
  CHECK(test.source.cancelled == 1);
  QStringList words;
  for (const QLabel* label : test.window.findChild<Header*>()->findChildren<QLabel*>()) words += label->text();
  CHECK(words.contains("cancelling"));
  test.source.opening.failed(Cancelled());
  CHECK_FALSE(test.window.error_bar().isVisible());
  CHECK_FALSE(test.navigator().is_opening());
}

TEST_CASE("a folder without a tokenizer opens on ids whatever prompt was there; NaN in its weights is told") {
  test_application();
  const std::filesystem::path golden = from_source("tests/golden/models/gla");
  const test::TemporaryFolder folder;
  for (const char* file : {"config.json", "model.safetensors"}) std::filesystem::copy_file(golden / file, folder / file);
  const std::unique_ptr<RunSource> source = make_session_source(nullptr);
  MainWindow window(*source, {.opengl = false, .start_words = "test", .theme = ThemeChoice::light, .scale = 1, .autoplay = false});
  window.show();
  window.open_checkpoint(folder.path(), {.text = "the code of anna", .spans = {}, .ids = {}, .expected = "4 1", .generate = {}});
  Navigator& navigator = window.navigator();
  const auto stands = [&] { return QTest::qWaitFor([&] { return !navigator.is_opening() && navigator.is_current(); }, long_enough_ms); };
  REQUIRE(stands());
  CHECK_FALSE(window.error_bar().isVisible());
  REQUIRE(navigator.run());
  CHECK(navigator.tokens() == 64);
  CHECK(navigator.prompt().ids == sample_ids(navigator.facts().vocab));
  CHECK(navigator.prompt_for_another().text == "the code of anna");
  CHECK(navigator.facts().no_text.contains("tokenizer"));
  CHECK_FALSE(navigator.facts().no_text.contains("--"));

  std::fstream weights(folder / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  weights.seekp(-16, std::ios::end);
  weights.write("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16);
  weights.close();
  window.open_checkpoint(folder.path(), {});
  REQUIRE(stands());
  REQUIRE(QTest::qWaitFor([&] { return window.error_bar().isVisible(); }, long_enough_ms));
  CHECK(window.error_bar().message().contains("NaN"));
}

}  // namespace statescope::window_model_test

// The reader's own prompt: marks in it, words that are not known, ids where a model reads no text; and what the window says of the model.
#include <QCheckBox>
#include <QClipboard>
#include <QLabel>
#include <QMouseEvent>
#include <QPlainTextEdit>
#include <QPushButton>
#include <algorithm>
#include <fstream>

#include "app/assets.h"
#include "app/common/plain_words.h"
#include "app/pages/prompt_page.h"
#include "app/pages/prompt_text.h"
#include "app/panels/header.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/run/sample_ids.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/app/window/piece_window.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"
#include "tests/source.h"
#include "tests/temporary_folder.h"

namespace statescope::window_prompt_test {
namespace {

struct PromptWindow : TestWindow {
  PromptWindow() { open(); }
  PromptPage& page() { return *window.side().findChild<PromptPage*>(); }
  QPlainTextEdit& text() { return *page().findChild<QPlainTextEdit*>(); }
  void ask() {
    window.show_page(SidePage::prompt);
    QTest::qWait(1);
  }
  void write(const QString& words) {
    text().selectAll();
    text().insertPlainText(words);
  }
  void select(const QString& words) {
    QTextCursor cursor = text().textCursor();
    const auto at = static_cast<int>(text().toPlainText().indexOf(words));
    cursor.setPosition(at);
    cursor.setPosition(at + static_cast<int>(words.size()), QTextCursor::KeepAnchor);
    text().setTextCursor(cursor);
  }
  void read() { button("Read it").click(); }
  QPushButton& button(const char* words) {
    const auto buttons = window.side().findChildren<QPushButton*>();
    return **std::ranges::find(buttons, words, &QPushButton::text);
  }
};

QString chips(const MainWindow& window) {
  QStringList words;
  for (const QToolButton* chip : window.findChild<Header*>()->findChildren<QToolButton*>("small"))
    if (chip->isVisible()) words += chip->text();
  return words.join(", ");
}

}  // namespace

TEST_CASE("prompt: needle, question and answer are marked in one's own text, and are bytes of it") {
  PromptWindow test;
  test.ask();
  test.write("grün: the code of anna is 41 . what is it ?");
  test.select("what is it ?");
  test.button("Question").click();
  test.select("the code of anna is 41");
  test.button("Needle").click();
  test.select("41");
  test.button("Answer").click();
  test.page().findChild<QLineEdit*>()->setText("41");
  test.read();
  const PromptInput& read = test.source.read_prompt;
  REQUIRE(read.spans.size() == 3);
  const auto words = [&](std::size_t i) { return read.text.substr(read.spans[i].begin, read.spans[i].end - read.spans[i].begin); };
  CHECK(read.spans[0].kind == SpanKind::needle);
  CHECK(words(0) == "the code of anna is 41");
  CHECK(read.spans[1].kind == SpanKind::answer);
  CHECK(words(1) == "41");
  CHECK(read.spans[2].kind == SpanKind::question);  // as they stand in the text
  CHECK(words(2) == "what is it ?");
}

TEST_CASE("prompt: marks move with the text, go with their words, and are taken back by the same key") {
  PromptWindow test;
  test.ask();
  test.write("the code is 41 .");
  test.select("code is 41");
  test.page().mark(SpanKind::needle);
  QTextCursor begin = test.text().textCursor();
  begin.setPosition(0);
  test.text().setTextCursor(begin);
  QTest::keyClicks(&test.text(), "ah : ");
  REQUIRE(test.page().prompt().spans.size() == 1);
  CHECK(test.page().prompt().spans[0].begin == 9);
  CHECK(test.page().prompt().spans[0].end == 19);
  test.select("code is 41");
  test.page().mark(SpanKind::needle);
  CHECK(test.page().prompt().spans.empty());
  test.select("code is 41");
  test.page().mark(SpanKind::needle);
  CHECK_FALSE(test.text().textCursor().hasSelection());  // which would hide the mark
  test.page().mark(SpanKind::needle);                    // where the caret stands
  CHECK(test.page().prompt().spans.empty());
  test.select("code is 41");
  test.page().mark(SpanKind::needle);
  test.write("other");
  CHECK(test.page().prompt().spans.empty());
}

TEST_CASE("prompt: a selection is begun anew inside another one, and its words stay where they are") {
  PromptWindow test;
  test.ask();
  test.write("the code of anna is 41");
  const auto place = [&](int position) {
    QTextCursor cursor(test.text().document());
    cursor.setPosition(position);
    return test.text().cursorRect(cursor).center();
  };
  test.text().selectAll();
  QWidget* paper = test.text().viewport();
  QTest::mousePress(paper, Qt::LeftButton, {}, place(4));
  for (const int position : {8, 12, 16}) {
    QMouseEvent moved(QEvent::MouseMove, place(position), paper->mapToGlobal(place(position)), Qt::NoButton, Qt::LeftButton, {});
    QApplication::sendEvent(paper, &moved);
  }
  QTest::mouseRelease(paper, Qt::LeftButton, {}, place(16));
  CHECK(test.text().textCursor().selectedText() == "code of anna");
  CHECK(test.text().toPlainText() == "the code of anna is 41");
}

TEST_CASE("prompt: the shipped prompts and the one of before can be chosen again") {
  PromptWindow test;
  const std::string before = "the prompt of before";
  test.navigator().read({.text = before, .spans = {{SpanKind::needle, 4, 10}}, .ids = {}, .expected = "x", .generate = 3});
  test.source.stand(fake_run(16));
  test.ask();
  test.write("mine");
  test.read();
  test.source.stand(fake_run(8));
  CHECK(test.navigator().prompt().text == "mine");
  test.ask();
  auto& from = *test.page().findChild<QComboBox*>();
  Q_EMIT from.activated(1);
  CHECK(test.text().toPlainText().toStdString() == before);
  test.read();
  CHECK(test.source.read_prompt.text == before);
  CHECK(test.source.read_prompt.spans.size() == 1);
  CHECK(test.source.read_prompt.expected == "x");
  const int needles = from.findText("needles-512");
  REQUIRE(needles > 1);
  Q_EMIT from.activated(needles);
  CHECK(test.page().prompt().text.size() > 1000);
  CHECK_FALSE(test.page().prompt().spans.empty());
}

TEST_CASE("prompt: what was written and not read is kept while its page is away, and until it is read") {
  PromptWindow test;
  const PromptInput first{.text = "the first", .spans = {}, .ids = {}, .expected = {}, .generate = {}};
  test.navigator().read(first);
  test.source.stand(fake_run(16));
  test.ask();
  test.write("the code is 41 .");
  test.select("code is 41");
  test.page().mark(SpanKind::needle);
  QTest::keyClick(&test.text(), Qt::Key_Escape);
  CHECK(test.window.side().page() == SidePage::inspector);
  test.ask();
  CHECK(test.text().toPlainText() == "the code is 41 .");
  CHECK(test.page().prompt().spans.size() == 1);
  test.window.open_path("other.h5");  // another model on the same prompt
  test.source.stand(fake_run(16));
  CHECK(test.text().toPlainText() == "the code is 41 .");
  test.read();
  test.source.opening.failed(Error("no"));
  test.window.escape();  // the message
  test.window.escape();
  test.ask();
  CHECK(test.text().toPlainText() == "the code is 41 .");

  auto& from = *test.page().findChild<QComboBox*>();
  Q_EMIT from.activated(from.findText("The prompt that is shown"));
  CHECK(test.text().toPlainText() == "the first");
  test.write("mine");
  test.navigator().read({.text = "dropped", .spans = {}, .ids = {}, .expected = {}, .generate = {}});
  test.source.stand(fake_run(16));
  CHECK(test.text().toPlainText() == "dropped");
  Q_EMIT from.activated(1);
  CHECK(test.text().toPlainText() == "mine");
  test.read();
  test.source.stand(fake_run(16));
  test.window.escape();
  test.ask();
  CHECK(test.text().toPlainText() == "mine");
  CHECK(test.navigator().prompt().text == "mine");
}

TEST_CASE("prompt: tokens are counted; an unknown word is named with those most like it") {
  const auto checkpoint = open_checkpoint(default_run().checkpoint);
  PromptWindow test;
  test.source.known.vocab = 1000;
  test.source.known.tokenizer = make_tokenizer(*checkpoint, 1000);
  test.open();
  test.ask();
  const auto said = [&](const char* words) {
    return QTest::qWaitFor(
        [&] {
          for (const QLabel* label : test.page().findChildren<QLabel*>())
            if (label->text().contains(QString::fromUtf8(words))) return true;
          return false;
        },
        long_enough_ms);
  };
  test.write("the code of yannick");
  CHECK(said("4 tokens"));
  CHECK(test.page().findChildren<QPlainTextEdit*>()[1]->toPlainText().split(' ').size() == 4);
  test.write("the codes of yannick");
  CHECK(said("The model does not know “codes”. It knows: code"));
  CHECK_FALSE(test.text().extraSelections().isEmpty());
}

TEST_CASE("prompt: what a tokenizer refuses is told by its place") {
  const auto checkpoint = open_checkpoint(default_run().checkpoint);
  const auto tokenizer = make_tokenizer(*checkpoint, 1000);
  const TextReading good = read_text(*tokenizer, 1000, "the code");
  CHECK(good.ids.size() == 2);
  CHECK(good.unknown.empty());
  const TextReading bad = read_text(*tokenizer, 1000, "the  xyzzyx\ncode");
  CHECK(bad.ids.empty());
  REQUIRE(bad.unknown.size() == 1);
  CHECK(bad.unknown[0].begin == 5);
  CHECK(bad.unknown[0].end == 11);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(ids_in("[12, 7 ; 99]\n") == std::vector<std::int32_t>{12, 7, 99});
  CHECK_FALSE(ids_in("12 seven"));
  CHECK_FALSE(ids_in("-1"));
  CHECK_FALSE(ids_in("99999999999"));
}

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

/// A window on a small model with a chat template that has read a text.
struct ChatWindow : test::PieceWindow {
  ChatWindow() : PieceWindow(0) {
    REQUIRE(stands());
    ask();
  }
  void ask() {
    window.show_page(SidePage::prompt);
    QTest::qWait(1);
  }
  PromptPage& page() { return window.side().prompt(); }
  QPlainTextEdit& text() { return *page().findChild<QPlainTextEdit*>(); }
  QCheckBox& chat() { return *page().findChild<QCheckBox*>(); }
  QListWidget& turns() { return *page().findChild<QListWidget*>(); }
  QPushButton& read() { return *page().read_button(); }
  QString counted() { return page().findChild<QLabel*>("faint")->text(); }
  bool is_counted() {
    return QTest::qWaitFor([&] { return read().isEnabled() && !counted().isEmpty(); }, long_enough_ms);
  }
  /// What was read in the end.
  const PromptInput& prompt() {
    REQUIRE(stands());
    return window.navigator().prompt();
  }
};

const std::string kThreeTurns =
    R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1 + 1?"}, {"role": "assistant", "content": "2"}])";

TEST_CASE("chat: turns are added, said, given away and taken away by keys, and stand in the template's form") {
  ChatWindow test;
  test.chat().setFocus();
  TestWindow::type_key(Qt::Key_Space);
  REQUIRE(test.turns().isVisible());
  CHECK(test.page().findChild<NumberBox*>()->value() == 32);  // an answer is waited for
  CHECK(test.turns().count() == 1);
  test.text().setFocus();
  test.text().selectAll();
  TestWindow::type("The code is 12.");
  TestWindow::type_key(Qt::Key_T, Qt::AltModifier);
  CHECK(test.text().hasFocus());
  CHECK(test.turns().currentRow() == 1);
  TestWindow::type("I see.");
  TestWindow::type_key(Qt::Key_T, Qt::AltModifier);
  TestWindow::type("Which?");
  TestWindow::type_key(Qt::Key_T, Qt::AltModifier);
  TestWindow::type("unwanted");
  test.turns().setFocus();
  TestWindow::type_key(Qt::Key_Delete);
  CHECK(test.turns().count() == 3);
  TestWindow::type_key(Qt::Key_Home);
  CHECK(test.text().toPlainText() == "The code is 12.");
  TestWindow::type_key(Qt::Key_Return);
  CHECK(test.text().hasFocus());
  QTextCursor words = test.text().textCursor();
  words.setPosition(12);
  words.setPosition(14, QTextCursor::KeepAnchor);
  test.text().setTextCursor(words);
  TestWindow::type_key(Qt::Key_N, Qt::AltModifier);
  REQUIRE(test.is_counted());
  TestWindow::type_key(Qt::Key_Return, Qt::ControlModifier);
  REQUIRE(QTest::qWaitFor([&] { return test.window.navigator().prompt().in_chat; }, long_enough_ms));
  const PromptInput& prompt = test.prompt();
  CHECK(prompt.text.starts_with(
      "<|im_start|>user\nThe code is 12.<|im_end|>\n<|im_start|>assistant\nI see.<|im_end|>\n<|im_start|>user\nWhich?"));
  REQUIRE(prompt.spans.size() == 1);
  CHECK(prompt.text.substr(prompt.spans[0].begin, 2) == "12");
  REQUIRE(prompt.turns.size() == 3);
  CHECK(prompt.turns[0].spans.size() == 1);
  test.ask();
  test.page().fill();
  CHECK(test.turns().count() == 3);
  CHECK(test.turns().item(1)->text() == "assistant: I see.");
  CHECK(test.text().toPlainText() == "Which?");
}

TEST_CASE("chat: a JSON of messages is opened or pasted as turns, and a wrong one is refused by name") {
  ChatWindow test;
  const auto write = [&](const char* name, const std::string& json) {
    std::ofstream(test.folder / name) << json;
    return test.folder / name;
  };
  test.window.open_path(write("talk.json", kThreeTurns));
  REQUIRE(QTest::qWaitFor([&] { return test.window.navigator().prompt().turns.size() == 3; }, long_enough_ms));
  CHECK(test.prompt().text.starts_with("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n1 + 1?"));
  CHECK(test.turns().count() == 3);
  CHECK(test.text().toPlainText() == "2");
  test.window.open_path(write("wrong.json", R"([{"role": "user", "content": "a"}, {"role": "user"}])"));
  CHECK(test.window.error_bar().message() == "wrong.json: message 2 has no \"content\"");
  CHECK(test.turns().count() == 3);

  test.chat().setChecked(false);
  test.text().selectAll();
  QApplication::clipboard()->setText(QString::fromStdString(kThreeTurns));
  test.text().paste();
  CHECK(test.chat().isChecked());
  CHECK(test.text().toPlainText() == "2");
  QApplication::clipboard()->setText("[1, 2]");
  test.text().selectAll();
  test.text().paste();
  CHECK(test.text().toPlainText() == "[1, 2]");  // no conversation: a text
  CHECK(test.turns().count() == 3);
}

TEST_CASE("chat: a model without a chat template says so of a JSON of messages") {
  PromptWindow test;
  const test::TemporaryFolder folder;
  std::ofstream(folder / "talk.json") << kThreeTurns;
  test.window.open_path(folder / "talk.json");
  CHECK(test.window.error_bar().message() == "talk.json is a chat, and fake has no chat template to read it by.");
}

TEST_CASE("chat: its turns come back with the session") {
  ChatWindow test;
  test.page().read_turns({{"user", "The code is 12.", {{SpanKind::needle, 12, 14}}}, {"assistant", "Yes."}, {"user", "Which?"}});
  REQUIRE(QTest::qWaitFor([&] { return test.window.navigator().prompt().turns.size() == 3; }, long_enough_ms));
  REQUIRE(test.stands());
  bool saved = false;
  QObject::connect(&test.window.navigator(), &Navigator::session_saved, &test.window, [&] { saved = true; });
  test.window.navigator().save_session(test.folder / "talk.scope");
  REQUIRE(QTest::qWaitFor([&] { return saved; }, long_enough_ms));
  test.window.navigator().read({.text = "Another.", .spans = {}, .ids = {}, .expected = {}, .generate = 0});
  CHECK(test.prompt().turns.empty());
  test.window.open_path(test.folder / "talk.scope");
  REQUIRE(QTest::qWaitFor([&] { return test.window.navigator().prompt().turns.size() == 3; }, long_enough_ms));
  REQUIRE(test.stands());
  test.page().fill();
  CHECK(test.chat().isChecked());
  CHECK(test.turns().item(0)->text() == "user: The code is 12.");
  CHECK(test.window.navigator().prompt().turns[0].spans.at(0).begin == 12);
}

TEST_CASE("prompt: what reads it stays in sight on a small screen, also in a chat") {
  ChatWindow test;
  test.window.resize(1280, 690);
  test.chat().setChecked(true);
  QTest::qWait(50);
  const auto in_sight = [&](const QWidget& widget) { return widget.visibleRegion().boundingRect().size() == widget.size(); };
  CHECK(in_sight(test.read()));
  CHECK(in_sight(test.turns()));
  CHECK(in_sight(test.text()));
}

TEST_CASE("prompt: what is marked is marked in a chat too, and comes back as it was written") {
  test::PieceWindow piece;
  MainWindow& window = piece.window;
  Navigator& navigator = window.navigator();
  const auto settled = [&] { return piece.settled(); };
  REQUIRE(piece.stands());
  window.show_page(SidePage::prompt);
  auto& page = *window.side().findChild<PromptPage*>();
  auto& text = *page.findChild<QPlainTextEdit*>();
  auto& chat = *page.findChild<QCheckBox*>();
  REQUIRE(chat.isVisible());
  text.selectAll();
  text.insertPlainText("The code is 12. Which?");
  QTextCursor words = text.textCursor();
  words.setPosition(4);
  words.setPosition(14, QTextCursor::KeepAnchor);
  text.setTextCursor(words);
  page.mark(SpanKind::needle);
  chat.setChecked(true);
  const auto buttons = window.side().findChildren<QPushButton*>();
  QPushButton& read = **std::ranges::find(buttons, "Read it", &QPushButton::text);
  CHECK((*std::ranges::find(buttons, "Needle", &QPushButton::text))->isVisible());
  REQUIRE(QTest::qWaitFor([&] { return read.isEnabled() && !page.findChild<QLabel*>("faint")->text().isEmpty(); }, long_enough_ms));
  read.click();
  REQUIRE(QTest::qWaitFor([&] { return settled() && navigator.prompt().in_chat; }, long_enough_ms));
  const PromptInput prompt = navigator.prompt();
  CHECK(prompt.text.starts_with("<|im_start|>user\nThe code is 12."));
  REQUIRE(prompt.spans.size() == 1);
  CHECK(prompt.text.substr(prompt.spans[0].begin, prompt.spans[0].end - prompt.spans[0].begin) == "code is 12");
  const RunInfo& run = *navigator.run();
  REQUIRE(run.spans.size() == 1);
  CHECK(run.tokens[0].text == "<|im_start|>");
  page.fill();
  CHECK(text.toPlainText() == "The code is 12. Which?");
  CHECK((chat.isVisible() && chat.isChecked()));
}

}  // namespace statescope::window_prompt_test

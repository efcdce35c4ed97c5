// A prompt of several turns: written, marked, opened and pasted, saved, in the form of the model's chat template.
#include <QApplication>
#include <QCheckBox>
#include <QClipboard>
#include <QLabel>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QPushButton>
#include <algorithm>
#include <fstream>

#include "app/pages/prompt_page.h"
#include "tests/app/window/piece_window.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"
#include "tests/temporary_folder.h"

namespace statescope::window_chat_test {
namespace {

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

}  // namespace

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
  TestWindow test;
  test.open();
  const test::TemporaryFolder folder;
  std::ofstream(folder / "talk.json") << kThreeTurns;
  test.window.open_path(folder / "talk.json");
  CHECK(test.window.error_bar().message() == "talk.json is a chat, and fake has no chat template to read it with.");
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

}  // namespace statescope::window_chat_test

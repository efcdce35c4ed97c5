// The reader's own prompt: marks in it, those of before, words that are not known.
#include <QLabel>
#include <QMouseEvent>
#include <QPlainTextEdit>
#include <QPushButton>
#include <algorithm>

#include "app/assets.h"
#include "app/pages/prompt_page.h"
#include "app/pages/prompt_text.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

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

TEST_CASE("prompt: with the model on an engine the page says where its chat form and its tokens come from") {
  PromptWindow test;
  test.source.known = {.no_text = {}, .vocab = 1000, .tokenizer = nullptr, .chat = nullptr, .is_elsewhere = true};
  test.open();
  test.ask();
  test.write("the code of yannick");
  const auto said = [&] {
    return std::ranges::any_of(test.page().findChildren<QLabel*>(), [](const QLabel* label) { return label->text().contains("--chat"); });
  };
  CHECK(QTest::qWaitFor(said, long_enough_ms));
  CHECK_FALSE(test.page().findChild<QCheckBox*>()->isVisible());
}

TEST_CASE("prompt: new needles are drawn at random, as long, as many and as deep as is asked for") {
  const auto checkpoint = open_checkpoint(default_run().checkpoint);
  PromptWindow test;
  test.source.known.vocab = 1000;
  test.source.known.tokenizer = make_tokenizer(*checkpoint, 1000);
  test.window.open_checkpoint(default_run().checkpoint, {});
  test.source.stand(fake_run(64));
  test.ask();
  test.write("mine");
  auto& from = *test.page().findChild<QComboBox*>();
  Q_EMIT from.activated(from.findText("New random needles"));
  const PromptInput first = test.page().prompt();
  const auto count = [](const std::string& text, const std::string& words) {
    return QString::fromStdString(text).count(QString::fromStdString(words));
  };
  CHECK(count(first.text, "the code of") >= 4);
  REQUIRE_FALSE(first.spans.empty());
  CHECK(first.spans.front().kind == SpanKind::needle);
  CHECK_FALSE(first.expected.empty());
  const auto set = [&](const char* name, double value) {
    for (NumberBox* box : test.page().findChildren<NumberBox*>())
      if (box->accessibleName().startsWith(QString::fromLatin1(name))) box->setValue(value);
  };
  set("Length", 128);
  set("How many", 2);
  set("How deep", 0);
  test.button("Draw needles").click();
  const PromptInput second = test.page().prompt();
  CHECK(second.text != first.text);
  CHECK(second.text.size() < first.text.size());
  CHECK(second.spans.front().begin < second.text.size() / 8);
  set("How deep", 100);
  test.button("Draw needles").click();
  CHECK(test.page().prompt().spans.front().begin > test.page().prompt().text.size() / 2);
  test.read();
  CHECK(test.source.read_prompt.spans.size() == first.spans.size());
  set("Length", 1);
  test.button("Draw needles").click();
  CHECK_FALSE(test.window.said().isEmpty());  // why there are none
}

TEST_CASE("prompt: what was written is the previous prompt once another has been chosen") {
  PromptWindow test;
  test.ask();
  test.write("mine");
  auto& from = *test.page().findChild<QComboBox*>();
  Q_EMIT from.activated(from.findText("needles-512"));
  CHECK(test.text().toPlainText().size() > 1000);
  Q_EMIT from.activated(from.findText("The previous prompt"));
  CHECK(test.text().toPlainText() == "mine");
  Q_EMIT from.activated(from.findText("The previous prompt"));
  CHECK(test.text().toPlainText().size() > 1000);
}

TEST_CASE("prompt: a word that the model may know is proposed while it is typed, and Enter takes it") {
  const auto checkpoint = open_checkpoint(default_run().checkpoint);
  PromptWindow test;
  test.source.known.vocab = 1000;
  test.source.known.tokenizer = make_tokenizer(*checkpoint, 1000);
  test.open();
  test.ask();
  auto& proposed = *test.text().findChild<WordCompletion*>();
  test.text().selectAll();
  QTest::keyClicks(&test.text(), "the");
  CHECK_FALSE(proposed.is_shown());  // it is a word
  QTest::keyClicks(&test.text(), " compa");
  REQUIRE(proposed.is_shown());
  QTest::keyClick(QApplication::activePopupWidget(), Qt::Key_Return);
  CHECK(test.text().toPlainText() == "the compass");
  CHECK_FALSE(proposed.is_shown());
  QTest::keyClicks(&test.text(), " compa");
  REQUIRE(proposed.is_shown());
  QTest::keyClick(QApplication::activePopupWidget(), Qt::Key_Escape);
  CHECK_FALSE(proposed.is_shown());
  CHECK(test.text().toPlainText() == "the compass compa");
  QTest::keyClicks(&test.text(), "xyz");
  CHECK_FALSE(proposed.is_shown());  // nothing begins so
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
  CHECK(ids_in("[12, 7 ; 99]\n") == std::vector<std::int32_t>{12, 7, 99});
  CHECK_FALSE(ids_in("12 seven"));
  CHECK_FALSE(ids_in("-1"));
  CHECK_FALSE(ids_in("99999999999"));
}

}  // namespace statescope::window_prompt_test

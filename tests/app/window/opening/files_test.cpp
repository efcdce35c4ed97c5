// What is opened in the window, by name or dropped on it: what waits, is refused, fails or is cancelled.
#include <QDropEvent>
#include <QMimeData>
#include <QProgressBar>
#include <QPushButton>
#include <QSignalSpy>
#include <QToolButton>
#include <algorithm>

#include "app/common/prompts.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

namespace statescope::window_opening_test {
namespace {

const char* const kOtherWords = "text: word \"the\" (number 1, byte 0) is not among the 52 words of this model";

}  // namespace

TEST_CASE("a longer run keeps the place, another prompt begins anew") {
  TestWindow test;
  test.open(16);
  test.press(Qt::Key_End);
  test.navigator().generate_more(4);
  CHECK(test.source.generated == 20);
  test.source.stand(fake_run(20));
  CHECK(test.token() == 15);
  CHECK(test.navigator().tokens() == 20);
  test.navigator().read({});
  test.source.stand(fake_run(8));
  CHECK(test.token() == 0);
}

TEST_CASE("generation under way can be cancelled, and the cursor stays where it is") {
  TestWindow test;
  test.open(16);
  test.press(Qt::Key_End);
  QSignalSpy ended(&test.navigator(), &Navigator::opening_ended);
  test.navigator().generate_more(8);
  test.source.opening.progress(0.3, "generating");
  CHECK(test.window.findChild<QProgressBar*>()->isVisible());
  test.source.grow(fake_run(20));
  CHECK(test.token() == 15);
  CHECK(test.navigator().tokens() == 20);
  CHECK(test.navigator().is_current());
  CHECK(test.navigator().is_opening());
  CHECK(ended.count() == 0);
  test.press(Qt::Key_Escape);
  CHECK(test.source.cancelled == 1);
  test.source.opening.failed(Cancelled());
  CHECK(ended.count() == 1);
  CHECK_FALSE(test.navigator().is_opening());
  CHECK_FALSE(test.window.findChild<QProgressBar*>()->isVisible());
}

TEST_CASE("what failed does not come back with the next command") {
  TestWindow test;
  test.window.open_checkpoint("fake.h5", {.text = "the grass", .spans = {}, .ids = {}, .expected = {}, .generate = {}});
  test.source.stand(fake_run(16));
  test.navigator().read({.text = "xyzzy", .spans = {}, .ids = {}, .expected = {}, .generate = {}});
  test.source.opening.failed(Error("no"));
  CHECK(test.navigator().prompt().text == "the grass");
  test.navigator().generate_more(4);
  CHECK(test.navigator().prompt().text == "the grass");
  test.source.stand(fake_run(20));

  test.window.open_checkpoint("other.h5", test.navigator().prompt());
  CHECK(test.source.opened == "other.h5");
  CHECK(test.source.read_prompt.text == "the grass");
  test.source.opening.failed(UnknownWordError("text: word \"the\" (number 1, byte 0) is not among the 52 words of this model"));
  CHECK(test.window.error_bar().message().startsWith("other.h5 does not know every word"));
  test.source.opened.clear();
  test.navigator().generate_more(4);
  CHECK(test.source.opened.empty());
  CHECK(test.navigator().prompt().text == "the grass");
  test.source.stand(fake_run(20));
  CHECK(test.window.error_bar().isVisible());  // more of the old run is no answer to it
  test.navigator().read({.text = "k1 v1", .spans = {}, .ids = {}, .expected = {}, .generate = {}});
  CHECK(test.source.opened == "other.h5");
  CHECK(test.source.read_prompt.text == "k1 v1");
  test.source.opened.clear();
  test.source.stand(fake_run(8));
  test.navigator().read({.text = "k2", .spans = {}, .ids = {}, .expected = {}, .generate = {}});
  CHECK(test.source.opened.empty());
}

TEST_CASE("a refused checkpoint waits for a prompt only as long as the window says so") {
  TestWindow test;
  test.open();
  const auto refuse = [&] {
    test.window.open_checkpoint("other.h5", {.text = "the grass", .spans = {}, .ids = {}, .expected = {}, .generate = {}});
    test.source.opening.failed(UnknownWordError(kOtherWords));
    CHECK(test.window.error_bar().message().contains("close this message to stay with fake"));
    test.source.opened.clear();
  };
  const auto stays = [&] {
    test.navigator().read({.text = "k1 v1", .spans = {}, .ids = {}, .expected = {}, .generate = {}});
    test.source.stand(fake_run(8));
    return test.source.opened.empty();
  };
  refuse();
  test.press(Qt::Key_Escape);
  CHECK_FALSE(test.window.error_bar().isVisible());
  CHECK(stays());
  refuse();
  test.window.error_bar().findChild<QToolButton*>()->click();
  CHECK(stays());
  refuse();
  test.window.open_path("nowhere/prompt.json");  // another message stands there
  CHECK(stays());
  refuse();
  CHECK_FALSE(stays());
}

TEST_CASE("a dropped checkpoint that does not know the prompt's words reads an example of its own, and says so") {
  TestWindow test;
  test.window.open_checkpoint("fake.h5", {.text = "The sea is calm.", .spans = {}, .ids = {}, .expected = {}, .generate = {}});
  test.source.stand(fake_run(8));
  test.window.open_path("other.h5");
  CHECK(test.source.read_prompt.text == "The sea is calm.");
  test.source.opening.failed(UnknownWordError(kOtherWords));
  CHECK(test.navigator().is_opening());
  CHECK(test.source.opened == "other.h5");
  CHECK(test.source.read_prompt.text == first_prompt({}, "other.h5").text);
  CHECK(test.window.said().startsWith("other does not know every word"));
  CHECK_FALSE(test.window.error_bar().isVisible());
  test.source.opening.failed(UnknownWordError(kOtherWords));  // nor that example's
  CHECK(test.window.error_bar().message().startsWith("other.h5 does not know every word"));
  CHECK_FALSE(test.navigator().is_opening());
}

TEST_CASE("a prompt read again keeps its spans unless its text was changed") {
  TestWindow test;
  test.window.open_checkpoint("fake.h5",
                              {.text = "the grass", .spans = {{SpanKind::needle, 4, 9}}, .ids = {}, .expected = "was", .generate = {}});
  test.source.stand(fake_run(16));
  test.window.show_page(SidePage::prompt);
  auto* text = test.window.side().findChild<QPlainTextEdit*>();
  const auto buttons = test.window.side().findChildren<QPushButton*>();
  QPushButton* read = *std::ranges::find(buttons, "Read it", &QPushButton::text);
  read->click();
  CHECK(test.source.read_prompt.expected == "was");
  CHECK(test.source.read_prompt.spans.size() == 1);
  CHECK(test.source.read_prompt.generate == 0);
  test.source.stand(fake_run(16));
  QTest::keyClicks(text, "x");  // in the place of the text of before
  read->click();
  CHECK(test.source.read_prompt.text == "x");
  CHECK(test.source.read_prompt.expected.empty());
  CHECK(test.source.read_prompt.spans.empty());
}

TEST_CASE("errors stand in the window until something works") {
  TestWindow test;
  test.window.open_checkpoint("missing.h5", {});
  test.source.opening.failed(Error("missing.h5: no such file"));
  CHECK(test.window.error_bar().isVisible());
  CHECK(test.window.error_bar().message() == "missing.h5: no such file");
  test.window.error_bar().findChild<QToolButton*>()->click();
  CHECK_FALSE(test.window.error_bar().isVisible());

  test.window.open_path("nowhere/prompt.json");
  CHECK(test.window.error_bar().isVisible());
  test.open();
  CHECK_FALSE(test.window.error_bar().isVisible());
}

TEST_CASE("escape cancels an opening, which is no error") {
  TestWindow test;
  test.window.open_checkpoint("big.h5", {});
  test.source.opening.progress(0.3, "reading weights");
  test.press(Qt::Key_Escape);
  CHECK(test.source.cancelled == 1);
  test.source.opening.failed(Cancelled());
  CHECK_FALSE(test.window.error_bar().isVisible());
  CHECK_FALSE(test.navigator().is_opening());
}

TEST_CASE("a file dropped on the window opens") {
  TestWindow test;
  QTest::qWait(1);  // the window takes its size
  QMimeData files;
  files.setUrls({QUrl::fromLocalFile("/models/dropped.h5")});
  QDragEnterEvent enter({10, 10}, Qt::CopyAction, &files, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&test.window, &enter);
  CHECK(enter.isAccepted());
  const auto* mark = test.window.findChild<QWidget*>("dropping");
  CHECK(mark->isVisible());
  CHECK(mark->size() == test.window.centralWidget()->size());
  CHECK_FALSE(test.window.said().isEmpty());
  QDropEvent drop({10, 10}, Qt::CopyAction, &files, Qt::LeftButton, Qt::NoModifier);
  drop.ignore();
  QApplication::sendEvent(&test.window, &drop);
  CHECK(drop.isAccepted());
  CHECK(test.source.opened == "/models/dropped.h5");
  CHECK_FALSE(mark->isVisible());
}

TEST_CASE("a text dropped on the window is read as a prompt; an address is not taken") {
  TestWindow test;
  test.open();
  QMimeData text, address;
  text.setText("The sea is calm.\n");
  address.setUrls({QUrl("https://example.org/")});
  QDragEnterEvent with_address({10, 10}, Qt::CopyAction, &address, Qt::LeftButton, Qt::NoModifier);
  with_address.ignore();
  QApplication::sendEvent(&test.window, &with_address);
  CHECK_FALSE(with_address.isAccepted());
  const auto* mark = test.window.findChild<QWidget*>("dropping");
  CHECK_FALSE(mark->isVisible());
  QDragEnterEvent enter({10, 10}, Qt::CopyAction, &text, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&test.window, &enter);
  CHECK(enter.isAccepted());
  CHECK(mark->isVisible());
  QDragLeaveEvent leave;
  QApplication::sendEvent(&test.window, &leave);
  CHECK_FALSE(mark->isVisible());
  CHECK(test.window.said().isEmpty());
  QApplication::sendEvent(&test.window, &enter);
  QDropEvent drop({10, 10}, Qt::CopyAction, &text, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&test.window, &drop);
  CHECK(test.source.read_prompt.text == "The sea is calm.");
}

}  // namespace statescope::window_opening_test

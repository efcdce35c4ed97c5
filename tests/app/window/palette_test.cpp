#include "app/controls/palette.h"

#include "app/controls/fuzzy.h"
#include "app/window/palette_entries.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

namespace statescope::palette_test {
namespace {

QListWidget& list_of(TestWindow& test) { return *test.window.palette().findChild<QListWidget*>(); }

QString first(TestWindow& test) { return list_of(test).count() > 0 ? list_of(test).item(0)->text() : QString(); }

QLabel& nothing_of(TestWindow& test) { return *test.window.palette().findChild<QLabel*>(); }

void ask(TestWindow& test, const char* typed) {
  test.press(Qt::Key_K, Qt::ControlModifier);
  TestWindow::type(typed);
}

}  // namespace

TEST_CASE("fuzzy: letters in order, beginnings of words first") {
  CHECK(fuzzy_score("", "anything"));
  CHECK(fuzzy_score("nt", "Next token"));
  CHECK(fuzzy_score("TOKEN next", "Next token"));
  CHECK_FALSE(fuzzy_score("xn", "Next"));
  CHECK_FALSE(fuzzy_score("next q", "Next token"));
  CHECK(fuzzy_score("tok", "Next token") > fuzzy_score("tok", "the other kind"));
  CHECK(fuzzy_score("nt", "Next token") > fuzzy_score("nt", "Unit"));
  CHECK(fuzzy_score("state", "State") > fuzzy_score("state", "State, the other one"));
  CHECK(fuzzy_score("state", "The state") > fuzzy_score("state", "Restated"));
  CHECK(fuzzy_score("state", "State, the other one") > fuzzy_score("state", "The state"));
  CHECK(fuzzy_fit("gla", "gla") > fuzzy_fit("gla", "gla-n4k1"));
  CHECK(fuzzy_fit("gla", "gla-n4k1") == fuzzy_fit("gla", "gla-n16k4-collapsed"));
}

TEST_CASE("the palette runs a command by a few letters, and shows its key") {
  TestWindow test;
  test.open();
  ask(test, "presenter");
  CHECK(list_of(test).item(0)->data(Qt::AccessibleTextRole).toString().contains("F"));
  TestWindow::type_key(Qt::Key_Escape);
  CHECK_FALSE(test.window.palette().isVisible());
  CHECK(test.window.focused_panel().surface().hasFocus());
  ask(test, "state");
  CHECK(first(test) == "State");
  TestWindow::type_key(Qt::Key_Escape);
  ask(test, "last token");
  CHECK(test.window.palette().isVisible());
  CHECK(first(test) == "Last token");
  TestWindow::type_key(Qt::Key_Return);
  CHECK_FALSE(test.window.palette().isVisible());
  CHECK(test.token() == 63);
  CHECK(test.window.focused_panel().surface().hasFocus());
}

TEST_CASE("the palette finds a view's ways of looking") {
  TestWindow test;
  test.open();
  ask(test, "half-life");
  CHECK(first(test) == "Decay: Half-life");
  TestWindow::type_key(Qt::Key_Return);
  const ViewPanel& panel = test.window.focused_panel();
  CHECK(panel.row().id == "decay");
  CHECK(panel.view().modes()[panel.view().mode()] == "Half-life");
}

TEST_CASE("the palette goes to text, numbers, layers, heads and partitions, and shows views") {
  TestWindow test;
  test.open();
  ask(test, "go to anna");
  REQUIRE(first(test).startsWith("Go to token 3:"));
  TestWindow::type_key(Qt::Key_Return);
  CHECK(test.token() == 3);
  ask(test, "anna is");  // over two tokens, and on from here
  REQUIRE(first(test).startsWith("Go to token 19:"));
  TestWindow::type_key(Qt::Key_Down);
  TestWindow::type_key(Qt::Key_Return);
  CHECK(test.token() == 35);
  ask(test, "17");
  TestWindow::type_key(Qt::Key_Return);
  CHECK(test.token() == 17);
  ask(test, "layer 1");
  TestWindow::type_key(Qt::Key_Return);
  CHECK(test.navigator().cursor().layer == 1);
  ask(test, "head 1");
  TestWindow::type_key(Qt::Key_Return);
  CHECK(test.navigator().cursor().head == 1);
  ask(test, "partition shared");
  TestWindow::type_key(Qt::Key_Return);
  ask(test, "partition 3");
  TestWindow::type_key(Qt::Key_Return);
  CHECK(test.navigator().cursor().slot == 3);
  ask(test, "routing");
  while (!list_of(test).currentItem()->text().startsWith("Add")) TestWindow::type_key(Qt::Key_Down);
  TestWindow::type_key(Qt::Key_Return);
  CHECK(test.window.stage().panels().size() == 3);
  CHECK(test.window.focused_panel().row().id == "routing");
}

TEST_CASE("every command can be found in the palette by its own name, and recent files are there") {
  TestSettings kept;
  TestWindow test(false, {1400, 900}, &kept.settings);
  test.window.open_checkpoint("/models/somewhere.h5", {});
  test.source.stand(fake_run(16));
  test.press(Qt::Key_K, Qt::ControlModifier);
  for (const Actions::Row& row : test.window.actions().rows()) {
    test.window.palette().findChild<QLineEdit*>()->setText(row.action->text());
    INFO(row.id);
    CHECK_FALSE(list_of(test).findItems(row.action->text(), Qt::MatchExactly).isEmpty());
  }
  test.window.palette().findChild<QLineEdit*>()->setText("somewhere");
  CHECK(first(test) == "/models/somewhere.h5");
  test.window.palette().findChild<QLineEdit*>()->setText("no such thing at all");
  CHECK(list_of(test).count() == 0);
  CHECK_FALSE(list_of(test).isVisible());
  CHECK(nothing_of(test).isVisible());
  CHECK(nothing_of(test).text() == "Nothing here is called “no such thing at all”.");
  TestWindow::type_key(Qt::Key_Return);  // nothing to choose
  CHECK(test.window.palette().isVisible());
}

TEST_CASE("the palette opens shipped models and prompts by their names") {
  TestWindow test;
  test.open();
  ask(test, "niah-gated");
  CHECK_FALSE(nothing_of(test).isVisible());
  REQUIRE(first(test) == "Open niah-gated-deltanet");
  TestWindow::type_key(Qt::Key_Return);
  CHECK(test.source.opened.filename() == "niah-gated-deltanet.h5");
  CHECK(test.source.read_prompt.text.find("the code of") != std::string::npos);  // of its own task: fake is of another
  test.source.stand(fake_run(16, "niah-gated-deltanet"));
  ask(test, "mqar-gla");
  REQUIRE(first(test) == "Open mqar-gla");
  TestWindow::type_key(Qt::Key_Return);
  CHECK(test.source.read_prompt.text.find("the code of") == std::string::npos);
  test.source.stand(fake_run(16, "mqar-gla"));
  ask(test, "needles");
  REQUIRE(first(test) == "Read the prompt needles-512");
  TestWindow::type_key(Qt::Key_Return);
  CHECK(test.source.read_prompt.text.size() > 1000);
  CHECK_FALSE(test.source.read_prompt.spans.empty());
}

TEST_CASE("the palette finds views by what people call them") {
  TestWindow test;
  test.open();
  for (const char* typed : {"survival", "cause of death"}) {
    ask(test, typed);
    INFO(typed);
    CHECK(first(test) == "Needle");
    TestWindow::type_key(Qt::Key_Escape);
  }
  ask(test, "haystack");
  CHECK(first(test) == "Needle grid");
}

TEST_CASE("the palette fits the smallest window at the largest type") {
  TestWindow test(false, {640, 400});
  test.open();
  test.window.set_scale(3);
  test.press(Qt::Key_K, Qt::ControlModifier);
  QTest::qWait(1);
  CHECK(test.window.palette().parentWidget()->rect().contains(test.window.palette().geometry()));
  CHECK(list_of(test).height() > 80);
}

}  // namespace statescope::palette_test

// What is typed into the window: numbers as they are meant, keys that go where they are expected.
#include <QPlainTextEdit>
#include <QPushButton>

#include "app/controls/range_bar.h"
#include "app/controls/typed_number.h"
#include "app/pages/intervention_page.h"
#include "app/panels/transport.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

namespace statescope::window_typing_test {
namespace {

template <class W>
W& named(const QWidget& parent, const char* name) {
  for (W* widget : parent.findChildren<W*>()) {
    if (widget->accessibleName() == QString::fromUtf8(name)) return *widget;
  }
  throw std::runtime_error(name);
}

QPushButton& button(const QWidget& parent, const char* text) {
  for (QPushButton* found : parent.findChildren<QPushButton*>())
    if (found->text() == text) return *found;
  throw std::runtime_error(text);
}

void type_into(QLineEdit& line, const QString& text) {
  line.setFocus();
  line.selectAll();
  QTest::keyClicks(&line, text);
}

}  // namespace

TEST_CASE("typed numbers: a decimal comma is one, what is no number or not clear is none") {
  const auto reads = [](const char* text) { return typed_number(QString::fromUtf8(text)); };
  for (const char* quarter : {"0.25", "0,25", " .25", ",25", "+0.25", "25e-2", "2,5e-1", "٠٫٢٥", "۰,۲۵"}) {
    INFO(quarter);
    CHECK(reads(quarter) == 0.25);
  }
  CHECK(reads("-3") == -3.0);
  CHECK(reads("−3") == -3.0);
  CHECK(reads("1234,5") == 1234.5);
  CHECK(reads("0,125") == 0.125);
  for (const char* none :
       {"", " ", "abc", "0,2,5", "1,234.5", "1.234,5", "1 000", "0x10", "nan", "inf", "1e999", "0.25x", "--1", "+-1", "."}) {
    INFO(none);
    CHECK_FALSE(reads(none));
    CHECK_FALSE(why_no_number(none).isEmpty());
  }
  CHECK_FALSE(reads("1,234"));  // 1.234 or 1234
  CHECK(why_no_number("1,234") == "“1,234” may be 1.234 or 1234: type one of them.");
  CHECK(typed_whole("12") == 12);
  CHECK_FALSE(typed_whole("1.5"));
}

TEST_CASE("a factor typed into the interventions is that factor, or cannot be applied and says why") {
  TestWindow test;
  test.open();
  test.window.show_page(SidePage::interventions);
  const QWidget& side = test.window.side();
  auto& kind = named<QComboBox>(side, "What to change");
  kind.setCurrentIndex(kind.findText("Scale the decay"));
  auto& value = *side.findChild<QComboBox*>("value")->lineEdit();
  const auto& line = *side.findChild<QLineEdit*>("intervention");
  const auto& message = *side.findChild<QLabel*>("intervention-message");
  type_into(value, "0,25");
  CHECK(line.text().contains("by 0.25"));
  CHECK(button(side, "Apply").isEnabled());
  for (const char* wrong : {"abc", "", "0,2,5", "1,234"}) {
    type_into(value, wrong);
    if (!*wrong) value.clear();
    INFO(wrong);
    CHECK(line.text().isEmpty());
    CHECK_FALSE(button(side, "Apply").isEnabled());
    CHECK(message.isVisible());
    CHECK(message.text() == why_no_number(wrong));
  }
  type_into(value, "0");
  CHECK(line.text().contains("freeze decay"));  // not completed to the first number that begins so
  kind.setCurrentIndex(kind.findText("Change the number of writers"));
  type_into(value, "1.5");
  CHECK_FALSE(button(side, "Apply").isEnabled());
  CHECK(message.text() == "“1.5” is not a whole number.");
  type_into(value, "2");
  CHECK(line.text().startsWith("writers 2"));
}

TEST_CASE("a wrong number never becomes another one: it is refused by name, and the value stays") {
  TestWindow test;
  test.open(96);
  auto& token = *test.window.findChild<TokenNumber*>();
  test.navigator().move({.token = 7});
  for (const char* wrong : {"99999", "300", "-5", "12.5", "abc", ""}) {
    test.press(Qt::Key_G);
    REQUIRE(token.hasFocus());
    QTest::keyClicks(&token, wrong);
    if (!*wrong) QTest::keyClick(&token, Qt::Key_Delete);
    QTest::keyClick(&token, Qt::Key_Return);
    INFO(wrong);
    CHECK(test.token() == 7);
    CHECK(test.window.said().startsWith("Go to token: "));
    CHECK(token.hasFocus());  // to be mended
    QTest::keyClick(&token, Qt::Key_Escape);
    CHECK(token.text() == "7");
  }
  test.press(Qt::Key_G);
  QTest::keyClicks(&token, "99999");
  QTest::keyClick(&token, Qt::Key_Return);
  CHECK(test.window.said() == "Go to token: “99999” is not between 0 and 95.");
  QTest::keyClicks(&token, "12");
  QTest::keyClick(&token, Qt::Key_Return);
  CHECK(test.token() == 12);

  test.window.show_page(SidePage::prompt);
  auto& generate = *test.window.side().prompt().findChild<NumberBox*>();
  generate.setValue(5);
  for (const char* wrong : {"99999999999", "-3", "1.5"}) {
    generate.setFocus();
    generate.selectAll();
    test.source.read_prompt.generate.reset();
    QTest::keyClicks(&generate, wrong);
    test.window.side().prompt().read_button()->click();
    INFO(wrong);
    CHECK_FALSE(test.source.read_prompt.generate);
    CHECK(test.window.said().startsWith("Tokens to generate after the prompt: “"));
    CHECK(generate.text() == wrong);
    test.window.side().prompt().setFocus();  // the field is left
    CHECK(generate.value() == 5);
    CHECK(generate.text() == "5");
  }
  generate.setFocus();
  generate.selectAll();
  QTest::keyClicks(&generate, "12");
  test.window.side().prompt().read_button()->click();
  CHECK(test.source.read_prompt.generate == 12);

  test.window.show_page(SidePage::figure);
  auto& width = named<NumberBox>(test.window.side(), "Width");
  width.setFocus();
  width.selectAll();
  QTest::keyClicks(&width, "50000");
  QTest::keyClick(&width, Qt::Key_Return);
  CHECK(width.value() == 89);
  CHECK(named<QLabel>(test.window.side(), "Result").text() == "Width: “50000” is not between 20.0 and 600.0 mm.");
}

TEST_CASE("where a figure cannot be written is said before anything is computed") {
  TestWindow test;
  test.open();
  test.window.show_page(SidePage::figure);
  const TestSettings place;
  auto& path = named<QLineEdit>(test.window.side(), "File, .pdf, .svg, .png or .eps");
  const auto& result = named<QLabel>(test.window.side(), "Result");
  const auto said = [&](const QString& name) {
    path.setText(name);
    button(test.window.side(), "Write the figure").click();
    return result.text();
  };
  CHECK(said("/no/such/dir/view.pdf") == "There is no folder /no/such/dir.");
  CHECK(button(test.window.side(), "Write the figure").isEnabled());
  CHECK(said(place.folder.filePath("view.doc")).contains("pdf"));
  CHECK(QDir(place.folder.path()).mkdir("view.pdf"));
  CHECK(said(place.folder.filePath("view.pdf")).endsWith("view.pdf is a folder."));
  CHECK(said(place.folder.filePath("other.pdf")).startsWith("Writing"));
  CHECK(QTest::qWaitFor([&] { return result.text().startsWith("Wrote"); }, long_enough_ms));
}

TEST_CASE("a range's ends take a comma, refuse what is no number, and are whole or not shown") {
  TestWindow test;
  test.open();
  ViewPanel& panel = *test.window.stage().panels().front();
  panel.set_view(*find_view("state"));
  panel.toggle_range_bar();
  QTest::qWait(1);
  auto& high = named<QLineEdit>(panel, "Number of the last colour");
  auto& low = named<QLineEdit>(panel, "Number of the first colour");
  type_into(high, "0,125");
  QTest::keyClick(&high, Qt::Key_Return);
  CHECK((panel.view().shading()->range == ColorRange{-0.125f, 0.125f}));
  type_into(high, "much");
  QTest::keyClick(&high, Qt::Key_Return);
  CHECK((panel.view().shading()->range == ColorRange{-0.125f, 0.125f}));
  CHECK(named<QLabel>(panel, "What is wrong with the range").text().contains("“much” is not a number"));
  type_into(high, "1250");
  QTest::keyClick(&high, Qt::Key_Return);
  CHECK_FALSE(named<QLabel>(panel, "What is wrong with the range").isVisible());
  for (int width = 1400; width >= 640; width -= 40) {
    test.window.resize(width, 700);
    QTest::qWait(1);
    for (const QLineEdit* end : {&low, &high}) {
      if (end->isVisible()) CHECK(end->fontMetrics().horizontalAdvance(end->text()) + 8 < end->width());
      CHECK(end->isVisible() == low.isVisible());
      CHECK(end->geometry().right() <= panel.range_bar()->width());
    }
  }
}

TEST_CASE("a breakpoint's number is a number, else it says why it cannot be added") {
  TestWindow test;
  test.open();
  test.window.show_page(SidePage::breakpoints);
  const QWidget& side = test.window.side();
  auto& value = named<QLineEdit>(side, "Its number");
  type_into(value, "x3");
  CHECK_FALSE(button(side, "Add").isEnabled());
  CHECK(named<QLabel>(side, "What is wrong with it").isVisible());
  type_into(value, "3");
  CHECK(button(side, "Add").isEnabled());
  CHECK_FALSE(named<QLabel>(side, "What is wrong with it").isVisible());
}

TEST_CASE("fields with arrows read a decimal comma and never leave it out") {
  test_application();
  NumberBox box;
  box.setSuffix(" mm");
  box.setRange(1, 600);
  box.setDecimals(1);
  box.setValue(80);
  box.show();
  auto& line = *box.findChild<QLineEdit*>();
  const auto enter = [&](const char* text) {
    type_into(line, text);
    QTest::keyClick(&line, Qt::Key_Return);
    return box.value();
  };
  CHECK(enter("6,5") == 6.5);
  CHECK(line.text() == "6.5 mm");
  CHECK(enter("abc") == 6.5);
  CHECK(enter("7.4 mm") == 7.4);
  CHECK(enter("9000") == 7.4);
}

TEST_CASE("digits are the same everywhere, whatever the desktop's language") {
  TestWindow test;
  CHECK(QLocale() == QLocale::c());
  test.open();
  test.navigator().step(40);
  CHECK(test.window.findChild<TokenNumber*>()->text() == "40");
}

TEST_CASE("a text that has been read leaves the keys to the views, and asking again selects it") {
  TestWindow test;
  test.open();
  test.press(Qt::Key_T, Qt::ControlModifier);
  auto& text = *test.window.side().findChild<QPlainTextEdit*>();
  REQUIRE(text.hasFocus());
  TestWindow::type("the mill");
  QTest::mouseClick(&button(test.window.side(), "Read it"), Qt::LeftButton);
  test.source.stand(fake_run(16));
  CHECK(test.source.read_prompt.text == "the mill");
  CHECK(test.window.focused_panel().surface().hasFocus());
  test.press(Qt::Key_T, Qt::ControlModifier);  // the page is still there: the keyboard goes to it
  CHECK(test.window.side().page() == SidePage::prompt);
  REQUIRE(text.hasFocus());
  CHECK(text.textCursor().selectedText() == "the mill");
  TestWindow::type("a");
  CHECK(text.toPlainText() == "a");
  TestWindow::type_key(Qt::Key_Escape);
  CHECK(test.window.side().page() == SidePage::inspector);
  CHECK(test.window.focused_panel().surface().hasFocus());
}

}  // namespace statescope::window_typing_test

// The range of a view's colours through the window: shown by a key, chosen with the keyboard, kept by view.
#include "app/controls/range_bar.h"

#include "tests/app/window/window_cases.h"
#include "tests/catch.h"

namespace statescope::range_test {
namespace {

template <class W>
W& named(const ViewPanel& panel, const char* name) {
  for (W* widget : panel.findChildren<W*>()) {
    if (widget->accessibleName() == QString::fromUtf8(name)) return *widget;
  }
  throw std::runtime_error(name);
}

}  // namespace

TEST_CASE("range: C shows the bar, what is typed is the range, and each view keeps its own") {
  TestWindow test;
  test.open();
  ViewPanel& panel = *test.window.stage().panels().front();
  panel.set_view(*find_view("state"));
  panel.surface().setFocus();
  QTest::qWait(1);
  CHECK_FALSE(panel.range_bar()->isVisible());
  test.press(Qt::Key_C);
  REQUIRE(panel.range_bar()->isVisible());
  auto& low = named<QLineEdit>(panel, "Number of the first colour");
  auto& high = named<QLineEdit>(panel, "Number of the last colour");
  CHECK(low.text().toFloat() == -high.text().toFloat());
  const std::string exact = panel.view().tooltip({0, 0, 0, 3});
  high.setFocus();
  high.selectAll();
  QTest::keyClicks(&high, "0.125");
  QTest::keyClick(&high, Qt::Key_Return);
  CHECK((panel.view().shading()->range == ColorRange{-0.125f, 0.125f}));
  CHECK(low.text() == "-0.125");
  CHECK(named<QLabel>(panel, "Numbers beyond the range")
            .text()
            .startsWith(QString::number(panel.view().shading()->above + panel.view().shading()->below)));
  CHECK(panel.view().tooltip({0, 0, 0, 3}) == exact);
  auto& fit = named<QComboBox>(panel, "How the colours' range is chosen");
  CHECK(fit.currentIndex() == static_cast<int>(RangeChoice::Fit::fixed));
  panel.set_view(*find_view("model_map"));
  CHECK_FALSE(panel.range_bar()->isVisible());
  panel.set_view(*find_view("state"));
  REQUIRE(panel.range_bar()->isVisible());
  CHECK(panel.view().shading()->range.high == 0.125f);
  fit.setFocus();
  QTest::keyClick(&fit, Qt::Key_Up);
  CHECK(panel.view().range().fit == RangeChoice::Fit::most);
  panel.surface().setFocus();
  test.press(Qt::Key_C);
  CHECK_FALSE(panel.range_bar()->isVisible());
}

TEST_CASE("range: dragging a handle of the histogram of signed numbers moves both ends") {
  TestWindow test;
  test.open();
  ViewPanel& panel = *test.window.stage().panels().front();
  panel.set_view(*find_view("state"));
  panel.toggle_range_bar();
  QTest::qWait(1);
  auto& histogram = named<RangeHistogram>(panel, "Histogram of the numbers shown");
  QTest::mouseClick(&histogram, Qt::LeftButton, {}, {histogram.width() * 3 / 4, 5});
  const ColorRange range = panel.view().shading()->range;
  CHECK(range.low == -range.high);
  CHECK(panel.view().range().fit == RangeChoice::Fit::fixed);
}

}  // namespace statescope::range_test

// What a browser is given to draw: commands as text, numbers to four digits, and what tokens have in common once.
#include "app/canvas/web_canvas.h"

#include <cmath>
#include <limits>

#include "app/web/numbers.h"
#include "app/web/reel.h"
#include "engine/error.h"
#include "tests/app/window/qt_application.h"
#include "tests/catch.h"

namespace statescope::web_canvas_test {
namespace {

constexpr Color black{0, 0, 0}, red{200, 0, 0, 128};

/// A map with a number under each cell, and a line whose colour is the theme's.
class SmallView : public View {
 public:
  void build(const Snapshot&, const Cursor& cursor, const Findings&) override { numbers_[0] = static_cast<float>(cursor.token); }
  void draw(Canvas& canvas, Rect area, const Frame& frame) const override {
    canvas.line({0, 0}, {area.w, 0}, frame.theme.ink, 1);
    if (uneven && frame.theme.dark) canvas.line({0, 1}, {area.w, 1}, frame.theme.ink, 1);
    const Rect map{10, 10, 20, 20};
    canvas.heatmap(map, {2, 2, numbers_, {frame.theme.dark ? ColorMap::diverging_dark : ColorMap::diverging, -1, 1}});
    canvas.hit(map, {{0, 0, 0}, 2, 2, 0, 1});
  }
  std::vector<Sheet> sheets() const override {
    Sheet sheet{.axes = {axis_of_count("row", 2), axis_of_count("column", 2)}, .place = "here"};
    sheet.add("S", "", "S = S", {0, 1}, numbers_);
    return {sheet};
  }
  std::string sentence() const override { return "Four numbers."; }

  bool uneven = false;

 private:
  std::vector<float> numbers_{0, 0.5F, NAN, -1};
};

}  // namespace

TEST_CASE("web canvas: each primitive is a command, lengths in twentieths, points as steps") {
  qt_application();
  TextWidths widths;
  WebCanvas canvas({100, 50}, widths);
  canvas.fill_rect({1, 2, 3, 4}, black, 0.5F);
  canvas.path(std::vector<Point>{{1, 1}, {2, 1}, {2, 3}}, red, 2, false);
  canvas.ribbon({0, 0}, {10, 5}, black, 1.5F);
  canvas.push_clip({0, 0, 10, 10});
  canvas.hit({5, 5, 10, 10}, {{1, 2}, 3, 1});
  canvas.pop_clip();
  canvas.text({5, 6}, "\"π\" \xFF", {.font = Font::value, .size = 12, .align = Align::right, .bold = true});
  using Op = WebCanvas::Op;
  std::vector<Op> ops;
  for (const WebCanvas::Command& command : canvas.commands()) ops.push_back(command.op);
  CHECK(ops == std::vector{Op::fill, Op::path, Op::ribbon, Op::clip, Op::end_clip, Op::text});
  CHECK(canvas.commands()[0].arguments == "20,40,60,80,10");
  CHECK(canvas.commands()[1].arguments == "40,20,20,20,0,0,40");
  CHECK(canvas.commands()[1].color == red);
  CHECK(canvas.commands()[2].arguments == "0,0,200,100,30");
  const std::string& text = canvas.commands()[5].arguments;
  CHECK(text.starts_with("100,120,12,3,2,"));
  CHECK(text.ends_with(",\"\\\"π\\\" \xEF\xBF\xBD\""));
  REQUIRE(canvas.regions().size() == 1);
  CHECK(canvas.regions()[0].visible.w == 5);
  CHECK(canvas.regions()[0].rect.w == 10);
}

TEST_CASE("web canvas: a text is as wide as the shipped fonts have it") {
  qt_application();
  TextWidths widths;
  const float plain = widths.of("width", {.size = 13}), bold = widths.of("width", {.size = 13, .bold = true});
  CHECK(plain > 30);
  CHECK(bold > plain);
  CHECK(widths.of("width", {.size = 26}) == Approx(2 * plain).epsilon(0.02));
  CHECK(widths.of("width", {.size = 13}) == plain);
}

TEST_CASE("web numbers: four digits, whole ones as they are, and what is not finite") {
  CHECK(decimal(0.123456F, 4) == Decimal{1235, -4});
  CHECK(decimal(-98765.4F, 4) == Decimal{-9877, 1});
  CHECK(decimal(0.99999F, 4) == Decimal{1000, -3});
  CHECK(decimal(12345, 4) == Decimal{12345, 0});
  CHECK(decimal(0.123456F, 3) == Decimal{123, -3});
  CHECK(decimal(0, 4) == Decimal{0, 0});
  CHECK(decimal(1.5e-30F, 4) == Decimal{1500, -33});
  CHECK(decimal(std::numeric_limits<float>::denorm_min(), 4).exponent == -48);
  CHECK(decimal(NAN, 4).exponent == Decimal::none);
  CHECK(decimal(-INFINITY, 4) == Decimal{-1, Decimal::infinite});
}

TEST_CASE("web numbers: equal arrays, and equal parts of arrays, are kept once") {
  NumberTable table;
  std::vector<float> numbers(NumberTable::part + 3, 0.5F);
  CHECK(table.add(numbers) == 0);
  CHECK(table.add(numbers) == 0);
  CHECK(table.numbers() == NumberTable::part + 3);
  numbers.back() = 1;
  CHECK(table.add(numbers) == 1);
  CHECK(table.numbers() == NumberTable::part + 6);
  CHECK(table.arrays() == "[[0,0,1],[0,0,2]]");
  CHECK(table.lengths() == "[256,3,3]");
  CHECK(table.bytes().size() == 3 * table.numbers());
}

TEST_CASE("web numbers: of a symmetric matrix one half is kept") {
  NumberTable table;
  std::vector<float> cosines(100);
  for (std::size_t i = 0; i < cosines.size(); ++i) cosines[i] = static_cast<float>((i / 10 + 1) * (i % 10 + 1)) / 128;
  table.add(cosines);
  CHECK(table.numbers() == 55);
  CHECK(table.arrays() == "[[10,0]]");
  cosines[1] = 0;
  table.add(cosines);
  CHECK(table.arrays() == "[[10,0],[0,1]]");
}

TEST_CASE("web reel: what is drawn refers to the numbers under the pointer, and what two tokens share is there once") {
  qt_application();
  SmallView view;
  Reel reel({100, 50});
  for (const std::int64_t token : {0, 0, 7}) {
    view.build({}, {.token = token}, {});
    reel.add(view);
  }
  CHECK(reel.drawing(0) == reel.drawing(1));
  CHECK(reel.drawing(0)[0] == reel.drawing(2)[0]);
  CHECK(reel.drawing(0)[1] == "[7,200,200,400,400,2,2,2,3,0,1,0,0,-1,1,0]");  // numbers of array 0
  CHECK(reel.drawing(2)[1] == "[7,200,200,400,400,2,2,2,3,0,1,1,0,-1,1,0]");
  CHECK(reel.shows_numbers());
  CHECK(!reel.packed().empty());
}

TEST_CASE("web reel: a view that is drawn otherwise in dark colours is refused") {
  qt_application();
  SmallView view;
  view.uneven = true;
  Reel reel({100, 50});
  CHECK_THROWS_AS(reel.add(view), Error);
}

}  // namespace statescope::web_canvas_test

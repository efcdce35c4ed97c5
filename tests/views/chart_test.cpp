#include "views/chart.h"

#include <algorithm>
#include <cmath>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "views/plot.h"

namespace statescope::chart_test {
namespace {

Chart scores() {
  return {.title = "Recall",
          .x = {.name = "pairs", .unit = "", .logarithmic = true},
          .y = {.name = "right answers", .unit = "%", .low = 0, .high = 100},
          .series = {{"GLA", {8, 16, 32, 64}, {100, 97, 75, 36}, {99, 96, 74, 35}, {100, 98, 76, 37}},
                     {"SSE", {8, 16, 32, 64}, {100, NAN, 99, 79}, {100, NAN, 98, 78}, {100, NAN, 99, 80}}},
          .interval = "95 %",
          .equation = ""};
}

std::vector<std::string> texts(const TextCanvas& canvas) {
  std::vector<std::string> found;
  for (const TextCanvas::Placed& placed : canvas.texts()) found.push_back(placed.text);
  return found;
}

bool overlap(Rect a, Rect b) { return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom(); }

void check_no_text_covers_another(const TextCanvas& canvas) {
  for (std::size_t i = 0; i < canvas.texts().size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      INFO(canvas.texts()[i].text << " and " << canvas.texts()[j].text);
      CHECK_FALSE(overlap(canvas.texts()[i].rect, canvas.texts()[j].rect));
    }
  }
}

}  // namespace

TEST_CASE("a chart names its axes, its measured places and its series beside their ends") {
  TextCanvas canvas({400, 240});
  draw_chart(canvas, {0, 0, 400, 240}, scores(), {light_theme(), 1});
  const std::vector<std::string> found = texts(canvas);
  for (const char* text : {"pairs", "right answers (%)", "8", "16", "32", "64", "0", "100", "GLA", "SSE"}) {
    INFO(text);
    CHECK(std::ranges::count(found, text) == 1);
  }
  check_no_text_covers_another(canvas);
  const auto y_of = [&](const char* name) { return std::ranges::find(canvas.texts(), name, &TextCanvas::Placed::text)->rect.y; };
  CHECK(y_of("SSE") < y_of("GLA"));  // 79 % stands above 36 %
}

TEST_CASE("names that are too wide for the plot's side stand above it in rows") {
  Chart chart = scores();
  for (const char* name : {"a third model with a long name", "a fourth model with a longer name", "a fifth"}) {
    chart.series.push_back({name, {8, 64}, {50, 40}, {}, {}});
  }
  TextCanvas canvas({300, 240});
  draw_chart(canvas, {0, 0, 300, 240}, chart, {light_theme(), 1});
  check_no_text_covers_another(canvas);
  const auto found = std::ranges::find(canvas.texts(), "a fifth", &TextCanvas::Placed::text);
  const auto axis = std::ranges::find(canvas.texts(), "right answers (%)", &TextCanvas::Placed::text);
  REQUIRE(found != canvas.texts().end());
  CHECK(found->rect.bottom() <= axis->rect.y);
}

TEST_CASE("a number that is not there interrupts the line, and a chart without numbers says so") {
  TextCanvas canvas({400, 240});
  Chart chart = scores();
  chart.series.resize(1);
  chart.interval.clear();
  chart.series[0].low.clear();
  chart.series[0].high.clear();
  const auto drawn_with = [&](double second, std::string_view what) {
    TextCanvas drawn({400, 240});
    chart.series[0].y[1] = second;
    draw_chart(drawn, {0, 0, 400, 240}, chart, {light_theme(), 1});
    return std::ranges::count_if(drawn.lines(), [&](const std::string& line) { return line.starts_with(what); });
  };
  CHECK(drawn_with(97, "path") == 2);  // one in the legend
  CHECK(drawn_with(97, "polygon") == 5);
  CHECK(drawn_with(NAN, "path") == 2);  // 8 stands alone, 32 and 64 are a line
  CHECK(drawn_with(NAN, "polygon") == 4);
  chart.series[0].y.assign(4, NAN);
  draw_chart(canvas, {0, 0, 400, 240}, chart, {light_theme(), 1});
  CHECK(std::ranges::count(texts(canvas), "There is nothing to draw") == 1);
}

TEST_CASE("a logarithmic axis of one decade has more than its ends") {
  CHECK(axis_values({1, 20, true}, 8).size() == 5);  // 1, 2, 5, 10, 20
}

TEST_CASE("names spread out over what room there is, in order") {
  const float wanted[] = {10, 11, 12, 90};
  const std::vector<float> at = spread_out(wanted, 10, 5, 95);
  CHECK(at == std::vector<float>{10, 20, 30, 90});
  const float low[] = {90, 91, 92};
  CHECK(spread_out(low, 10, 5, 95) == std::vector<float>{75, 85, 95});
}

TEST_CASE("a chart's arrays hold its exact numbers, by series and place") {
  Chart chart = scores();
  chart.series[1].x.back() = 128;
  const std::vector<Array> arrays = chart_arrays(chart);
  REQUIRE(arrays.size() == 3);
  CHECK(arrays[0].name == "right answers");
  CHECK(arrays[0].unit == "%");
  CHECK(arrays[0].axes[0].labels == std::vector<std::string>{"GLA", "SSE"});
  CHECK(arrays[0].axes[1].coordinates == std::vector<double>{8, 16, 32, 64, 128});
  REQUIRE(arrays[0].values.size() == 10);
  CHECK(arrays[0].values[3] == 36);
  CHECK(std::isnan(arrays[0].values[4]));
  CHECK(arrays[0].values[9] == 79);
  CHECK(arrays[1].values[9] == 78);
}

}  // namespace statescope::chart_test

#include "views/plot.h"

#include <cmath>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/samples.h"

namespace statescope::plot_test {

TEST_CASE("a value's place along an axis, linear and logarithmic") {
  const ValueAxis linear{-1, 3};
  CHECK(linear.share(-1) == 0);
  CHECK(linear.share(1) == Approx(0.5));
  CHECK(linear.share(99) == 1);
  CHECK(std::isnan(linear.share(NAN)));
  const ValueAxis logarithmic{0.001, 10, true};
  CHECK(logarithmic.share(0.1) == Approx(0.5));
  CHECK(logarithmic.share(0) == 0);
  CHECK(logarithmic.share(10) == Approx(1));
}

TEST_CASE("axes name round values") {
  const auto near = [](const std::vector<double>& found, const std::vector<double>& expected) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).margin(1e-9));
  };
  near(axis_values({0, 1}, 5), {0, 0.2, 0.4, 0.6, 0.8, 1});
  near(axis_values({-1, 1}, 2), {-1, 0, 1});
  near(axis_values({0.001, 1, true}, 9), {0.001, 0.01, 0.1, 1});
  near(axis_values({1e-6, 1, true}, 4), {1e-6, 1e-4, 1e-2, 1});
  CHECK(axis_number(0.001) == "0.001");
  CHECK(axis_number(1e-6) == "10⁻⁶");
  CHECK(axis_number(static_cast<double>(-1e-4f)) == "-10⁻⁴");
  CHECK(axis_number(-20000) == "-20k");
  CHECK(axis_number(2e12) == "2·10¹²");
  const float values[] = {NAN, 3.2f, INFINITY};
  CHECK(axis_over(values).high == 5);
  CHECK(axis_over({}).high == 1);
}

TEST_CASE("tokens along the bottom: every place, or those with room; the cursor's always") {
  TokenAxis axis{sample_run({.tokens = 40}), token_range(0, 40), 21};
  CHECK(axis.place_of(21) == 21);
  axis.tokens = {3, 9, 30};
  CHECK(axis.place_of(2) == -1);
  CHECK(axis.place_of(29) == 1);
  axis.tokens = token_range(0, 40);
  TextCanvas canvas({300, 100});
  draw_token_axis(canvas, {10, 10, 280, 40}, axis, {light_theme(), 1});
  const auto has = [&](std::string_view text) {
    return std::ranges::any_of(canvas.texts(), [&](const TextCanvas::Placed& placed) { return placed.text == text; });
  };
  CHECK(has("␣river"));
  CHECK(has("21"));
  CHECK(has("N"));
  CHECK(has("Q"));
}

TEST_CASE("a curve keeps its peaks where tokens are narrower than a unit, and NaN interrupts it") {
  std::vector<float> values(10000);
  values[5003] = 1;
  values[7777] = NAN;
  TextCanvas wide({100, 100});
  draw_curve(wide, {0, 0, 100, 100}, {0, 1}, values, {}, 1, {light_theme(), 1});
  REQUIRE(wide.lines().size() == 1);
  CHECK(wide.lines()[0].find(" 50.5,0") != std::string::npos);
  TextCanvas few({100, 100});
  const float gap[] = {0, 1, NAN, 0, 1};
  draw_curve(few, {0, 0, 100, 100}, {0, 1}, gap, {}, 1, {light_theme(), 1});
  CHECK(few.lines().size() == 2);
}

TEST_CASE("on paper curves and their names have a dash and a marker of their own, in a window neither") {
  const std::vector<float> values(200, 0.5f);
  const auto lines = [&](std::int64_t number, bool window) {
    Frame frame{light_theme(), 1};
    frame.shown.cursor = window;
    TextCanvas canvas({300, 100});
    draw_curve(canvas, {0, 0, 300, 50}, {0, 1}, values, {{}, number}, 1, frame);
    const std::vector<LegendEntry> entries{{{}, "a", number}};
    draw_legend(canvas, {0, 60, 300, 12}, entries, frame);
    return canvas.lines();
  };
  const std::vector<std::string> plain = lines(-1, false);
  CHECK(lines(0, true) == plain);
  CHECK(lines(1, true) == plain);
  std::vector<std::vector<std::string>> all;
  for (std::int64_t number = 0; number < 28; ++number) {
    all.push_back(lines(number, false));
    CHECK(all.back().size() > plain.size());
  }
  std::ranges::sort(all);
  CHECK(std::ranges::adjacent_find(all) == all.end());
}

TEST_CASE("a legend says how many entries have no room, and nothing stands behind that") {
  const std::vector<LegendEntry> entries{{{}, "shared"}, {{}, "partition 1"}, {{}, "partition 2"}};
  const auto drawn = [&](float width) {
    TextCanvas canvas({500, 40});
    const Rect line{10, 10, width, 12};
    const float end = draw_legend(canvas, line, entries, {light_theme(), 1});
    std::vector<std::string> texts;
    for (const TextCanvas::Placed& placed : canvas.texts()) texts.push_back(placed.text);
    return std::pair{texts, end < line.right()};
  };
  CHECK(drawn(400) == std::pair{std::vector<std::string>{"shared", "partition 1", "partition 2"}, true});
  CHECK(drawn(100) == std::pair{std::vector<std::string>{"shared", "+2"}, false});
  CHECK(drawn(20) == std::pair{std::vector<std::string>{"+3"}, false});
  CHECK(drawn(5) == std::pair{std::vector<std::string>{}, false});
}

TEST_CASE("while an answer is missing the view says why") {
  Findings findings;
  const DeltaRuleQuestion question{.layer = 2};
  CHECK(waiting(findings, question, "The delta rule of layer 2").headline == "The delta rule of layer 2 has not been worked out yet");
  findings.set(question, {nullptr, "", 0.4});
  CHECK(waiting(findings, question, "The delta rule of layer 2").detail == "40 % done.");
  findings.set(question, {nullptr, "too long", 0});
  CHECK(waiting(findings, question, "The delta rule of layer 2").detail == "Too long");
}

TEST_CASE("a layer without a matrix state says which layers have one") {
  const Sample sample({.tokens = 3});
  CHECK(without_memory(sample.at(1)).headline.empty());
  CHECK(without_memory(sample.attention_at(1)).detail == "In this model, layer 0 keeps one.");
  CHECK_FALSE(without_memory({}).headline.empty());
}

}  // namespace statescope::plot_test

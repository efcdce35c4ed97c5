#include "views/timeline.h"

#include <fmt/format.h>

#include <cmath>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/samples.h"

namespace statescope::timeline_test {
namespace {

LayerSeries small_series() {
  return {.from = 0,
          .to = 3,
          .slots = 2,
          .residual_norm = {1, 2, 3},
          .state_norm = {4, 5, 6, 0, 0.5f, 0.5f},
          .update_norm = {4, 1, 1, 0, 0.5f, 0},
          .routing_entropy = {0.1f, 0.9f, 1},
          .gate_entropy_q = {},
          .gate_entropy_k = {},
          .gate_winner_q = {},
          .gate_winner_k = {}};
}

Findings small_findings() {
  Findings findings;
  findings.answer(LayerSeriesQuestion{.layer = 0, .from = 0, .to = 3}, small_series());
  findings.answer(LossSeriesQuestion{.from = 0, .to = 3}, LossSeries{.from = 0, .to = 3, .loss = {NAN, 2.5f, 0.25f}, .entropy = {1, 1, 1}});
  return findings;
}

std::string text_of(const TimelineData& data) {
  std::string text = fmt::format("layer {}, tokens {}-{} of {}\n", data.layer, data.from, data.to, data.run);
  for (const Lane& lane : data.lanes) {
    text += lane.name + ":";
    if (lane.missing) text += " " + lane.missing.sentence();
    for (const LaneCurve& curve : lane.curves) {
      text += fmt::format(" {}[{}]", curve.name, curve.identity);
      for (const float value : curve.values) text += fmt::format(" {:g}", value);
    }
    text += "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("timeline: a lane for all that is known of the layer, a curve for every slot") {
  const Sample sample({.tokens = 3, .partitions = 1});
  CHECK(text_of(build_timeline(sample.at(1), {.token = 1}, small_findings(), 512)) ==
        "layer 0, tokens 0-3 of 3\n"
        "‖S‖: shared[0] 4 5 6 1[1] 0 0.5 0.5\n"
        "‖ΔS‖: shared[0] 4 1 1 1[1] 0 0.5 0\n"
        "routing: [-1] 0.1 0.9 1\n"
        "‖x‖: [-1] 1 2 3\n"
        "loss: [-1] nan 2.5 0.25\n");
}

TEST_CASE("timeline: what is still being worked out is said, what cannot be too") {
  const Sample sample({.tokens = 3, .partitions = 1});
  Findings findings;
  findings.set(LayerSeriesQuestion{.layer = 0, .from = 0, .to = 3}, {nullptr, "out of memory", 1});
  const TimelineData data = build_timeline(sample.at(1), {.token = 1}, findings, 512);
  REQUIRE(data.lanes.size() == 2);
  CHECK(data.lanes[0].missing.sentence().find("Out of memory") != std::string::npos);
  CHECK(data.lanes[1].missing);
  CHECK(build_timeline({}, {}, {}, 512).message);
}

TEST_CASE("timeline: the window holds the cursor and seldom moves") {
  CHECK(timeline_window(5, 100, 512).to == 100);
  std::int64_t moves = 0, last = -1;
  for (std::int64_t token = 0; token < 5000; ++token) {
    const TokenWindow window = timeline_window(token, 5000, 512);
    CHECK(window.to - window.from == 512);
    CHECK((window.from <= token && token < window.to));
    moves += window.from != last;
    last = window.from;
  }
  CHECK(moves < 25);
  CHECK(timeline_window(4999, 5000, 16).to == 5000);
}

TEST_CASE("timeline: it asks for the layer and the loss, a click goes to the token, the tooltip says the value and where it is from") {
  const Sample sample({.tokens = 3, .partitions = 1});
  const auto view = make_timeline();
  const std::vector<Question> asked = view->questions(sample.at(1), {.token = 1});
  REQUIRE(asked.size() == 2);
  CHECK(asked[0] == Question(LayerSeriesQuestion{.layer = 0, .from = 0, .to = 3}));
  view->build(sample.at(1), {.token = 1}, small_findings());
  CHECK(view->on_hit({4, Hit::all, 2}).token == 2);  // fifth lane
  const std::string tip = view->tooltip({0, Hit::all, 2});
  CHECK(tip.find("‖S‖: shared = 6, curve 1 = 0.5") != std::string::npos);
  CHECK(tip.find("‖S_t‖_F over all heads") != std::string::npos);
  CHECK(tip.find("float32") != std::string::npos);
  CHECK(view->table().rows.size() == 3);
  CHECK(view->table().rows[1] == std::vector<std::string>{"1", "␣grass", "5", "0.5", "1", "0.5", "0.9", "2", "2.5"});
  CHECK(view->describe().find("loss (nat) = 2.5") != std::string::npos);
  view->turn(16);
  CHECK(view->knob()->value == 16);
}

}  // namespace statescope::timeline_test

#include "views/head_gates.h"
#include "views/sheets.h"

#include <algorithm>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/sample_answers.h"
#include "tests/views/samples.h"

namespace statescope::head_gates_test {
namespace {

/// Two tokens, two heads.
HeadContest contest() {
  return {.heads = 2,
          .gate_q = {0.75f, 0.25f, 0.5f, 0.5f},
          .gate_k = {0.1f, 0.9f, 0.6f, 0.4f},
          .entropy_q = {0.8f, 1},
          .entropy_k = {0.5f, 0.9f},
          .winner_q = {0, 0},
          .winner_k = {1, 0},
          .margin_q = {0.5f, 0},
          .margin_k = {0.8f, 0.2f},
          .flow = {0.3f, 0.5f},
          .read_gate_effective = {0.02f, 0.03f}};
}

SharpenedGates sharpened() {
  return {.gate_q = {0.9f, 0.1f, 0.5f, 0.5f},
          .gate_k = {0, 1, 0.7f, 0.3f},
          .entropy_q = {0.4f, 1},
          .entropy_k = {0, 0.8f},
          .flow = {0.1f, 0.2f, 0.3f, 0.4f},
          .lambda = {1, 4},
          .curve_q = {0.8f, 0.4f, 1, 1},
          .curve_k = {0.5f, 0, 0.9f, 0.8f},
          .curve_flow = {0.3f, 0.1f, 0.5f, 0.4f}};
}

Findings findings(double lambda) {
  Findings found;
  found.answer(HeadGatesQuestion{0}, contest());
  found.answer(SharpenedGatesQuestion{0, 0, 2, lambda}, sharpened());
  return found;
}

const Sample& sample() {
  static const Sample made({.tokens = 2, .partitions = 0});
  return made;
}

}  // namespace

TEST_CASE("head gates: both gates at the cursor, and λ beside them") {
  const HeadGatesData plain = build_head_gates(sample().at(0), {.token = 0}, findings(1), GateMode::contest, 1);
  CHECK(plain.q.gate == std::vector<float>{0.75f, 0.25f});
  CHECK(plain.k.winner == 1);
  CHECK(plain.q.probe.empty());
  CHECK(plain.curve_flow == std::vector<float>{0.3f, 0.1f});
  CHECK(plain.effective == 0.02f);
  CHECK(plain.gate_k == std::vector<float>{0.1f, 0.6f, 0.9f, 0.4f});
  const HeadGatesData probed = build_head_gates(sample().at(1), {.token = 1}, findings(4), GateMode::contest, 4);
  CHECK(probed.k.gate == std::vector<float>{0.6f, 0.4f});
  CHECK(probed.k.probe == std::vector<float>{0.7f, 0.3f});
  const HeadGatesData moving = build_head_gates(sample().at(1), {.token = 1, .progress = 0.5f}, findings(1), GateMode::contest, 1);
  CHECK(moving.token == 0);
  CHECK(moving.flow == 0.3f);
}

TEST_CASE("head gates: without an answer at this λ the run's own gates stay, the map waits") {
  CHECK(build_head_gates(sample().at(0), {}, findings(1), GateMode::contest, 2).q.gate.size() == 2);
  CHECK(build_head_gates(sample().at(0), {}, findings(1), GateMode::flow, 2).message.headline ==
        "What passes between the tokens of layer 0 has not been worked out yet");
}

TEST_CASE("head gates: heads that do not compete") {
  Findings found;
  found.answer(HeadGatesQuestion{0}, HeadContest{});
  const HeadGatesData data = build_head_gates(sample().at(0), {}, found, GateMode::contest, 1);
  CHECK(data.message.headline == "The heads of layer 0 (gla) do not compete");
}

TEST_CASE("head gates: the map is causal; hits, tooltips, tables") {
  const auto view = make_head_gates();
  view->set_mode(2);
  view->turn(4);
  CHECK(view->knob()->value == 4);
  view->turn(1.007);
  CHECK(view->knob()->value == 1);
  view->turn(4);
  const std::vector<Question> questions = view->questions(sample().at(1), {.token = 1});
  CHECK(questions == std::vector<Question>{HeadGatesQuestion{0}, SharpenedGatesQuestion{0, 0, 2, 4}});
  view->build(sample().at(1), {.token = 1}, findings(4));
  CHECK(view->tooltip({HeadGatesSheets::flow, 0, 1}).starts_with("token 0 “the”, token 1 “␣grass”\nC = nothing, it comes later"));
  CHECK(view->tooltip({HeadGatesSheets::flow, 1, 0}).starts_with("token 1 “␣grass”, token 0 “the”\nC = 0.3"));
  CHECK(view->tooltip({HeadGatesSheets::flow, 1, 0}).find("a probe that changes nothing in the run") != std::string::npos);
  CHECK(view->on_hit({HeadGatesSheets::flow, 1, 0}).token == 1);
  CHECK(view->sentence() == "Head 0 wins the write, head 0 the read; C(t,t) = 0.5 · token 1 “␣grass”, layer 0.");

  view->set_mode(0);
  view->turn(1);
  view->build(sample().at(0), {.token = 0}, findings(1));
  TextCanvas canvas({500, 300});
  view->draw(canvas, {0, 0, 500, 300}, {light_theme(), 1});
  CHECK(std::ranges::any_of(canvas.texts(), [](const auto& placed) { return placed.text == "0.750 wins"; }));
  const auto head = canvas.hits().at({250, 70});
  REQUIRE(head);
  CHECK(view->on_hit(*head).head == 0);
  const std::vector<std::string> second = view->table().rows[1];
  CHECK((second[1] == "0.25" && second[2] == "0.9"));
  view->set_mode(1);
  view->build(sample().at(0), {.token = 0}, findings(1));
  CHECK(view->table().columns[2] == "head 0: G^Q");
}

}  // namespace statescope::head_gates_test

#include "views/delta_rule.h"
#include "views/parts.h"
#include "views/sheets.h"

#include <cmath>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/sample_answers.h"
#include "tests/views/samples.h"

namespace statescope::delta_rule_test {
namespace {

Sample delta_sample(std::int64_t tokens) { return Sample({.tokens = tokens, .partitions = 0, .memory = "gated delta rule"}); }

/// One visit, at token 1: π and v at right angles, 3 and 4 long.
DeltaRule right_angle() {
  return {.token = {1},
          .prediction = {3},
          .value = {4},
          .error = {5},
          .erase = {1.5f},
          .write = {2},
          .update = {2.5f},
          .cosine = {0},
          .beta = {0.5f},
          .alpha = {0.9f},
          .mended = {0.5f},
          .along_key = {0.45f}};
}

}  // namespace

TEST_CASE("delta rule: the picture has the lengths and the angle of the vectors") {
  const DeltaPicture picture = delta_picture(right_angle(), 0);
  CHECK(picture.value.x == 4);
  CHECK(picture.value.y == 0);
  CHECK(picture.prediction.x == 0);
  CHECK(picture.prediction.y == 3);
  // Half of the way from π to v.
  CHECK(picture.after.x == 2);
  CHECK(picture.after.y == 1.5f);
}

TEST_CASE("delta rule: of two keys the picture ends where the erase key reads afterwards, and signs and sentence are those of RWKV-7") {
  DeltaRule rule = right_angle();
  rule.two_keys = true;
  rule.put = {0.25f};
  const DeltaPicture picture = delta_picture(rule, 0);
  CHECK(picture.after.x == 1);  // ¼ v + ½ π
  CHECK(picture.after.y == 1.5f);
  Findings findings;
  findings.answer(DeltaRuleQuestion{}, rule);
  Sample sample({.tokens = 4, .partitions = 0, .memory = "WKV"});
  Snapshot snapshot = sample.at(1);
  auto run = std::make_shared<RunInfo>(*snapshot.run);
  for (LayerInfo& layer : run->model.layers) layer.mixer = "rwkv7";
  snapshot.run = run;
  const auto view = make_delta_rule();
  CHECK(view->questions(snapshot, {.token = 1}) == std::vector<Question>{DeltaRuleQuestion{}});
  view->build(snapshot, {.token = 1}, findings);
  CHECK(view->describe().starts_with("50 % of what the erase key reads taken away: read 3, written 4, cosine 0"));
  CHECK(view->tooltip({DeltaRuleSheets::gates, 0}).find("κ̂·k = 0.25") != std::string::npos);
  CHECK(view->tooltip({DeltaRuleSheets::change, 0}).find("‖(κ̂⊙a)ᵀπ‖ = 1.5") != std::string::npos);
}

TEST_CASE("delta rule: several steps of a token stand side by side, each with its number") {
  DeltaRule rule = right_angle();
  for (std::vector<float> DeltaRule::*values :
       {&DeltaRule::prediction, &DeltaRule::value, &DeltaRule::error, &DeltaRule::erase, &DeltaRule::write, &DeltaRule::update,
        &DeltaRule::cosine, &DeltaRule::beta, &DeltaRule::alpha, &DeltaRule::mended, &DeltaRule::along_key})
    (rule.*values).push_back((rule.*values)[0] / 2);
  rule.token.push_back(1);
  rule.steps = 2;
  Findings findings;
  findings.answer(DeltaRuleQuestion{}, rule);
  const Sample sample = delta_sample(4);
  const auto view = make_delta_rule();
  view->build(sample.at(1), {.token = 1}, findings);
  CHECK(view->describe().find("step 2 of 2") != std::string::npos);
  CHECK(view->table().rows.size() == 2);
  CHECK(view->tooltip({DeltaRuleSheets::prediction, 0}).find("step 1 of 2") != std::string::npos);
  CHECK(view->on_hit({DeltaRuleSheets::prediction, 0}).token == 1);
  TextCanvas canvas({900, 400});
  view->draw(canvas, {0, 0, 900, 400}, {light_theme(), 1});
  const std::string text = visible_token(*sample.at(1).run, 1);
  CHECK(std::ranges::count(canvas.texts(), text, &TextCanvas::Placed::text) == 1);  // under both places together
}

TEST_CASE("delta rule: the last visit not after the cursor is shown") {
  Findings findings;
  findings.answer(DeltaRuleQuestion{0, 0, 1}, right_angle());
  const Sample sample = delta_sample(4);
  const auto at = [&](Cursor cursor) { return build_delta_rule(sample.at(cursor.token), cursor, findings, {}); };
  CHECK(at({.token = 0, .head = 1}).visit == -1);
  CHECK(at({.token = 1, .head = 1}).here());
  CHECK(at({.token = 1, .head = 1, .progress = 0.5f}).visit == -1);
  CHECK(at({.token = 3, .head = 1}).visit == 0);
  CHECK_FALSE(at({.token = 3, .head = 1}).here());
  CHECK(at({.token = 3, .head = 0}).message.headline == "The delta rule of layer 0, head 0 has not been worked out yet");
}

TEST_CASE("delta rule: memories of the other rule say where it can be seen") {
  const Sample gla({.tokens = 3, .partitions = 0});
  const auto view = make_delta_rule();
  CHECK(view->questions(gla.at(1), {.token = 1}).empty());
  view->build(gla.at(1), {.token = 1});
  CHECK(view->describe().starts_with("Layer 0 (gla) does not write by the delta rule. Models with the delta rule"));
  CHECK(view->table().rows.empty());
}

TEST_CASE("delta rule: table, tooltip, hits") {
  const Sample sample = delta_sample(40);
  const auto view = make_delta_rule();
  const Cursor cursor{.token = 20};
  const std::vector<Question> questions = view->questions(sample.at(20), cursor);
  REQUIRE(questions == std::vector<Question>{DeltaRuleQuestion{}});
  view->build(sample.at(20), cursor, sample_findings(questions, sample.at(20)));
  CHECK(view->table().rows.size() == 40);
  CHECK(view->table().columns.size() == 13);
  CHECK(view->on_hit({DeltaRuleSheets::prediction, 7}).token == 7);
  CHECK(view->on_hit({DeltaRuleSheets::gates, 7}).token == 7);
  CHECK(view->tooltip({DeltaRuleSheets::prediction, 7}).find("‖π‖ = ") != std::string::npos);
  CHECK(view->tooltip({DeltaRuleSheets::prediction, 7}).ends_with("\nrecomputed in double precision"));
  TextCanvas canvas({900, 400});
  view->draw(canvas, {0, 0, 900, 400}, {light_theme(), 1});
  const auto step = canvas.hits().at({800, 100});
  REQUIRE(step);
  CHECK(view->tooltip(*step).find("‖v − π‖ = ") != std::string::npos);
  CHECK_FALSE(view->on_hit(*step).token);
}

}  // namespace statescope::delta_rule_test

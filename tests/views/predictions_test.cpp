#include "views/predictions.h"
#include "views/sheets.h"

#include <cmath>

#include "tests/catch.h"
#include "tests/views/sample_answers.h"
#include "tests/views/samples.h"
#include "views/parts.h"

namespace statescope::predictions_test {
namespace {

/// After token 30 "?" of the sample, whose right answer is " 4 1"; the run goes on with " 4", " 1", …
Snapshot asked() {
  const Sample sample({.tokens = 40});
  RunInfo run = *sample.run();
  run.expected = {{31, " 4"}, {32, " 1"}};
  Snapshot snapshot = sample.at(30);
  snapshot.run = std::make_shared<const RunInfo>(run);
  snapshot.predictions = {{7, " mill", 0.5f}, {31, " 4", 0.25f}, {9, "\n", 0.125f}};
  return snapshot;
}

PredictionsData built(const Snapshot& snapshot, const Cursor& cursor = {.token = 30}, PredictionsMode mode = {}) {
  const auto view = make_predictions();
  view->set_mode(static_cast<std::size_t>(mode));
  return build_predictions(snapshot, cursor, sample_findings(view->questions(snapshot, cursor), snapshot), mode);
}

}  // namespace

TEST_CASE("predictions: bars say which token follows and which is right") {
  const PredictionsData data = built(asked());
  REQUIRE(data.bars.size() == 3);
  CHECK((data.bars[0].text == "␣mill" && !data.bars[0].right && !data.bars[0].follows));
  CHECK((data.bars[1].text == "␣4" && data.bars[1].right && data.bars[1].follows));
  CHECK(data.bars[2].text == "⏎");
  const auto view = make_predictions();
  view->build(asked(), {.token = 30});
  CHECK(view->sentence() == "After token 30 “␣?” the model expects “␣mill”, 0.50; right would be “␣4”, 0.25, rank 2.");
  CHECK(view->tooltip({PredictionsSheets::bars, 1})
            .find("p of the next token = 0.25   p = softmax(z), z = W RMSNorm(x_t)\nid = 31\nmark = right, follows") != std::string::npos);
  CHECK(view->table().rows[1] == std::vector<std::string>{"␣4", "0.25", "31", "right, follows"});
}

TEST_CASE("predictions: what is improbable is not called 0") {
  Snapshot snapshot = asked();
  snapshot.predictions = {{7, " mill", 0.000217f}, {31, " 4", 0.000012f}};
  const auto view = make_predictions();
  view->build(snapshot, {.token = 30});
  CHECK(view->sentence() == "After token 30 “␣?” the model expects “␣mill”, 0.00022; right would be “␣4”, 1.2e-05, rank 2.");
  CHECK(chance(0.91f) == "0.91");
}

TEST_CASE("predictions: what is not finite has no bars, and is said") {
  Snapshot snapshot = asked();
  for (Prediction& prediction : snapshot.predictions) prediction.probability = std::nanf("");
  const PredictionsData data = built(snapshot);
  CHECK(data.bars.empty());
  CHECK(data.not_finite);
  const auto view = make_predictions();
  view->build(snapshot, {.token = 30});
  CHECK(view->describe().find("its numbers are not finite") != std::string::npos);
  CHECK(view->table().rows.empty());
}

TEST_CASE("predictions: what is followed is the right answer, else the marked one, else what is most probable") {
  Snapshot snapshot = asked();
  RunInfo run = *snapshot.run;
  run.expected.push_back({31, " 4"});
  CHECK(answer_tokens(run).size() == 2);
  run.expected.clear();
  CHECK(answer_tokens(run).size() == 4);  // " 4 1 7 7", whose ids differ in the sample
  run.spans.clear();
  CHECK(answer_tokens(run).empty());
  snapshot.run = std::make_shared<const RunInfo>(run);
  CHECK(built(snapshot).curves.empty());
  const PredictionsData logits = built(snapshot, {.token = 30}, PredictionsMode::logits);
  REQUIRE(logits.curves.size() == 3);
  CHECK((logits.curves[0].text == "␣mill" && !logits.of_answer));
  CHECK(logits.curves[1].values.size() == 40);
}

TEST_CASE("predictions: the right answer's tokens stand where they are due, and their product where the run says them") {
  const PredictionsData data = built(asked());
  REQUIRE(data.right.size() == 2);
  CHECK((data.right[0].place == 30 && data.right[1].place == 31 && data.right[1].text == "␣1"));
  CHECK(data.right[1].probability == data.curves[1].values[31]);
  CHECK(data.answer == Approx(double{data.right[0].probability} * data.right[1].probability));
  Snapshot wrong = asked();
  RunInfo run = *wrong.run;
  run.tokens[31].id = 99;
  wrong.run = std::make_shared<const RunInfo>(run);
  CHECK(std::isnan(built(wrong).answer));
  CHECK(built(wrong).right.size() == 2);
}

TEST_CASE("predictions: along the run, the last token has no next one") {
  const PredictionsData data = built(asked());
  REQUIRE(data.next.size() == 40);
  CHECK(std::isnan(data.next.back()));
  CHECK(std::isnan(data.rank.back()));
  CHECK(data.rank[3] == 4);
  CHECK_FALSE(data.window);
}

TEST_CASE("predictions: while the token moves they are those of the token before") {
  const PredictionsData data = built(asked(), {.token = 30, .progress = 0.4f});
  CHECK(data.token == 29);
  REQUIRE(data.bars.size() == 2);
  CHECK(data.bars[0].text == "␣mill");
}

TEST_CASE("predictions: bars stand before the rest is known; a click goes to the token") {
  const auto view = make_predictions();
  view->build(asked(), {.token = 30});
  CHECK_FALSE(view->table().rows.empty());
  CHECK_FALSE(view->on_hit({PredictionsSheets::tokens, 12}).token);  // they are not known yet
  CHECK_FALSE(view->on_hit({PredictionsSheets::bars, 0}).token);
  CHECK(build_predictions({}, {}, {}, {}).message);
  CHECK(build_predictions(asked(), {}, {}, {}).curves_message.headline == "What is predicted along the run has not been worked out yet");
}

}  // namespace statescope::predictions_test

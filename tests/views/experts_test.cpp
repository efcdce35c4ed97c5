#include "views/experts.h"

#include <cmath>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/sample_answers.h"
#include "tests/views/samples.h"
#include "views/sheets.h"

namespace statescope::experts_test {
namespace {

/// Layer 1 of the sample has experts.
Snapshot snapshot(std::int64_t tokens, std::int64_t token, std::int64_t experts = 4, std::int64_t chosen = 2) {
  return Sample({.tokens = tokens, .experts = experts, .chosen_experts = chosen}).attention_at(token);
}
Cursor cursor_at(std::int64_t token) { return {.token = token, .layer = 1}; }

/// Four tokens choose two of four experts; no token goes to expert 3.
Findings answered() {
  Findings findings;
  findings.answer(ExpertsQuestion{1, 0, 4}, Experts{.experts = 4,
                                                    .chosen = 2,
                                                    .expert = {0, 1, 2, 0, 0, 2, 1, 0},
                                                    .weight = {3, 1, 1.5F, 0.5F, 2, 2, 0.7F, 0.3F},
                                                    .load = {0, 0, 0, 0}});
  return findings;
}

ExpertsData built(std::int64_t token) { return build_experts(snapshot(4, token), cursor_at(token), answered()); }

bool says(const TextCanvas& canvas, std::string_view words) {
  return std::ranges::any_of(canvas.texts(), [&](const auto& placed) { return placed.text.find(words) != std::string::npos; });
}

}  // namespace

TEST_CASE("experts: shares of the tokens read so far, the token's experts by their weights, loads against the fair one") {
  const auto view = make_experts();
  CHECK(view->questions(snapshot(4, 2), cursor_at(2)) == std::vector<Question>{ExpertsQuestion{1, 0, 4}});
  view->build(snapshot(4, 1), cursor_at(1), answered());
  CHECK(view->sentence() == "Layer 1: “␣grass” (1) goes to experts 2 and 0 (of 4).");
  const ExpertsData data = built(1);
  REQUIRE(data.until == 2);
  CHECK(data.share[0] == 0.75F);
  CHECK(data.share[1] == 0.25F);
  CHECK(data.share[5] == 0.75F);
  CHECK(std::isnan(data.share[3]));
  const auto& cells = data.rows.at(0).cells;  // what is not chosen has no number, so that it is blank
  CHECK((cells.at(0, 0) == 0.75F && cells.at(1, 0) == 0.25F && cells.at(0, 1) == 0.25F && cells.at(2, 1) == 0.75F));
  CHECK((std::isnan(cells.at(1, 1)) && std::isnan(cells.at(2, 0)) && std::isnan(cells.at(3, 0)) && std::isnan(cells.at(3, 1))));
  REQUIRE(data.chosen.size() == 2);
  CHECK((data.chosen[0].expert == 2 && data.chosen[0].weight == 1.5F && data.chosen[0].share == 0.75F));
  CHECK((data.loads[0].tokens == 2 && data.loads[0].ratio == 2));
  CHECK((data.loads[2].tokens == 1 && data.loads[2].ratio == 1));
  CHECK((data.loads[3].tokens == 0 && data.loads[3].ratio == 0));
  CHECK(view->tooltip({ExpertsSheets::map, 2, 1}).find("share = 0.75") != std::string::npos);
  CHECK(view->tooltip({ExpertsSheets::map, 3, 1}).find("share = not chosen") != std::string::npos);
  CHECK(view->tooltip({ExpertsSheets::map, 2, 3}).empty());  // not read yet
  CHECK(view->tooltip({ExpertsSheets::chosen, 0}).starts_with("chosen expert 2\nweight = 1.5"));
  CHECK(view->tooltip({ExpertsSheets::chosen, 0}).find("share of the weights = 0.75") != std::string::npos);
  CHECK(view->on_hit({ExpertsSheets::map, 2, 1}).token == 1);
  CHECK(view->shading()->range.high == 1);
}

TEST_CASE("experts: while the first token moves nothing has been read") {
  Cursor cursor = cursor_at(0);
  cursor.progress = 0.5F;
  const ExpertsData data = build_experts(snapshot(4, 0), cursor, answered());
  CHECK(data.title == "Layer 1: nothing has been read yet");
  CHECK(data.until == 0);
  CHECK(data.chosen.empty());
  CHECK(data.loads[0].ratio == 0);
}

TEST_CASE("experts: tokens before the window count; dead and overloaded are said after 32 visits for each expert") {
  constexpr std::int64_t kTokens = 1400, kExperts = 64, kChosen = 2;
  const Snapshot late = snapshot(kTokens, kTokens - 1, kExperts, kChosen), early = snapshot(kTokens, 1000, kExperts, kChosen);
  const auto data_of = [](const Snapshot& at) {
    const Cursor cursor = cursor_at(at.token);
    return build_experts(at, cursor, sample_findings(make_experts()->questions(at, cursor), at));
  };
  const ExpertsData data = data_of(late);
  std::int64_t sum = 0;
  for (const ExpertsData::Load& load : data.loads) sum += load.tokens;
  CHECK(sum == kTokens * kChosen);
  CHECK(data.loads.back().alarm == "dead");  // the sample chooses among the first three quarters
  CHECK(data_of(early).loads.back().alarm.empty());
  CHECK(std::ranges::any_of(data.loads, [](const auto& load) { return load.alarm == "overloaded" && load.ratio > 2; }));
  TextCanvas canvas({1280, 720});
  draw(data, canvas, {0, 0, 1280, 720}, {light_theme(), 1});
  CHECK(says(canvas, "dead"));
  CHECK(says(canvas, std::to_string(std::ranges::count(data.loads, "dead", &ExpertsData::Load::alarm)) + " of 64"));
}

TEST_CASE("experts: where rows would be smaller than a unit, neighbours share one, and no choice is lost") {
  const Snapshot many = snapshot(40, 30, 500, 10);
  const Cursor cursor = cursor_at(30);
  const ExpertsData data = build_experts(many, cursor, sample_findings(make_experts()->questions(many, cursor), many));
  CHECK(data.rows.size() == 5);  // of 500, 250, 125, 63 and 32 rows
  CHECK(rows_on(data.rows, 600).each == 1);
  CHECK(rows_on(data.rows, 130).each == 4);
  CHECK(rows_on(data.rows, 3).each == 16);
  for (const auto& [each, cells] : data.rows) {
    for (std::int64_t e = 0; e < 500; ++e) {
      for (std::int64_t t = 0; t < data.until; ++t) {
        const float share = data.share[static_cast<std::size_t>(e * data.until + t)];
        if (!std::isnan(share)) REQUIRE(cells.at(e / each, t) >= share);
      }
    }
  }
  TextCanvas canvas({900, 300});
  draw(data, canvas, {0, 0, 900, 300}, {light_theme(), 1});
  CHECK(says(canvas, "experts down, 4 × 1 in one, the largest; blank"));
  CHECK(data.title == "Layer 1: “␣?” (30) goes to experts " + std::to_string(data.chosen[0].expert) + ", " +
                          std::to_string(data.chosen[1].expert) + ", " + std::to_string(data.chosen[2].expert) + ", " +
                          std::to_string(data.chosen[3].expert) + ", " + std::to_string(data.chosen[4].expert) + " and 5 more (of 500)");
}

TEST_CASE("experts: a layer without says which have some; what is missing is said") {
  CHECK(build_experts({}, {}, {}).message.headline == "No token has been read yet");
  CHECK(build_experts(snapshot(4, 3), cursor_at(3), {}).message.headline.starts_with("Which experts tokens go to in layer 1"));
  const Snapshot dense = Sample({.tokens = 4, .experts = 4}).at(2), none = Sample({.tokens = 4}).at(2);
  CHECK(make_experts()->questions(dense, {.token = 2}).empty());
  CHECK(build_experts(dense, {.token = 2}, {}).message.sentence() == "Layer 0 (sse) has no experts. In this model, layer 1 has some.");
  CHECK(build_experts(none, {.token = 2}, {}).message.detail.starts_with("No layer of this model has any."));
}

}  // namespace statescope::experts_test

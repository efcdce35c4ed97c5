// Two models side by side: what each view says of them, as data and as text.
#include <algorithm>
#include <cmath>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/sample_answers.h"
#include "tests/views/samples.h"
#include "views/cross_similarity.h"
#include "views/difference.h"
#include "views/predictions_beside.h"
#include "views/sheets.h"
#include "views/state.h"

namespace statescope::other_model_test {
namespace {

std::shared_ptr<Peer> peer_at(const Snapshot& snapshot, std::int64_t same_until = 40) {
  return std::make_shared<Peer>(Peer{.own_letter = "A",
                                     .letter = "B",
                                     .snapshot = std::make_shared<const Snapshot>(snapshot),
                                     .missing = {},
                                     .same_until = same_until,
                                     .findings = {}});
}

Findings beside(std::shared_ptr<Peer> peer) {
  Findings findings;
  findings.peer = std::move(peer);
  return findings;
}

bool says(const TextCanvas& canvas, std::string_view words) {
  return std::ranges::any_of(canvas.texts(),
                             [&](const TextCanvas::Placed& placed) { return placed.text.find(words) != std::string::npos; });
}

/// The sample's state, every cell `factor` times as large.
Snapshot scaled(Snapshot snapshot, float factor) {
  for (std::vector<float>* values : {&snapshot.state.values, &snapshot.before.values})
    for (float& x : *values) x *= factor;
  return snapshot;
}

}  // namespace

TEST_CASE("the state's difference to another model is the subtraction of the two, and while a token moves that of the two before it",
          "[peers]") {
  const Sample sample({});
  const Snapshot own = sample.at(12, 1), other = scaled(own, 0.25f);
  const Findings findings = beside(peer_at(other));
  for (const float progress : {1.0f, 0.5f}) {
    const StateData data = build_state(own, {.token = 12, .head = 1, .slot = 2, .progress = progress}, findings, StateMode::other_model);
    REQUIRE(data.headline.empty());
    CHECK(data.models == "A − B");
    const HeadState& from = progress < 1 ? own.before : own.state;
    for (std::size_t slot = 0; slot < data.slots.size(); ++slot) {
      for (std::size_t i = 0; i < data.slots[slot].values.size(); ++i) {
        const float value = from.matrix(static_cast<std::int64_t>(slot))[i];
        CHECK(data.slots[slot].values[i] == value - 0.25f * value);
      }
    }
  }
}

TEST_CASE("a head is not taken from another one of the other model", "[peers]") {
  const Sample sample({});
  const StateData data = build_state(sample.at(12, 1), {.token = 12, .head = 1}, beside(peer_at(sample.at(12, 0))), StateMode::other_model);
  CHECK(data.headline == "Nothing is known about B here");
  CHECK(data.slots.empty());
}

TEST_CASE("states of different shapes are not taken from each other: the view says which shapes they have", "[peers]") {
  const Snapshot own = Sample({}).at(12), other = Sample({.partitions = 0, .rows = 8}).at(12);
  const StateData data = build_state(own, {.token = 12}, beside(peer_at(other)), StateMode::other_model);
  CHECK(data.headline == "The states of A and B have different shapes");
  CHECK(data.detail.find("A: 5 memories, 2 heads of 16 × 16. B: 1 memory, 2 heads of 8 × 16.") == 0);
  CHECK(data.slots.empty());
}

TEST_CASE("without another model, or before it is there, every way of comparing says so", "[peers]") {
  const Snapshot own = Sample({}).at(12);
  auto missing = peer_at(own);
  missing->snapshot = nullptr;
  missing->missing = "B has not read the prompt yet";
  for (const bool alone : {true, false}) {
    const Findings findings = alone ? Findings() : beside(missing);
    const std::string headline = alone ? "There is no other model to compare with" : "Nothing is known about B here";
    CHECK(build_state(own, {.token = 12}, findings, StateMode::other_model).headline == headline);
    CHECK(build_cross_similarity(own, {.token = 12}, findings, CrossSimilarityMode::heads).message.headline == headline);
    CHECK(build_difference(own, {.token = 12}, findings, DifferenceMode::routing).message.headline == headline);
    CHECK(build_predictions_beside(own, {.token = 12}, findings, {.from = 0, .to = 40, .ids = {}}).message.headline == headline);
  }
}

TEST_CASE("a layer that the other model does not have is compared with none of its others", "[peers]") {
  const Snapshot other = Sample({}).at(12);
  Snapshot own = other;
  auto run = std::make_shared<RunInfo>(*own.run);
  run->model.layers.push_back(run->model.layers.front());
  own.run = run;
  own.layer = 2;
  const Findings findings = beside(peer_at(other));
  CHECK(build_state(own, {.token = 12}, findings, StateMode::other_model).headline == "B has no layer 2");
  CHECK(build_cross_similarity(own, {.token = 12}, findings, CrossSimilarityMode::rows).message.headline == "B has no layer 2");
  CHECK(build_difference(own, {.token = 12}, findings, DifferenceMode::decay).message.sentence() ==
        "B has no layer 2. It has 2 of them, A has 3.");
}

TEST_CASE("two models' predictions are paired by their texts; what one does not name is below its least", "[peers]") {
  Snapshot own = Sample({}).at(30), other = own;
  own.predictions = {{10, " 4", 0.6f}, {11, " 1", 0.3f}};
  other.predictions = {{11, " 1", 0.5f}, {12, " 7", 0.2f}};
  auto run = std::make_shared<RunInfo>(*own.run);
  run->expected = {{10, " 4"}};
  own.run = run;
  const PredictionsQuestion question{.from = 0, .to = 40, .ids = {10}};
  const auto predictions = [&](float first) {
    Predictions found{
        .from = 0, .to = 40, .top = {}, .next_probability = {}, .next_rank = {}, .entropy = {}, .logits = {}, .probabilities = {}};
    for (int i = 0; i < 40; ++i) {
      found.next_probability.push_back(first + 0.01f * static_cast<float>(i));
      found.probabilities.push_back(first);
    }
    return found;
  };
  Findings findings = beside(nullptr);
  findings.answer(question, predictions(0.5f));
  auto peer = peer_at(other, 33);
  peer->findings.answer(question, predictions(0.25f));
  findings.peer = peer;
  const PredictionsBesideData data = build_predictions_beside(own, {.token = 30}, findings, question);
  REQUIRE(data.bars.size() == 3);
  CHECK(data.bars[0].text == "␣4");
  CHECK(data.bars[0].right);
  CHECK(std::isnan(data.bars[0].other));
  CHECK(data.bars[1].difference() == 0.3f - 0.5f);
  CHECK(std::isnan(data.bars[2].own));
  CHECK(data.own_least == 0.3f);
  CHECK(data.difference[10] == data.own[10] - data.other[10]);
  CHECK_FALSE(std::isnan(data.other[31]));
  CHECK(std::isnan(data.other[32]));  // token 33 is another one there
  REQUIRE(data.own_right.size() == 1);
  CHECK(data.own_right[0].probability == 0.5f);
  CHECK(summary(data) == "After token 30 “␣?” A expects “␣4”, 0.60, which is right; B expects “␣1”, 0.50");
  const Table table = table_of(sheets(data));
  CHECK(std::vector(table.rows[0].begin(), table.rows[0].begin() + 4) ==
        std::vector<std::string>{"␣4", "0.6", "smaller than any that is known", "right"});
  TextCanvas canvas({900, 300});
  draw(data, canvas, {0, 0, 900, 300}, {light_theme(), 1});
  CHECK(says(canvas, "A − B"));
}

TEST_CASE("likeness of two models: rows are this one's, columns the other's, and shapes may differ", "[peers]") {
  const Snapshot own = Sample({}).at(12, 1), other = Sample({.partitions = 0, .heads = 3}).at(12, 1);
  auto peer = peer_at(other);
  const Cursor cursor{.token = 12, .head = 1, .slot = 3};
  const LayerStateQuestion all_heads{.layer = 0, .token = 12};
  Findings findings = beside(peer);
  CHECK_FALSE(cross_similarity_question(own, findings, other, cursor));  // not before this one's states are known
  CHECK(build_cross_similarity(own, cursor, findings, CrossSimilarityMode::heads).message.headline ==
        "The similarity of A and B has not been worked out yet");
  findings.answer(all_heads, sample_answer(all_heads, own));
  const CrossSimilarityQuestion question = cross_similarity_question(own, findings, other, cursor).value();
  CHECK(question.slot == 0);  // the only one that it has
  CHECK(question.other_slot == 3);
  CHECK((question.head == 1 && question.other_head == 1));
  CHECK(question.other.get() == findings.get(all_heads));
  peer->findings.answer(question,
                        {.of_rows = {std::vector<float>(80 * 16, 0.5f), 80, 16}, .of_heads = {{0.1f, 0.3f, NAN, 0.2f, 0.4f, 0.6f}, 2, 3}});
  const CrossSimilarityData heads = build_cross_similarity(own, cursor, findings, CrossSimilarityMode::heads);
  REQUIRE_FALSE(heads.message);
  CHECK(heads.cells.rows() == 2);
  CHECK(heads.cells.columns() == 3);
  CHECK(std::isnan(heads.cells.at(0, 2)));
  CHECK(heads.cells.at(1, 1) == 0.4f);
  CHECK(move_of(sheets(heads), {0, 1, 0}).head == 1);
  CHECK(tooltip_of(sheets(heads), {0, 1, 1}).starts_with("head 1, head 1\ncosine = 0.4"));
  const CrossSimilarityData rows = build_cross_similarity(own, cursor, findings, CrossSimilarityMode::rows);
  CHECK(rows.cells.rows() == 80);
  CHECK(rows.cells.columns() == 16);
  CHECK(move_of(sheets(rows), {0, 17, 0}).slot == 1);
  CHECK(move_of(sheets(rows), {0, 17, 0}).row == 1);
  for (const CrossSimilarityData* data : {&heads, &rows}) {
    TextCanvas canvas({700, 400});
    draw(*data, canvas, {0, 0, 700, 400}, {light_theme(), 1});
    CHECK(says(canvas, "after token"));
  }

  const Snapshot narrow = Sample({.columns = 8}).at(12);
  const Message message = build_cross_similarity(own, cursor, beside(peer_at(narrow)), CrossSimilarityMode::heads).message;
  CHECK(message.headline == "The states of A and B have different shapes");
  CHECK(message.detail == "A head of A has 80 rows of 16, one of B 80 rows of 8.");
}

TEST_CASE("the difference of routing is that of the gates, up to where both have read the same", "[peers]") {
  const Snapshot own = Sample({}).at(12);
  Snapshot other = own;
  auto routing = std::make_shared<Routing>(*own.routing);
  for (float& gate : routing->gate) gate *= 0.5f;
  other.routing = routing;
  const DifferenceData data = build_difference(own, {.token = 12}, beside(peer_at(other, 20)), DifferenceMode::routing);
  REQUIRE_FALSE(data.message);
  CHECK(data.cells.rows() == 4);
  CHECK(data.cells.columns() == 40);
  CHECK(data.cells.at(2, 7) == own.routing->gate_at(7, 2) - 0.5f * own.routing->gate_at(7, 2));
  CHECK(std::isnan(data.cells.at(2, 20)));
  CHECK(data.names[2] == "partition 3");
  CHECK(data.title.find("A − B of e is +") == 0);

  const Snapshot plain = Sample({.partitions = 0}).at(12);
  const Message message = build_difference(own, {.token = 12}, beside(peer_at(plain)), DifferenceMode::routing).message;
  CHECK(message.sentence() == "The routing of A and B cannot be compared. A: 4 partitions. B: none.");
}

TEST_CASE("decay and head gates are compared channel by channel", "[peers]") {
  const Snapshot own = Sample({}).at(12);
  const std::unique_ptr<View> view = make_difference();
  for (const std::size_t mode : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
    view->set_mode(mode);
    const Cursor cursor{.token = 12};
    Findings findings = sample_findings(view->questions(own, cursor), own);
    auto peer = peer_at(own);
    CHECK(view->compares());
    findings.peer = peer;
    view->build(own, cursor, findings);
    CHECK(view->describe().find("of B") != std::string::npos);  // what is still missing
    peer->findings = sample_findings(view->peer_questions(own, findings, own, cursor), own);
    view->build(own, cursor, findings);
    CHECK(view->describe().find("is 0 wherever both have one") != std::string::npos);
    TextCanvas canvas({700, 300});
    view->draw(canvas, {0, 0, 700, 300}, {light_theme(), 1});
    CHECK_FALSE(view->table().rows.empty());
  }
}

}  // namespace statescope::other_model_test

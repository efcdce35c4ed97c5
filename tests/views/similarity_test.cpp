#include "views/similarity.h"

#include <algorithm>
#include <cmath>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/sample_answers.h"
#include "tests/views/samples.h"

namespace statescope::similarity_test {
namespace {

/// Two slots of two rows, two heads: rows a, b of slot 0 and c, zero of slot 1.
Snapshot two_slots() {
  RunInfo run;
  run.model.layers = {sample_layer({.partitions = 1, .heads = 2, .rows = 2, .columns = 3}), sample_attention_layer()};
  run.tokens = {{0, "a"}, {1, " b"}};
  run.prompt_length = 2;
  return {.run = std::make_shared<RunInfo>(run), .layer = 0, .token = 1, .state = {}, .before = {}, .routing = nullptr, .predictions = {}};
}

Findings answered() {
  Similarity answer{.partitions = 2, .rows = 2, .heads = 2};
  answer.cosine = Pyramid({1, 0.1f, -0.8f, NAN, 0.1f, 1, 0.3f, NAN, -0.8f, 0.3f, 1, NAN, NAN, NAN, NAN, NAN}, 4, 4);
  answer.order = {0, 1, 2, 3};
  answer.row_norm = {1, 1, 1, 0};
  answer.mean_abs = 0.2;
  answer.within = 0.05;
  answer.between = 0.275;
  answer.min_cosine = -0.8;
  answer.zero_rows = 1;
  answer.partition_cosine = {1, 0.5f, 0.5f, 1};
  answer.head_cosine = {1, NAN, NAN, NAN};
  Findings findings;
  findings.answer(SimilarityQuestion{0, 1, 1}, answer);
  answer.cosine = Pyramid({1, -0.8f, 0.1f, NAN, -0.8f, 1, 0.3f, NAN, 0.1f, 0.3f, 1, NAN, NAN, NAN, NAN, NAN}, 4, 4);
  answer.order = {0, 2, 1, 3};
  findings.answer(SimilarityQuestion{0, 1, 1, true}, answer);
  findings.answer(TokenSimilarityQuestion{0, 1, 1, {0, 1, 2}, {0, 1, 2}}, TokenSimilarity{{1, 0.25f, 0.25f, 1}});
  return findings;
}

const Cursor kCursor{.token = 1, .head = 1, .slot = 1, .row = 0};

bool drawn(const TextCanvas& canvas, std::string_view words) {
  return std::ranges::any_of(canvas.texts(), [&](const auto& placed) { return placed.text.find(words) != std::string::npos; });
}

}  // namespace

TEST_CASE("similarity: what it asks, by mode") {
  const auto view = make_similarity();
  CHECK(view->questions(two_slots(), kCursor) == std::vector<Question>{SimilarityQuestion{0, 1, 1}});
  view->set_mode(4);
  CHECK(view->questions(two_slots(), kCursor) == std::vector<Question>{TokenSimilarityQuestion{0, 1, 1, {0, 1, 2}, {0, 1, 2}}});
  Cursor moving = kCursor;
  moving.progress = 0.5f;
  view->set_mode(0);
  CHECK(view->questions(two_slots(), moving) == std::vector<Question>{SimilarityQuestion{0, 1, 0}});  // the numbers of the token before
  Snapshot attention = two_slots();
  attention.layer = 1;
  CHECK(view->questions(attention, kCursor).empty());
  CHECK(view->questions({}, kCursor).empty());
}

TEST_CASE("similarity: rows in their order, and so that like ones are neighbours") {
  const SimilarityData rows = build_similarity(two_slots(), kCursor, answered(), SimilarityMode::rows);
  CHECK_FALSE(rows.message);
  CHECK(rows.count() == 4);
  CHECK(rows.cells.at(0, 2) == -0.8f);
  CHECK(rows.chosen == 2);  // row 0 of slot 1
  CHECK(rows.name(rows.order[2]) == "row 0 of partition 1");
  REQUIRE(rows.groups.size() == 2);
  CHECK(rows.groups[1].begin == 2);
  CHECK(rows.groups[1].text == "1");
  CHECK(rows.facts[1].name == "… in a partition");
  CHECK(rows.facts.back().value == "1 of 4");
  CHECK(rows.title == "Mean |cos| of two rows is 0.200 after token 1 “␣b” · layer 0, head 1");

  const SimilarityData clustered = build_similarity(two_slots(), kCursor, answered(), SimilarityMode::clustered);
  CHECK(clustered.cells.at(0, 1) == -0.8f);
  CHECK(clustered.cells.at(2, 1) == 0.3f);
  CHECK(std::isnan(clustered.cells.at(3, 3)));
  CHECK(clustered.chosen == 1);
  CHECK(clustered.name(clustered.order[1]) == "row 0 of partition 1");
  CHECK(clustered.groups.size() == 4);  // shared, 1, shared, 1
  CHECK(clustered.legend.size() == 2);
}

TEST_CASE("similarity: partitions, heads and tokens") {
  const SimilarityData partitions = build_similarity(two_slots(), kCursor, answered(), SimilarityMode::partitions);
  CHECK(partitions.chosen == 1);
  CHECK(partitions.facts[0].value == "0.500");
  CHECK(partitions.facts.size() == 2);  // none is zero, and nothing is said of it
  const SimilarityData heads = build_similarity(two_slots(), kCursor, answered(), SimilarityMode::heads);
  CHECK(heads.facts[0].value == "—");  // head 1 is zero: no pair is left
  CHECK(heads.facts[2].value == "1 of 2");
  CHECK(heads.place == "layer 0");
  const SimilarityData tokens = build_similarity(two_slots(), kCursor, answered(), SimilarityMode::tokens);
  CHECK(tokens.tokens.tokens == std::vector<std::int32_t>{0, 1});
  CHECK(tokens.range.low == Approx(0.2));
  CHECK(tokens.name(1) == "after token 1 “␣b”");
  CHECK(tokens.place == "layer 0, partition 1, head 1");
}

TEST_CASE("similarity: tooltip, choice, table and sentence") {
  const auto view = make_similarity();
  view->build(two_slots(), kCursor, answered());
  CHECK(view->tooltip({0, 0, 2}) ==
        "row 0 of shared, row 0 of partition 1\ncosine = -0.8   cos(a, b) = ⟨a, b⟩ / (‖a‖ ‖b‖) (SSE Def. 1)\nlayer 0, head 1, after token "
        "1 “␣b”\nwithin 1e-05");
  CHECK(view->tooltip({0, 0, 3}).find("cosine = none: one of the two is zero") != std::string::npos);
  CHECK(view->tooltip({0, 4, 0}).empty());
  CHECK(view->on_hit({0, 2, 0}).slot == 1);
  CHECK(view->on_hit({0, 2, 0}).row == 0);
  CHECK(view->table().rows[2] == std::vector<std::string>{"row 0 of partition 1", "-0.8", "0.3", "1", "none: one of the two is zero"});
  CHECK(view->sentence() ==
        "Mean |cos| of two rows is 0.200 after token 1 “␣b” · layer 0, head 1: mean |cos| 0.200, … in a partition 0.050, … between them "
        "0.275, least cos -0.800, zero "
        "rows, hatched 1 of 4.");
  view->set_mode(3);
  view->build(two_slots(), kCursor, answered());
  CHECK(view->on_hit({0, 1, 0}).head == 1);
  view->set_mode(4);
  view->build(two_slots(), kCursor, answered());
  CHECK(view->on_hit({0, 0, 1}).token == 0);
  CHECK(view->on_hit({0, 0, 1}).reference == 1);
  CHECK_FALSE(view->on_hit({0, 2, 0}).token);
}

TEST_CASE("similarity: what is missing is said") {
  const Snapshot snapshot = two_slots();
  CHECK(build_similarity({}, {}, {}, SimilarityMode::rows).message.headline == "No token has been read yet");
  CHECK(build_similarity(snapshot, kCursor, {}, SimilarityMode::rows).message.headline.starts_with("The similarity in layer 0, head 1"));
  Findings refused;
  refused.set(SimilarityQuestion{0, 1, 1}, {nullptr, "the file is gone", 0});
  CHECK(build_similarity(snapshot, kCursor, refused, SimilarityMode::rows).message.detail == "The file is gone");
  Similarity many{.partitions = 2, .rows = 2, .heads = 2};
  many.partition_cosine = {1, 0, 0, 1};
  Findings large;
  large.answer(SimilarityQuestion{0, 1, 1}, many);
  CHECK(build_similarity(snapshot, kCursor, large, SimilarityMode::rows).message.detail.starts_with("Single rows are compared up to 4096"));
  CHECK_FALSE(build_similarity(snapshot, kCursor, large, SimilarityMode::partitions).message);

  const Sample plain({.tokens = 4, .partitions = 0, .heads = 1});
  CHECK(build_similarity(plain.at(2), {}, {}, SimilarityMode::partitions).message.headline == "Layer 0 (gla) keeps one memory a head");
  CHECK(build_similarity(plain.at(2), {}, {}, SimilarityMode::heads).message.headline == "Layer 0 (gla) has one head");
  auto view = make_similarity();
  view->set_mode(2);
  CHECK(view->questions(plain.at(2), {}).empty());
}

TEST_CASE("similarity: 3000 rows are one picture, said to be gathered, and a table of the nearest") {
  const Sample sample({.tokens = 3, .partitions = 2, .heads = 1, .rows = 1000, .columns = 2});
  const auto view = make_similarity();
  const Cursor cursor{.token = 2, .slot = 1, .row = 10};
  view->build(sample.at(2), cursor, sample_findings(view->questions(sample.at(2), cursor), sample.at(2)));
  TextCanvas canvas({600, 300});
  view->draw(canvas, {0, 0, 600, 300}, {light_theme(), 1});
  CHECK(std::ranges::count_if(canvas.lines(), [](const std::string& line) { return line.starts_with("heatmap"); }) == 2);  // with its bar
  CHECK(drawn(canvas, "16 × 16 cells in one"));
  const Table table = view->table();
  CHECK(table.columns[1] == "cosine, row 10 of partition 1");
  CHECK(table.rows.size() == 64);
  CHECK(table.rows[0][0] == "row 10 of partition 1");
}

TEST_CASE("similarity: numbers stand in the cells where there is room") {
  const auto view = make_similarity();
  view->set_mode(2);
  view->build(two_slots(), kCursor, answered());
  TextCanvas canvas({600, 300});
  view->draw(canvas, {0, 0, 600, 300}, {light_theme(), 1});
  CHECK(drawn(canvas, "0.50"));
  TextCanvas narrow({600, 120});
  view->draw(narrow, {0, 0, 600, 120}, {light_theme(), 1});
  CHECK(drawn(narrow, "mean |cos| 0.500"));
}

TEST_CASE("similarity: states that stay like themselves have colours from where the differences are") {
  const auto low = [](std::vector<float> cosine) {
    Findings findings;
    findings.answer(TokenSimilarityQuestion{0, 1, 1, {0, 1, 2}, {0, 1, 2}}, TokenSimilarity{std::move(cosine)});
    return build_similarity(two_slots(), kCursor, findings, SimilarityMode::tokens).range.low;
  };
  CHECK(low({1, 0.87f, 0.87f, 1}) == Approx(0.8));
  CHECK(low({1, 0.9999f, 0.9999f, 1}) == Approx(0.9));
  CHECK(low({1, -0.5f, -0.5f, 1}) == -1);
  CHECK(low({NAN, NAN, NAN, NAN}) == -1);
}

}  // namespace statescope::similarity_test

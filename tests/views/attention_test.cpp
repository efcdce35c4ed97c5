#include "views/attention.h"
#include "views/sheets.h"

#include <algorithm>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/sample_answers.h"
#include "tests/views/samples.h"

namespace statescope::attention_test {
namespace {

/// Four tokens, the second the needle.
Snapshot four_tokens(std::int64_t token, std::int64_t layer = 0) {
  RunInfo run;
  run.model.layers = {sample_layer({.partitions = 2, .heads = 2}), sample_attention_layer()};
  run.tokens = {{0, "a"}, {1, " b"}, {2, " c"}, {3, " d"}};
  run.spans = {{SpanKind::needle, 1, 2}};
  run.prompt_length = 4;
  return {.run = std::make_shared<RunInfo>(run),
          .layer = layer,
          .token = token,
          .state = {},
          .before = {},
          .routing = nullptr,
          .predictions = {}};
}

AttentionMap map() {
  return {.heads = 2, .weight = {1, 0, 0, 0, 0, 2, 0, 0, 1, -2, 0, 0, 0.5f, 1, -0.5f, 0}, .before = {0, 0, 0, 0}, .all = {1, 2, 3, 2}};
}

AttentionQuestion question(std::int64_t layer, std::int64_t head, std::int64_t slot = -1) {
  return {layer, head, {0, 1, 4}, {0, 1, 4}, slot};
}

std::vector<float> weights(const AttentionData& data) {
  std::vector<float> row;
  for (const AttentionData::Source& source : data.row) row.push_back(source.weight);
  return row;
}

Findings answered() {
  Findings findings;
  findings.answer(question(0, 1), map());
  findings.answer(question(0, 1, 2), map());
  return findings;
}

const Cursor kCursor{.token = 3, .head = 1};

AttentionData built(std::int64_t token, bool shares = false, std::int64_t shown = 128) {
  return build_attention(four_tokens(token), kCursor, answered(), -1, shares, shown);
}

}  // namespace

TEST_CASE("attention: it asks for a window of the layer, the head and the slot of its mode") {
  const auto view = make_attention();
  CHECK(view->questions(four_tokens(3), kCursor) == std::vector<Question>{question(0, 1)});
  view->set_mode(4);
  CHECK(view->questions(four_tokens(3), kCursor) == std::vector<Question>{question(0, 1, 2)});
  CHECK(view->questions(four_tokens(3, 1), kCursor) == std::vector<Question>{question(1, 1)});
  CHECK(view->questions({}, kCursor).empty());
  const Sample longer({.tokens = 4000, .heads = 1, .rows = 2, .columns = 2});
  Snapshot late = longer.at(0);
  late.token = 3000;
  view->set_mode(0);
  const auto parts = view->questions(late, {.token = 3000});
  REQUIRE(parts.size() == 2);
  const auto& [layer, head, rows, columns, slot] = std::get<AttentionQuestion>(parts[0]);
  CHECK((rows.from <= 3000 && rows.from + rows.count > 3000));
  CHECK(rows.count == AttentionMap::kMostRows);
  CHECK(columns.count == 256);

  // Of the whole run: one row of every 8 in columns of 8, and the cursor's own row with every token.
  view->build(late, {.token = 3000}, {});
  view->turn(4000);
  const auto all = view->questions(late, {.token = 3000});
  REQUIRE(all.size() == 5);
  CHECK(std::get<AttentionQuestion>(all[0]) == AttentionQuestion{0, 0, {3000, 1, 1}, {0, 1, 4000}});
  CHECK(std::get<AttentionQuestion>(all[4]) == AttentionQuestion{0, 0, {3072, 8, 116}, {0, 8, 500}});
}

TEST_CASE("attention: modes are those of the layer") {
  const auto view = make_attention();
  view->build(four_tokens(3), kCursor, answered());
  CHECK(std::vector<std::string_view>(view->modes().begin(), view->modes().end()) ==
        std::vector<std::string_view>{"All together", "Shares |A|", "Only shared", "Only partition 1", "Only partition 2"});
  view->build(four_tokens(3, 1), kCursor, {});
  CHECK(view->modes().size() == 2);
}

TEST_CASE("attention: the cursor's row, the strongest first, the needle known") {
  const AttentionData data = built(3);
  CHECK(weights(data) == std::vector<float>{0.5f, 1, -0.5f, 0});
  CHECK(data.strongest[0].token == 1);
  CHECK(data.all == 2);
  CHECK(data.of_needle == 1);
  CHECK(data.needle == std::vector<bool>{false, true, false, false});
  CHECK(data.row_axis.low == -0.5);
  CHECK(data.row_axis.high == 1);
  CHECK(data.cells.at(2, 1) == -2);
  CHECK(data.before == 0);
}

TEST_CASE("attention: shares of a row and what lies before it are 1") {
  const AttentionData data = built(2, true);
  CHECK(weights(data) == std::vector<float>{1 / 3.0f, 2 / 3.0f, 0, 0});
  const AttentionData part = built(2, true, 2);  // tokens 1 and 2
  REQUIRE(part.count() == 2);
  CHECK(weights(part) == std::vector<float>{2 / 3.0f, 0});
  CHECK(part.before == Approx(1 / 3.0));
  const AttentionData nothing = build_attention(
      four_tokens(3), kCursor,
      [] {
        Findings zeros;
        const std::vector<float> none(4);
        zeros.answer(question(0, 1), AttentionMap{.heads = 2, .weight = std::vector<float>(16), .before = none, .all = none});
        return zeros;
      }(),
      -1, true, 128);
  CHECK(weights(nothing) == std::vector<float>(4));
}

TEST_CASE("attention: while a token moves, the row is that of the token before") {
  Cursor moving = kCursor;
  moving.progress = 0.5f;
  CHECK(weights(build_attention(four_tokens(3), moving, answered(), -1, false, 128)) == std::vector<float>{1, -2, 0, 0});
  CHECK(weights(build_attention(four_tokens(0), moving, answered(), -1, false, 128)) == std::vector<float>(4));
}

TEST_CASE("attention: of a window so many tokens are shown that the cursor's has two thirds before it") {
  const auto part = [](std::int64_t token, std::int64_t shown) {
    const TokenWindow window = part_around(token, {256, 768}, shown);
    return std::pair(window.from, window.to);
  };
  CHECK(part(600, 30) == std::pair<std::int64_t, std::int64_t>{580, 610});
  CHECK(part(260, 30) == std::pair<std::int64_t, std::int64_t>{256, 286});
  CHECK(part(767, 30) == std::pair<std::int64_t, std::int64_t>{738, 768});
  CHECK(part(600, 512) == std::pair<std::int64_t, std::int64_t>{256, 768});
}

TEST_CASE("attention: tooltips, choices, table, sentence") {
  const auto view = make_attention();
  view->build(four_tokens(3), kCursor, answered());
  CHECK(view->tooltip({AttentionSheets::map, 2, 1}) ==
        "token 2 “␣c”, token that is read 1 “␣b”\nA = -2   o_t = Σ_s A_{t,s} v_s (SSE Def. 3)\nlayer 0, head 1\nrecomputed in double "
        "precision");
  CHECK(view->tooltip({AttentionSheets::map, 0, 1}).find("cannot read what comes after it") != std::string::npos);
  CHECK(view->tooltip({AttentionSheets::row, 1}).starts_with("token that is read 1 “␣b”\nA of the token = 1"));
  CHECK(view->tooltip({AttentionSheets::row, 4}).empty());
  CHECK(view->tooltip({AttentionSheets::map, 4, 0}).empty());
  CHECK(view->on_hit({AttentionSheets::map, 2, 1}).token == 2);
  CHECK(view->on_hit({AttentionSheets::map, 2, 1}).reference == 1);
  CHECK(view->on_hit({AttentionSheets::row, 1}).token == 1);
  CHECK_FALSE(view->on_hit({AttentionSheets::before, 0}).token);
  CHECK(view->table().rows[0] == std::vector<std::string>{"1", "␣b", "1"});
  CHECK(view->sentence() == "Implicit attention of layer 0, head 1: “␣d” (3) reads most from “␣b” (1): 50 %; from the needle 50 %.");
}

TEST_CASE("attention: the knob says how many tokens are shown, within bounds") {
  const auto view = make_attention();
  REQUIRE(view->knob());  // before there is a run it can be turned already
  view->turn(64);
  CHECK(view->knob()->value == 64);
  const Sample longer({.tokens = 4000, .heads = 1, .rows = 2, .columns = 2});
  view->build(longer.at(30), {.token = 30}, {});
  REQUIRE(view->knob());
  CHECK(view->knob()->high == 4000);
  view->turn(7);
  CHECK(view->knob()->value == 16);
  view->turn(1e9);
  CHECK(view->knob()->value == 4000);
}

TEST_CASE("attention: softmax layers show weights, of a head that they have") {
  Findings findings;
  AttentionMap softmax = map();
  for (float& w : softmax.weight) w = std::abs(w);
  findings.answer(question(1, 1), softmax);
  const AttentionData data = build_attention(four_tokens(3, 1), {.token = 3, .layer = 1, .head = 1}, findings, -1, false, 128);
  CHECK(data.kind == WeightKind::softmax);
  CHECK(data.place == "layer 1, head 1");
  CHECK(data.title == "Softmax weights of layer 1, head 1");
  const Cursor beyond{.token = 3, .layer = 1, .head = 9};
  CHECK(build_attention(four_tokens(3, 1), beyond, findings, -1, false, 128).message.sentence() ==
        "The softmax attention of layer 1 has no head 9. It has 2 heads.");
  CHECK(make_attention()->questions(four_tokens(3, 1), beyond).empty());
}

TEST_CASE("attention: title, colour bar and equation name what is drawn") {
  const auto shown = [](const char* mixer, const char* memory, bool shares) {
    Snapshot snapshot = four_tokens(3, 1);
    RunInfo run = *snapshot.run;
    run.model.layers[1] = {.mixer = mixer, .memory = memory, .slot_names = {}, .heads = 2, .rows = 2, .columns = 2, .attention_heads = 2};
    if (run.model.layers[1].memory != "softmax attention") run.model.layers[1].slot_names = {"state"};
    snapshot.run = std::make_shared<RunInfo>(run);
    Findings findings;
    AttentionMap weights = map();
    for (float& w : weights.weight) w = std::abs(w);
    findings.answer(question(1, 1), weights);
    const AttentionData data = build_attention(snapshot, {.token = 3, .layer = 1, .head = 1}, findings, -1, shares, 128);
    CHECK(data.shading.is_signed == (data.kind == WeightKind::implicit && !shares));
    CHECK(sheets(data)[AttentionSheets::map].columns[0].equation == data.equation());
    CHECK(sheets(data)[AttentionSheets::map].columns[0].name == data.symbol());
    return data.title + "; " + data.symbol();
  };
  CHECK(shown("transformer", "softmax attention", false) == "Softmax weights of layer 1, head 1; weight");
  CHECK(shown("transformer", "softmax attention", true) == "Shares of what is read in layer 1, head 1; |A| / Σ|A|");
  CHECK(shown("nsa", "softmax attention", false) == "Gated weights of three branches of layer 1, head 1; gated weight");
  CHECK(shown("nsa", "softmax attention", true) == "Shares of what is read in layer 1, head 1; |A| / Σ|A|");
  CHECK(shown("mamba", "selective scan", false) == "Mean |A| over the channels of layer 1, head 1; mean |A|");
  CHECK(shown("gla", "decayed outer product", false) == "Implicit attention of layer 1, head 1; A");
}

TEST_CASE("attention: beside a memory the heads are its own, the memory's are refused by number") {
  Snapshot snapshot = four_tokens(3);
  RunInfo run = *snapshot.run;
  run.model.layers[0].attention_heads = 4;
  snapshot.run = std::make_shared<RunInfo>(run);
  const Cursor cursor{.token = 3, .head = 3};
  const auto view = make_attention();
  CHECK(view->questions(snapshot, cursor).empty());
  view->build(snapshot, cursor, {});
  CHECK(view->sentence() == "The memory of layer 0 has no head 3. It has 2 heads; the softmax attention beside it has 4 heads.");
  view->set_mode(5);
  CHECK(view->questions(snapshot, cursor) == std::vector<Question>{question(0, 3, AttentionQuestion::kBeside)});
}

TEST_CASE("attention: a layer that attends to nothing names the nearest that does") {
  Snapshot snapshot = four_tokens(3, 3);
  RunInfo run = *snapshot.run;
  run.model.layers.resize(5, {.mixer = "gated_convolution", .memory = "short convolution", .slot_names = {}});
  snapshot.run = std::make_shared<RunInfo>(run);
  CHECK(build_attention(snapshot, {.token = 3, .layer = 3}, {}, -1, false, 128).message.sentence() ==
        "Layer 3 (gated_convolution) reads no earlier tokens by weights. The nearest layer that does is layer 1.");
}

TEST_CASE("attention: what is missing is said") {
  CHECK(build_attention({}, {}, {}, -1, false, 128).message.headline == "No token has been read yet");
  CHECK(build_attention(four_tokens(3), kCursor, {}, -1, false, 128).message.headline.starts_with("What tokens read in layer 0, head 1"));
  Findings refused;
  refused.set(question(1, 1), {nullptr, "this layer does not tell its queries and keys", 0});
  CHECK(build_attention(four_tokens(3, 1), kCursor, refused, -1, false, 128).message.detail ==
        "This layer does not tell its queries and keys");
}

TEST_CASE("attention: earlier tokens are one bar, 512 tokens are gathered and it is said") {
  const Sample sample({.tokens = 1200, .heads = 1, .rows = 2, .columns = 2});
  Snapshot snapshot = sample.at(0);
  snapshot.token = 1100;
  const auto view = make_attention();
  view->build(snapshot, {}, {});
  view->turn(512);
  const Cursor cursor{.token = 1100};
  view->build(snapshot, cursor, sample_findings(view->questions(snapshot, cursor), snapshot));
  TextCanvas canvas({600, 300});
  view->draw(canvas, {0, 0, 600, 300}, {light_theme(), 1});
  const auto drawn = [&](std::string_view words) {
    return std::ranges::any_of(canvas.texts(), [&](const auto& placed) { return placed.text.find(words) != std::string::npos; });
  };
  CHECK(drawn("pale bar: Σ|A| = 0.3 of the 768 tokens before 768"));
  CHECK(drawn("4 × 4 cells in one"));
  CHECK(view->tooltip({AttentionSheets::before, 0}).starts_with("before token 768\nΣ|A| = 0.3"));
}

TEST_CASE("attention: of thousands of tokens the map shows one of several, the bars every one of the cursor's") {
  const Sample sample({.tokens = 4000, .heads = 1, .rows = 2, .columns = 2});
  Snapshot snapshot = sample.at(0);
  snapshot.token = 3001;
  const Cursor cursor{.token = 3001};
  const auto view = make_attention();
  view->build(snapshot, {}, {});
  view->turn(4000);
  std::vector<Question> questions = view->questions(snapshot, cursor);
  questions.pop_back();  // not worked out yet
  Findings findings = sample_findings(questions, snapshot);
  const AttentionData data = build_attention(snapshot, cursor, findings, -1, false, 4000);
  CHECK(data.step == 8);
  CHECK(data.count() == 500);
  CHECK((data.known == 3 && data.parts == 4));
  CHECK(std::isnan(data.cells.at(499, 0)));
  CHECK(data.cells.at(3, 4) == 0);  // not read yet
  CHECK(data.strongest.size() == AttentionData::kMostSources);
  CHECK(data.tokens.cursor == 3001);
  for (const AttentionData::Source& source : data.row) {
    const AttentionMap& own = *findings.get(std::get<AttentionQuestion>(questions[0]));
    REQUIRE(own.weight[static_cast<std::size_t>(source.token)] == source.weight);
  }
  view->build(snapshot, cursor, findings);
  TextCanvas canvas({600, 500});
  view->draw(canvas, {0, 0, 600, 500}, {light_theme(), 1});
  const auto drawn = [&](std::string_view words) {
    return std::ranges::any_of(canvas.texts(), [&](const auto& placed) { return placed.text.find(words) != std::string::npos; });
  };
  CHECK(drawn("1 of every 8 rows"));
  CHECK(view->tooltip({AttentionSheets::map, 499, 0}).find("A = not worked out yet") != std::string::npos);
  CHECK(view->tooltip({AttentionSheets::map, 370, 3}).find("strongest of 8 tokens that are read 24") != std::string::npos);
  CHECK(view->on_hit({AttentionSheets::row, 10}).token == data.row[10].token);
}

}  // namespace statescope::attention_test

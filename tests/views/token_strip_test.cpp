#include "views/token_strip.h"

#include <algorithm>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/sample_answers.h"
#include "tests/views/samples.h"

namespace statescope::token_strip_test {
namespace {

bool drawn(const TextCanvas& canvas, std::string_view text) {
  return std::ranges::any_of(canvas.texts(), [&](const TextCanvas::Placed& placed) { return placed.text == text; });
}

std::vector<TokenLine> lines(std::int64_t tokens, std::int64_t cursor, std::int64_t count) {
  return lines_around(tokens, cursor, 100, count, [](std::int64_t) { return 10.0f; });  // ten tokens a line
}

}  // namespace

TEST_CASE("tokens carry their marks") {
  const Sample sample({.tokens = 40});
  const RunInfo& run = *sample.run();
  CHECK_FALSE(mark_of(run, 4).any());
  CHECK(mark_of(run, 5) == Mark{.span = SpanKind::needle});
  CHECK(mark_of(run, 13) == Mark{.span = SpanKind::needle});
  CHECK_FALSE(mark_of(run, 14).any());
  CHECK(mark_of(run, 30) == Mark{.span = SpanKind::question});
  CHECK(mark_of(run, 31) == Mark{.span = SpanKind::answer, .generated = true});
  CHECK(mark_of(run, 39) == Mark{.generated = true});
}

TEST_CASE("the lane says where a token was written, all places of it, and nothing where there is no routing") {
  Routing routing{.partitions = 3, .gate = {0.2f, 0.5f, 0.3f, 0.6f, 0.1f, 0.3f}, .selected = {0, 1, 0, 1, 0, 1}};
  TokenLane lane{.letter = "", .routing = std::make_shared<Routing>(routing), .until = 5};
  CHECK(partitions_text(lane, 0) == "2");
  CHECK(partitions_text(lane, 1) == "1 3");
  CHECK(partitions_text(lane, 2).empty());
  lane.until = 0;
  CHECK(partitions_text(lane, 1).empty());
}

TEST_CASE("lines break at the width and the cursor's line stands in the middle") {
  CHECK(lines(25, 0, 3) == std::vector<TokenLine>{{0, 10}, {10, 20}, {20, 25}});
  CHECK(lines(200, 99, 3) == std::vector<TokenLine>{{80, 90}, {90, 100}, {100, 110}});
  CHECK(lines(200, 0, 3) == std::vector<TokenLine>{{0, 10}, {10, 20}, {20, 30}});
  CHECK(lines(200, 199, 3) == std::vector<TokenLine>{{170, 180}, {180, 190}, {190, 200}});
  CHECK(lines(1, 0, 1) == std::vector<TokenLine>{{0, 1}});
}

TEST_CASE("a line begins before every 256th token, wherever the cursor stands") {
  CHECK(lines(4000, 256, 2) == std::vector<TokenLine>{{250, 256}, {256, 266}});
  CHECK(lines(4000, 255, 2) == std::vector<TokenLine>{{240, 250}, {250, 256}});
  for (const std::int64_t cursor : {1000, 1023, 1024, 1030}) {
    const std::vector<TokenLine> around = lines(4000, cursor, 80);
    REQUIRE(around.size() == 80);
    REQUIRE(std::ranges::any_of(around, [&](TokenLine line) { return line == TokenLine{1024, 1034}; }));
    REQUIRE(std::ranges::any_of(around, [&](TokenLine line) { return cursor >= line.begin && cursor < line.end; }));
    for (std::size_t i = 1; i < around.size(); ++i) REQUIRE(around[i].begin == around[i - 1].end);
  }
}

TEST_CASE("a token wider than the line has a line of its own") {
  const auto width = [](std::int64_t t) { return t == 1 ? 500.0f : 40.0f; };
  CHECK(lines_around(4, 0, 100, 9, width) == std::vector<TokenLine>{{0, 1}, {1, 2}, {2, 4}});
}

TEST_CASE("a code stays in one line, if it leaves the line something") {
  const auto width = [](std::int64_t) { return 10.0f; };
  const auto goes_on = [](std::int64_t t) { return t > 8 && t < 12; };  // tokens 8 to 11
  CHECK(lines_around(20, 0, 100, 9, width, goes_on) == std::vector<TokenLine>{{0, 8}, {8, 18}, {18, 20}});
  const auto all = [](std::int64_t t) { return t > 0; };
  CHECK(lines_around(20, 0, 100, 9, width, all) == std::vector<TokenLine>{{0, 10}, {10, 20}});
  const auto from_begin = [](std::int64_t t) { return t > 0 && t < 12; };
  CHECK(lines_around(12, 0, 60, 9, width, from_begin) == std::vector<TokenLine>{{0, 6}, {6, 12}});
}

TEST_CASE("32 768 tokens: only the neighbourhood is measured and drawn") {
  std::int64_t measured = 0;
  lines_around(32768, 20000, 1000, 5, [&](std::int64_t) { return ++measured, 40.0f; });
  CHECK(measured <= 3 * 256);

  const Sample sample({.tokens = 32768, .heads = 1, .rows = 1, .columns = 1});
  const Snapshot snapshot{.run = sample.run(), .state = {}, .before = {}, .routing = nullptr, .predictions = {}};
  TextCanvas canvas({1280, 200});
  draw(build_token_strip(snapshot, {.token = 20000}), canvas, {0, 0, 1280, 200}, {light_theme(), 1});
  CHECK(canvas.lines().size() < 2000);
  CHECK(drawn(canvas, "20000/32768"));
}

TEST_CASE("pointing at a token or at its place in the overview is the same") {
  const Sample sample({.tokens = 40});
  const auto view = make_token_strip();
  view->build(sample.at(12), {.token = 12});
  TextCanvas canvas({1280, 200});
  view->draw(canvas, {0, 0, 1280, 200}, {light_theme(), 1});
  const auto anna = std::ranges::find_if(canvas.texts(), [](const auto& placed) { return placed.text == "anna"; });
  REQUIRE(anna != canvas.texts().end());
  const std::optional<Hit> hit = canvas.hits().at({anna->rect.x + 3, anna->rect.y + 3});
  REQUIRE(hit == Hit(0, 8));
  CHECK(view->on_hit(*hit).token == 8);
  CHECK(view->tooltip(*hit).starts_with("token 8 “␣anna”\nid = 8   as the tokenizer says\nmark = needle\npartition = "));
  CHECK(view->tooltip({0, 38}) ==
        "token 38 “␣on”\nid = 38   as the tokenizer says\nmark = generated\nexact: kept from the run");  // not read yet: no partition
  CHECK(view->tooltip({0, 40}).empty());
  const std::optional<Hit> end = canvas.hits().at({1190, 200 - 6 - 11});  // the right end of the overview
  REQUIRE(end);
  CHECK(end->at[0] >= 38);
  CHECK(view->sentence() == "Token 12 of 40: ␣7.");
}

TEST_CASE("the token that is compared with is marked, and said") {
  const Sample sample({.tokens = 40});
  const auto view = make_token_strip();
  const auto lines_with = [&](std::int64_t reference) {
    view->build(sample.at(12), {.token = 12, .reference = reference});
    TextCanvas canvas({1280, 200});
    view->draw(canvas, {0, 0, 1280, 200}, {light_theme(), 1});
    return canvas.lines();
  };
  const auto none = lines_with(-1);
  CHECK(lines_with(8) != none);
  CHECK(view->sentence() == "Token 12 of 40: ␣7. Compared with token 8.");
  CHECK(view->tooltip({0, 8}).find("mark = needle, compared with (D)") != std::string::npos);
  CHECK(lines_with(12) != none);
  CHECK(lines_with(400) == lines_with(39));
}

TEST_CASE("tokens that are parts of a character show their bytes, and say which one it is") {
  const Sample sample({.tokens = 6});
  RunInfo run = *sample.run();
  const char* const pieces[] = {"a", " \xe4\xbd", "\xa0", "\xf0\x9f", "\x98", "\x80 b"};
  for (std::size_t i = 0; i < 6; ++i) run.tokens[i].text = pieces[i];
  Snapshot snapshot = sample.at(2);
  snapshot.run = std::make_shared<const RunInfo>(run);
  const auto view = make_token_strip();
  view->build(snapshot, {.token = 2});
  CHECK(view->sentence() == "Token 2 of 6: ⟨A0⟩.");
  CHECK(view->tooltip({0, 0}).find("part of") == std::string::npos);
  CHECK(view->tooltip({0, 1}).find("mark = part of “你”") != std::string::npos);
  CHECK(view->tooltip({0, 2}).find("mark = part of “你”") != std::string::npos);
  for (const std::int64_t token : {3, 4, 5}) CHECK(view->tooltip({0, token}).find("part of “😀”") != std::string::npos);
  run.tokens.resize(5);  // the character is not complete
  snapshot.run = std::make_shared<const RunInfo>(run);
  view->build(snapshot, {.token = 2});
  CHECK(view->tooltip({0, 4}).find("part of") == std::string::npos);
}

TEST_CASE("while a token moves, its routing is not shown yet") {
  const Sample sample({.tokens = 40});
  const Table at_rest = [&] {
    auto v = make_token_strip();
    v->build(sample.at(12), {.token = 12});
    return v->table();
  }();
  const Table moving = [&] {
    auto v = make_token_strip();
    v->build(sample.at(12), {.token = 12, .progress = 0.5f});
    return v->table();
  }();
  CHECK_FALSE(at_rest.rows[12][4].empty());
  CHECK(moving.rows[12][4].empty());
  CHECK(moving.rows[11] == at_rest.rows[11]);
}

TEST_CASE("another model has a lane of its own, as far as it has read the same") {
  const Sample sample({.tokens = 12});
  const auto strip = make_token_strip();
  const Snapshot snapshot = sample.at(10);
  const Findings beside = sample_findings_beside(*strip, snapshot, sample_other(snapshot), {.token = 10});
  const TokenStripData data = build_token_strip(snapshot, {.token = 10}, beside);
  REQUIRE(data.lanes.size() == 2);
  CHECK(data.lanes[0].name() == "partition A");
  CHECK(data.lanes[0].until == 10);
  CHECK(data.lanes[1].name() == "partition B");
  CHECK(data.lanes[1].until == 6);  // the sample's other model reads other tokens from 7 on
  CHECK(partitions_text(data.lanes[1], 6) == partitions_text(data.lanes[0], 6));
  CHECK(partitions_text(data.lanes[1], 7).empty());
  TextCanvas canvas({1200, 170});  // where a tenth of the width has room for the lanes' names
  draw(data, canvas, {0, 0, 1200, 170}, {light_theme(), 1});
  CHECK(drawn(canvas, "partition A"));
  CHECK(drawn(canvas, "partition B"));
  strip->build(snapshot, {.token = 10}, beside);
  CHECK(strip->table().columns.back() == "partition B");
  CHECK(strip->tooltip({0, 3}).find("\npartition B = ") != std::string::npos);
  CHECK(build_token_strip(snapshot, {.token = 10}).lanes.at(0).name() == "partition");
}

TEST_CASE("every model beside it has a lane, those that do not route none; lanes without room are told of") {
  const Sample sample({.tokens = 12});
  const Snapshot snapshot = sample.at(10);
  Findings findings;
  const auto add = [&](const char* letter, const Snapshot& other) {
    findings.beside.push_back(std::make_shared<const Peer>(Peer{.own_letter = "A",
                                                                .letter = letter,
                                                                .snapshot = std::make_shared<const Snapshot>(other),
                                                                .missing = {},
                                                                .same_until = 7,
                                                                .findings = {}}));
  };
  add("B", sample_other(snapshot));
  add("C", sample.attention_at(10));
  add("D", snapshot);
  const TokenStripData data = build_token_strip(snapshot, {.token = 10}, findings);
  REQUIRE(data.lanes.size() == 3);
  CHECK(data.lanes[0].name() == "partition A");
  CHECK(data.lanes[1].name() == "partition B");
  CHECK(data.lanes[2].name() == "partition D");
  CHECK(partitions_text(data.lanes[2], 6) == partitions_text(data.lanes[0], 6));
  TextCanvas high({1200, 170}), low({1200, 120});
  draw(data, high, {0, 0, 1200, 170}, {light_theme(), 1});
  CHECK(drawn(high, "partition D"));
  draw(data, low, {0, 0, 1200, 120}, {light_theme(), 1});
  CHECK(drawn(low, "partition B"));
  CHECK_FALSE(drawn(low, "partition D"));
  CHECK(drawn(low, "no room for D"));
}

}  // namespace statescope::token_strip_test

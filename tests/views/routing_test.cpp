#include "views/routing.h"

#include <algorithm>
#include <cmath>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/samples.h"

namespace statescope::routing_test {
namespace {

/// Three tokens, N = 2, shared: token 0 → 2, token 1 → 2, token 2 → 1.
Snapshot three_tokens() {
  RunInfo run;
  run.model.layers = {sample_layer({.partitions = 2}), sample_attention_layer()};
  run.tokens = {{0, "a"}, {1, " b"}, {2, "c"}};
  run.prompt_length = 3;
  const Routing routing{.partitions = 2, .gate = {0.25f, 0.75f, 0.4f, 0.6f, 0.9f, 0.1f}, .selected = {0, 1, 0, 1, 1, 0}};
  Snapshot snapshot;
  snapshot.run = std::make_shared<RunInfo>(run);
  snapshot.routing = std::make_shared<Routing>(routing);
  snapshot.token = 2;
  return snapshot;
}

}  // namespace

TEST_CASE("boxes hold gate, load and ratio of the tokens so far") {
  const RoutingData data = build_routing(three_tokens(), {.token = 2});
  REQUIRE(data.boxes.size() == 3);
  const PartitionBox &shared = data.boxes[0], &one = data.boxes[1], &two = data.boxes[2];
  CHECK(shared.shared);
  CHECK(shared.load == 3);
  CHECK(one.written);
  CHECK(one.gate == 0.9f);
  CHECK(one.load == 1);
  CHECK(one.load_ratio == Approx(2.0 / 3));
  CHECK_FALSE(two.written);
  CHECK(two.gate == 0.1f);
  CHECK(two.load == 2);
  CHECK(two.load_ratio == Approx(4.0 / 3));
  CHECK(two.slot == 2);
  CHECK(two.identity == 2);
}

TEST_CASE("tokens carry their writes, those not read yet have none") {
  const RoutingData data = build_routing(three_tokens(), {.token = 1});
  REQUIRE(data.tokens.size() == 3);
  REQUIRE(data.tokens[1].writes.size() == 2);
  CHECK(data.tokens[1].text == "␣b");
  CHECK(data.tokens[1].writes[0].slot == 0);
  CHECK(data.tokens[1].writes[1].slot == 2);
  CHECK(data.tokens[1].writes[1].gate == 0.6f);
  CHECK(data.tokens[2].writes.empty());
}

TEST_CASE("while a token moves, the numbers are those of the token before") {
  const RoutingData moving = build_routing(three_tokens(), {.token = 2, .progress = 0.5f});
  CHECK(moving.shown == 1);
  CHECK(moving.boxes[1].gate == 0.4f);
  CHECK(moving.boxes[1].load == 0);
  CHECK(moving.boxes[2].written);
  const RoutingData first = build_routing(three_tokens(), {.token = 0, .progress = 0.0f});
  CHECK(first.shown == -1);
  CHECK(first.boxes[0].load == 0);
  CHECK_FALSE(first.boxes[0].written);
  CHECK_FALSE(first.boxes[2].written);
}

TEST_CASE("without a shared slot, slot 0 is partition 1 (MoM)") {
  Snapshot snapshot = three_tokens();
  RunInfo run = *snapshot.run;
  run.model.layers[0] = {.mixer = "mom", .memory = "gated delta rule", .slot_names = {"1", "2"}, .partitions = 2};
  snapshot.run = std::make_shared<RunInfo>(run);
  const RoutingData data = build_routing(snapshot, {.token = 2});
  REQUIRE(data.boxes.size() == 2);
  CHECK(data.boxes[0].slot == 0);
  CHECK(data.boxes[0].identity == 1);
  CHECK(data.boxes[0].written);
  REQUIRE(data.tokens[2].writes.size() == 1);
  CHECK(data.tokens[2].writes[0].slot == 0);
}

TEST_CASE("beside an alarm the load loses words, not its number") {
  RoutingData data = build_routing(three_tokens(), {.token = 2});
  PartitionBox& box = data.boxes[1];
  box.load = 90;
  box.load_ratio = 2.314f;
  box.alarm = "overloaded";
  const auto texts = [&](float width) {
    TextCanvas canvas({width, 300});
    draw(data, canvas, {0, 0, width, 300}, {light_theme()});
    std::vector<std::string> all;
    for (const TextCanvas::Placed& placed : canvas.texts()) all.push_back(placed.text);
    return all;
  };
  const auto has = [&](float width, const char* text) {
    const std::vector<std::string> all = texts(width);
    return std::ranges::count(all, text) > 0;
  };
  CHECK(has(640, "90 tokens, load 2.31"));
  CHECK(has(640, "overloaded"));
  CHECK(has(440, "load 2.31"));
  CHECK(has(440, "overloaded"));
  CHECK(has(340, "2.31"));
  CHECK(has(340, "overloaded"));
}

TEST_CASE("alarms wait for 32 tokens per partition") {
  CHECK(load_alarm(0, 0, 127, 4).empty());
  CHECK(load_alarm(0, 0, 128, 4) == "dead");
  CHECK(load_alarm(1, 0.1f, 128, 4).empty());
  CHECK(load_alarm(90, 2.0f, 128, 4).empty());
  CHECK(load_alarm(90, 2.01f, 128, 4) == "overloaded");
  CHECK(load_alarm(5, 4.0f, 5, 4).empty());
}

TEST_CASE("a chip begins at its token, ends at its box and passes the middle halfway") {
  const Point from{10, 100}, to{50, 20};
  CHECK(point_on_ribbon(from, to, 0).x == 10);
  CHECK(point_on_ribbon(from, to, 0).y == 100);
  CHECK(point_on_ribbon(from, to, 0.5f).x == Approx(30));
  CHECK(point_on_ribbon(from, to, 0.5f).y == Approx(60));
  CHECK(point_on_ribbon(from, to, 1).x == Approx(50));
  CHECK(point_on_ribbon(from, to, 2).y == Approx(20));
}

TEST_CASE("a layer without partitions says which layers have them") {
  const Sample sample({.tokens = 5});
  const RoutingData data = build_routing(sample.attention_at(2), {.token = 2});
  CHECK(data.headline == "Layer 1 (softmax_attention) does not route its tokens");
  CHECK(data.detail == "Every token goes to the same memory. In this model, layer 0 chooses among partitions.");
  const Sample plain({.tokens = 5, .partitions = 0});
  CHECK(build_routing(plain.at(2), {.token = 2}).detail == "No layer of this model has partitions. SSE and MoM models do.");
  CHECK_FALSE(build_routing({}, {}).headline.empty());
}

TEST_CASE("hits lead to tokens and slots") {
  const auto view = make_routing();
  view->build(three_tokens(), {.token = 2});
  TextCanvas canvas({600, 400});
  view->draw(canvas, {0, 0, 600, 400}, {light_theme(), 1});
  const auto id_at = [&](std::string_view text) {
    const auto placed = std::ranges::find_if(canvas.texts(), [&](const auto& p) { return p.text == text; });
    REQUIRE(placed != canvas.texts().end());
    const auto id = canvas.hits().at({placed->rect.x + 1, placed->rect.y + 1});
    REQUIRE(id);
    return *id;
  };
  CHECK(view->on_hit(id_at("partition 2")).slot == 2);
  CHECK(view->on_hit(id_at("shared")).slot == 0);
  CHECK(view->on_hit(id_at("␣b")).token == 1);
  CHECK(view->tooltip(id_at("partition 1")).starts_with("partition 1\nvisits (tokens) = 1   tokens that were routed here\nload = 0.666"));
  CHECK(view->tooltip(id_at("␣b")).starts_with("token 1 “␣b”\ne: shared = 1, partition 2 = 0.6   e_t = "));
  CHECK(view->sentence() == "Layer 0: token 2 is written to shared and 1.");
  const Table table = view->table();
  CHECK(table.columns[2] == "visits (tokens)");
  CHECK(table.rows[2] == std::vector<std::string>{"2", "—", "2", "1.3333334", "0.1", "no, nor decayed", ""});
}

TEST_CASE("the cursor's token is always drawn, however long the run and however small the place") {
  const Sample sample({.tokens = 4000, .partitions = 64, .chosen = 2, .heads = 1, .rows = 1, .columns = 1});
  Snapshot snapshot = sample.at(3);
  for (const std::int64_t token : {std::int64_t{0}, std::int64_t{1999}, std::int64_t{3999}}) {
    TextCanvas canvas({400, 120});
    const RoutingData data = build_routing(snapshot, {.token = token});
    draw(data, canvas, {0, 0, 400, 120}, {dark_theme(), 1});
    const auto place = std::ranges::find(data.tokens, token, &RoutedToken::token) - data.tokens.begin();
    const std::string hit = " 0:" + std::to_string(place) + ",-1,-1 1x1";
    CHECK(std::ranges::any_of(canvas.lines(), [&](const std::string& line) { return line.find(hit) != std::string::npos; }));
    CHECK(std::ranges::any_of(canvas.texts(), [](const auto& placed) { return placed.text.ends_with("of 65 shown"); }));
  }
}

}  // namespace statescope::routing_test

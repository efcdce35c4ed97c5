#include "views/state.h"
#include "views/plot.h"

#include <algorithm>
#include <cmath>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/samples.h"

using namespace statescope;

namespace {

/// Two slots, two heads, 2 × 3. Head 1 of slot 1 goes from 0 to [1 2 2; 0 0 −4]; everything else stays 0.5.
Snapshot small_state() {
  RunInfo run;
  run.model.layers = {sample_layer({.partitions = 1, .heads = 2, .rows = 2, .columns = 3})};
  run.tokens = {{0, "a"}, {1, " b"}};
  run.prompt_length = 2;
  Snapshot snapshot;
  snapshot.run = std::make_shared<RunInfo>(run);
  snapshot.token = 1;
  snapshot.state = {2, 2, 2, 3, std::vector<float>(24, 0.5f)};
  snapshot.before = snapshot.state;
  const float after[] = {1, 2, 2, 0, 0, -4};
  std::copy_n(after, 6, snapshot.state.values.begin() + 18);
  std::fill_n(snapshot.before.values.begin() + 18, 6, 0.0f);
  return snapshot;
}

}  // namespace

TEST_CASE("a slot knows what the token did to it, row by row") {
  const StateData data = build_state(small_state(), {.token = 1, .head = 1, .slot = 1});
  REQUIRE(data.slots.size() == 2);
  CHECK_FALSE(data.slots[0].written);
  CHECK(data.slots[0].change == 0);
  CHECK(data.slots[0].range == 0.5f);  // each slot has a colour range of its own
  CHECK(data.slots[1].written);
  CHECK(data.slots[1].change == 5);
  CHECK(data.slots[1].row_change == std::vector<float>{3, 4});
  CHECK(data.matrix().values == std::vector<float>{1, 2, 2, 0, 0, -4});
  CHECK(data.matrix().name == "1");
  CHECK(data.matrix().range == 5);
}

TEST_CASE("the other head is another matrix") {
  const StateData data = build_state(small_state(), {.token = 1, .head = 0, .slot = 1});
  CHECK(data.matrix().values == std::vector<float>(6, 0.5f));
  CHECK_FALSE(data.matrix().written);
  CHECK(data.matrix().range == 0.5f);
}

TEST_CASE("while the token moves, the values are those before it") {
  const StateData data = build_state(small_state(), {.token = 1, .head = 1, .slot = 1, .progress = 0.9f});
  CHECK(data.matrix().values == std::vector<float>(6, 0.0f));
  CHECK(data.matrix().before.empty());
  CHECK(data.matrix().row_change == std::vector<float>{0, 0});
  CHECK(data.matrix().written);  // its outline fades in
}

TEST_CASE("a cursor outside the layer is brought inside, a cell outside is no cell") {
  const StateData data = build_state(small_state(), {.token = 1, .head = 9, .slot = 9, .row = 2, .column = 3});
  CHECK(data.head == 1);
  CHECK(data.chosen == 1);
  CHECK(data.row == -1);
  CHECK(data.column == -1);
}

TEST_CASE("one NaN is seen and does not spoil the range") {
  Snapshot snapshot = small_state();
  snapshot.state.values[18] = NAN;
  const StateData data = build_state(snapshot, {.head = 1, .slot = 1});
  CHECK(std::isnan(data.matrix().values[0]));
  CHECK(data.matrix().written);
  CHECK(data.matrix().range == 5);
  CHECK(std::isnan(data.matrix().change));
}

TEST_CASE("ranges are round and hold the value") {
  CHECK(round_range(0) == 1);
  CHECK(round_range(NAN) == 1);
  CHECK(round_range(1) == 1);
  CHECK(round_range(1.01f) == 2);
  CHECK(round_range(4.9f) == 5);
  CHECK(round_range(5.1f) == 10);
  CHECK(round_range(0.0011f) == Approx(0.002f));
  CHECK(round_range(3e-30f) == Approx(5e-30f));
}

TEST_CASE("axes have as many numbers as fit") {
  CHECK(axis_ticks(4, 10) == std::vector<std::int64_t>{0, 1, 2, 3});
  CHECK(axis_ticks(128, 8) == std::vector<std::int64_t>{0, 16, 32, 48, 64, 80, 96, 112});
  CHECK(axis_ticks(60, 8) == std::vector<std::int64_t>{0, 8, 16, 24, 32, 40, 48, 56});
  CHECK(axis_ticks(5, 1) == std::vector<std::int64_t>{0});
  CHECK(axis_ticks(1, 1) == std::vector<std::int64_t>{0});
}

TEST_CASE("small pictures are laid out as large as possible") {
  CHECK(best_columns(1, 100, 100, 1, 0, 0) == 1);
  CHECK(best_columns(4, 100, 100, 1, 0, 0) == 2);
  CHECK(best_columns(4, 400, 100, 1, 0, 0) == 4);
  CHECK(best_columns(4, 100, 400, 1, 0, 0) == 1);
  CHECK(best_columns(4, 100, 100, 4, 0, 0) == 1);
}

TEST_CASE("every cell of every slot answers with its value, exactly") {
  const auto view = make_state();
  view->build(small_state(), {.token = 1, .head = 1, .slot = 1});
  TextCanvas canvas({800, 500});
  view->draw(canvas, {0, 0, 800, 500}, {light_theme(), 1});
  // ids: slot · K·V + row · V + column
  CHECK(view->tooltip(1 * 6 + 1 * 3 + 2) ==
        "S[1, 2] = -4\nbefore 0\nchange -4\nlayer 0, head 1, partition 1, after token 1\nexact: kept from the run");
  CHECK(view->tooltip(0).starts_with("S[0, 0] = 0.5\nbefore 0.5\nchange 0\nlayer 0, head 1, shared"));
  CHECK(view->tooltip(12 + 1) == "row 1: changed by 4 (norm of S_t - S_t-1 along the row)");
  CHECK(view->tooltip(14).empty());
  CHECK(view->tooltip(-1).empty());
  const CursorMove move = view->on_hit(1 * 6 + 1 * 3 + 2);
  CHECK(move.slot == 1);
  CHECK(move.row == 1);
  CHECK(move.column == 2);
  CHECK_FALSE(view->on_hit(13).slot);
  CHECK(view->on_hit(13).row == 1);
  // The large heatmap answers below its first cell.
  const auto heatmap = std::ranges::find_if(canvas.lines(), [](const std::string& line) { return line.starts_with("heatmap"); });
  REQUIRE(heatmap != canvas.lines().end());
  CHECK(heatmap->find("2x3 diverging [-5, 5]") != std::string::npos);
  CHECK(view->table().rows[1] == std::vector<std::string>{"1", "0", "0", "-4"});
  CHECK(view->describe() == "State of layer 0, head 1, partition 1 after token 1: 2 rows, 3 columns.");
}

TEST_CASE("with little height the title tells the chosen cell, and ranges are plain numbers") {
  Snapshot snapshot = small_state();
  snapshot.state.values[18] = 999;
  const auto view = make_state();
  view->build(snapshot, {.token = 1, .head = 1, .slot = 1, .row = 0, .column = 0});
  const auto drawn = [&](float height, const char* words) {
    TextCanvas canvas({800, height});
    view->draw(canvas, {0, 0, 800, height}, {light_theme(), 1});
    return std::ranges::any_of(canvas.lines(), [&](const std::string& line) { return line.find(words) != std::string::npos; });
  };
  CHECK(drawn(130, "S[0, 0] = 999  Layer 0, head 1"));
  CHECK_FALSE(drawn(500, "S[0, 0] = 999  Layer 0, head 1"));
  CHECK(drawn(500, "S[0, 0] = 999"));
  CHECK(drawn(500, "1000"));
  CHECK_FALSE(drawn(500, "1e+03"));
}

TEST_CASE("values have nine significant digits, with the value before and the difference") {
  Snapshot snapshot = small_state();
  snapshot.state.values[18] = 0.1f;
  snapshot.before.values[18] = 0.3f;
  const auto view = make_state();
  view->build(snapshot, {.token = 1, .head = 1, .slot = 1, .row = 0, .column = 0});
  CHECK(view->describe().ends_with("S[0, 0] = 0.100000001, before 0.300000012, change -0.200000018."));
}

TEST_CASE("layers without a matrix say what they keep") {
  const Sample sample({.tokens = 5});
  const StateData data = build_state(sample.attention_at(2), {});
  CHECK(data.headline == "Layer 1 (softmax_attention) keeps no matrix state");
  CHECK(data.detail.find("key and the value of every token") != std::string::npos);
  Snapshot pending = sample.at(2);
  pending.state = {};
  CHECK(build_state(pending, {}).headline == "The state of layer 0 has not been computed yet");
  CHECK_FALSE(build_state({}, {}).headline.empty());
  CHECK(make_state()->table().rows.empty());
}

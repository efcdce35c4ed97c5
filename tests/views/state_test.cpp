#include "views/state.h"
#include "views/plot.h"
#include "views/sheets.h"

#include <algorithm>
#include <cmath>

#include "app/canvas/text_canvas.h"
#include "kernels/device_rows.h"
#include "tests/catch.h"
#include "tests/views/samples.h"

namespace statescope::state_test {
namespace {

/// Two slots, two heads, 2 × 3. Head 1 of slot 1 goes from 0 to [1 2 2; 0 0 −4]; everything else stays 0.5.
Snapshot small_state(std::int64_t head = 1) {
  RunInfo run;
  run.model.layers = {sample_layer({.partitions = 1, .heads = 2, .rows = 2, .columns = 3})};
  run.tokens = {{0, "a"}, {1, " b"}};
  run.prompt_length = 2;
  Snapshot snapshot;
  snapshot.run = std::make_shared<RunInfo>(run);
  snapshot.token = 1;
  snapshot.head = head;
  snapshot.state = {2, 2, 2, 3, std::vector<float>(12, 0.5f)};
  snapshot.before = snapshot.state;
  if (head == 0) return snapshot;
  const float after[] = {1, 2, 2, 0, 0, -4};
  std::copy_n(after, 6, snapshot.state.values.begin() + 6);
  std::fill_n(snapshot.before.values.begin() + 6, 6, 0.0f);
  return snapshot;
}

}  // namespace

TEST_CASE("a slot knows what the token did to it, row by row") {
  const StateData data = build_state(small_state(), {.token = 1, .head = 1, .slot = 1});
  REQUIRE(data.slots.size() == 2);
  CHECK_FALSE(data.slots[0].written);
  CHECK(data.slots[0].change == 0);
  CHECK(data.slots[0].range == 0.5f);
  CHECK(data.slots[1].written);
  CHECK(data.slots[1].change == 5);
  CHECK(data.slots[1].row_change == std::vector<float>{3, 4});
  CHECK(data.matrix().values == std::vector<float>{1, 2, 2, 0, 0, -4});
  CHECK(data.matrix().name == "1");
  CHECK(data.matrix().range == 5);
}

TEST_CASE("small pictures of partitions have one range of colours, and so has a slot of models beside each other") {
  RunInfo run;
  run.model.layers = {sample_layer({.partitions = 2, .heads = 1, .rows = 1, .columns = 2})};
  run.tokens = {{0, "a"}};
  Snapshot snapshot;
  snapshot.run = std::make_shared<RunInfo>(run);
  snapshot.state = {3, 1, 1, 2, {9, 9, 1, 1, 4, -4}};
  snapshot.before = snapshot.state;
  const auto ranges = [&](const Findings& findings, StateMode mode = StateMode::state) {
    std::vector<float> all;
    for (const SlotMatrix& slot : build_state(snapshot, {}, findings, mode).slots) all.insert(all.end(), {slot.range, slot.small_range});
    return all;
  };
  CHECK(ranges({}) == std::vector<float>{10, 10, 1, 5, 5, 5});
  Snapshot other = snapshot;
  other.state.values = {1, 1, 1, -40, 1, 1};
  Findings findings;
  findings.beside = {std::make_shared<const Peer>(
      Peer{.own_letter = "A", .letter = "B", .snapshot = std::make_shared<const Snapshot>(other), .missing = {}, .findings = {}})};
  CHECK(ranges(findings) == std::vector<float>{10, 10, 50, 50, 5, 50});
  CHECK(build_state(snapshot, {}, findings).colors_like == "B");
  other.head = 7;  // another place
  findings.beside[0] = std::make_shared<const Peer>(
      Peer{.own_letter = "A", .letter = "B", .snapshot = std::make_shared<const Snapshot>(other), .missing = {}, .findings = {}});
  CHECK(ranges(findings) == std::vector<float>{10, 10, 1, 5, 5, 5});
  CHECK(build_state(snapshot, {}, findings).colors_like.empty());
}

TEST_CASE("the other head is another matrix") {
  const StateData data = build_state(small_state(0), {.token = 1, .slot = 1});
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

TEST_CASE("a cursor outside the layer is brought inside, a cell outside is no cell; the head is the snapshot's") {
  const StateData data = build_state(small_state(), {.token = 1, .head = 9, .slot = 9, .row = 2, .column = 3});
  CHECK(data.head == 1);
  CHECK(data.chosen == 1);
  CHECK(data.row == -1);
  CHECK(data.column == -1);
}

TEST_CASE("one NaN is seen and does not spoil the range") {
  Snapshot snapshot = small_state();
  snapshot.state.values[6] = NAN;
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

TEST_CASE("on a large screen the matrix fills its place: the others beside it take no more width than they fill") {
  class Heights : public TextCanvas {
   public:
    using TextCanvas::TextCanvas;
    void heatmap(Rect rect, const Heatmap& cells) override {
      if (cells.columns > 1) all.push_back(rect.h);
    }
    std::vector<float> all;
  };
  const auto view = make_state();
  view->build(Sample({.tokens = 12}).at(8), {.token = 8});
  Heights canvas({1900, 1800});
  view->draw(canvas, {0, 0, 1900, 1800}, {light_theme(), 1});
  REQUIRE(canvas.all.size() == 6);
  CHECK(canvas.all.front() > 0.75f * 1800);
  CHECK(canvas.all.back() > 0.15f * 1800);
}

TEST_CASE("rows and columns are called what the family calls them: of Mamba a state and a channel") {
  Snapshot snapshot = small_state();
  RunInfo run = *snapshot.run;
  run.model.layers[0].row_name = "state";
  run.model.layers[0].column_name = "channel";
  snapshot.run = std::make_shared<RunInfo>(run);
  const auto view = make_state();
  view->build(snapshot, {.token = 1, .head = 1, .slot = 1});
  TextCanvas canvas({800, 500});
  view->draw(canvas, {0, 0, 800, 500}, {light_theme(), 1});
  CHECK(view->tooltip({StateSheets::cells, 1, 1, 2}).starts_with("partition 1, state 1, channel 2\n"));
  CHECK(view->table().rows[1][0] == "state 1");
  const auto drawn = [&](const std::string& word) {
    return std::ranges::any_of(canvas.lines(), [&](const std::string& line) { return line.find("'" + word + "'") != line.npos; });
  };
  CHECK(drawn("channel"));
  CHECK_FALSE(drawn("value column"));
}

TEST_CASE("a state far wider than high is drawn, in cells that are higher than wide") {
  const auto view = make_state();
  view->build(Sample({.tokens = 4, .partitions = 0, .heads = 1, .rows = 16, .columns = 1536}).at(2), {.token = 2});
  TextCanvas canvas({540, 400});
  view->draw(canvas, {0, 0, 540, 400}, {light_theme(), 1});
  CHECK(std::ranges::any_of(canvas.lines(),
                            [](const std::string& line) { return line.starts_with("heatmap") && line.find("16x1536") != line.npos; }));
}

TEST_CASE("every cell of every slot answers with its value, exactly") {
  const auto view = make_state();
  view->build(small_state(), {.token = 1, .head = 1, .slot = 1});
  TextCanvas canvas({800, 500});
  view->draw(canvas, {0, 0, 800, 500}, {light_theme(), 1});
  CHECK(view->tooltip({StateSheets::cells, 1, 1, 2}).starts_with("partition 1, key row 1, value column 2\nS_t = -4   S_t = "));
  CHECK(view->tooltip({StateSheets::cells, 0, 0, 0}).find("\nbefore 0.5\nchange 0\n") != std::string::npos);
  CHECK(view->tooltip({StateSheets::changes, 1, 1}).find("‖row of S_t − S_{t−1}‖ = 4") != std::string::npos);
  CHECK(view->tooltip({StateSheets::changes, 1, 2}).empty());
  CHECK(view->tooltip({-1, 0}).empty());
  const CursorMove move = view->on_hit({StateSheets::cells, 1, 1, 2});
  CHECK(move.slot == 1);
  CHECK(move.row == 1);
  CHECK(move.column == 2);
  CHECK(view->on_hit({StateSheets::changes, 1, 1}).slot == 1);
  CHECK(view->on_hit({StateSheets::changes, 1, 1}).row == 1);
  // The large heatmap answers below its first cell.
  const auto heatmap = std::ranges::find_if(canvas.lines(), [](const std::string& line) { return line.starts_with("heatmap"); });
  REQUIRE(heatmap != canvas.lines().end());
  CHECK(heatmap->find("2x3 diverging [-5, 5]") != std::string::npos);
  CHECK(view->table().rows[1] == std::vector<std::string>{"key row 1", "0", "0", "-4", "4", ""});
  CHECK(view->sentence() == "State of layer 0, head 1, partition 1 after token 1: 2 rows, 3 columns.");
}

TEST_CASE("with little height the title tells the chosen cell, and ranges are plain numbers") {
  Snapshot snapshot = small_state();
  snapshot.state.values[6] = 999;
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
  snapshot.state.values[6] = 0.1f;
  snapshot.before.values[6] = 0.3f;
  const auto view = make_state();
  view->build(snapshot, {.token = 1, .head = 1, .slot = 1, .row = 0, .column = 0});
  CHECK(view->sentence().ends_with("S[0, 0] = 0.100000001, before 0.300000012, change -0.200000018."));
}

TEST_CASE("layers without a matrix say what they keep") {
  const Sample sample({.tokens = 5});
  const StateData data = build_state(sample.attention_at(2), {});
  CHECK(data.headline == "Layer 1 (softmax_attention) keeps no matrix state");
  CHECK(data.detail.find("something of every token") != std::string::npos);
  Snapshot pending = sample.at(2);
  pending.state = {};
  CHECK(build_state(pending, {}).headline == "The state of layer 0 has not been computed yet");
  CHECK_FALSE(build_state({}, {}).headline.empty());
  CHECK(make_state()->table().rows.empty());
}

TEST_CASE("the change, and the difference to another token, are subtracted cell by cell") {
  const Cursor cursor{.token = 1, .head = 1, .slot = 1};
  const StateData change = build_state(small_state(), cursor, {}, StateMode::change);
  CHECK(change.matrix().values == std::vector<float>{1, 2, 2, 0, 0, -4});
  CHECK(change.matrix().row_change == std::vector<float>{3, 4});
  CHECK(change.matrix().change == 5);
  CHECK(change.slots[0].values == std::vector<float>(6, 0.0f));
  CHECK(build_state(small_state(), {.token = 1, .head = 1, .slot = 1, .progress = 0.5f}, {}, StateMode::change).matrix().values ==
        std::vector<float>(6, 0.0f));

  CHECK(build_state(small_state(), cursor, {}, StateMode::difference).detail.starts_with("Press D at another token"));
  Cursor compared = cursor;
  compared.reference = 0;
  CHECK(build_state(small_state(), compared, {}, StateMode::difference).headline == "The state after token 0 has not been worked out yet");
  Findings findings;
  findings.answer(StateQuestion{.layer = 0, .head = 1, .token = 0}, HeadState{2, 2, 2, 3, std::vector<float>(12, 1.0f)});
  const StateData difference = build_state(small_state(), compared, findings, StateMode::difference);
  CHECK(difference.matrix().values == std::vector<float>{0, 1, 1, -1, -1, -5});
  CHECK(difference.slots[0].values == std::vector<float>(6, -0.5f));
}

namespace {

struct NoRows final : DeviceRows {
  std::size_t bytes() const override { return 0; }
  std::unique_ptr<SharedBuffer> share(unsigned) const override { return nullptr; }
};

/// Keeps the heatmaps that a device has too.
struct DeviceCanvas final : TextCanvas {
  using TextCanvas::TextCanvas;
  void heatmap(Rect, const Heatmap& cells) override {
    if (cells.on_device) drawn.push_back(cells);
  }
  std::vector<Heatmap> drawn;
};

}  // namespace

TEST_CASE("the state as it is, or was while the token moves, is drawn from the device that has it, each slot at its place") {
  Snapshot snapshot = small_state();
  snapshot.state.on_device = std::make_shared<NoRows>();
  snapshot.before.on_device = std::make_shared<NoRows>();
  const auto drawn = [&](float progress, StateMode mode) {
    DeviceCanvas canvas({900, 500});
    const StateData data = build_state(snapshot, {.token = 1, .head = 1, .slot = 1, .progress = progress}, {}, mode);
    draw(data, canvas, {0, 0, 900, 500}, {light_theme(), 1});
    for (const Heatmap& cells : canvas.drawn) CHECK((cells.rows == 2 && cells.columns == 3));
    return canvas.drawn;
  };
  for (const float progress : {1.0f, 0.5f}) {
    const std::vector<Heatmap> cells = drawn(progress, StateMode::state);
    REQUIRE(cells.size() == 3);  // the chosen slot large, both small
    for (const Heatmap& each : cells) CHECK(each.on_device == (progress < 1 ? snapshot.before : snapshot.state).on_device);
    CHECK((cells[0].first == 6 && cells[1].first == 0 && cells[2].first == 6));
  }
  CHECK(drawn(1, StateMode::change).empty());  // subtracted on the host
}

TEST_CASE("decay, erasure and writing are shown one by one; a memory without the delta rule erases nothing") {
  Snapshot snapshot = small_state();
  const Cursor cursor{.token = 1, .head = 1, .slot = 1, .row = 0, .column = 1};
  CHECK(build_state(snapshot, cursor, {}, StateMode::erase).headline == "The memory of layer 0 erases nothing");
  CHECK(build_state(snapshot, cursor, {}, StateMode::write).headline == "What the token did to the memory has not been worked out yet");
  Snapshot of_rwkv7 = snapshot;
  RunInfo other = *snapshot.run;
  other.model.layers[0].mixer = "rwkv7";
  of_rwkv7.run = std::make_shared<RunInfo>(other);
  CHECK(build_state(of_rwkv7, cursor, {}, StateMode::erase).headline == "What the token did to the memory has not been worked out yet");
  Update update{2, 2, 3, std::vector<float>(12), std::vector<float>(12), std::vector<float>(12), std::vector<float>(4)};
  update.decayed[7] = -0.25f;
  update.written[7] = 2;
  Findings findings;
  findings.answer(UpdateQuestion{.layer = 0, .head = 1, .token = 1}, update);
  const auto view = make_state();
  view->set_mode(static_cast<std::size_t>(StateMode::write));
  CHECK(view->questions(snapshot, cursor).size() == 2);  // and who wrote the cell
  view->build(snapshot, cursor, findings);
  CHECK(view->sentence() == "State of layer 0, head 1, partition 1, written by token 1  ␣b: 2 rows, 3 columns; write[0, 1] = 2.");
  CHECK(view->tooltip({StateSheets::cells, 1, 0, 1}).find("written = 2   ") != std::string::npos);
  CHECK(view->tooltip({StateSheets::changes, 1, 0}).find("‖row‖ = 2") != std::string::npos);
  view->set_mode(static_cast<std::size_t>(StateMode::decay));
  view->build(snapshot, cursor, findings);
  CHECK(view->table().rows[0] == std::vector<std::string>{"key row 0", "0", "-0.25", "0", "0.25", ""});
}

TEST_CASE("a chosen cell says who wrote it: the largest parts, and what all the others add") {
  History history;
  for (int t = 0; t < 40; ++t) {
    history.token.push_back(t);
    history.coefficient.push_back(1);
    history.written.push_back(2);
    history.contribution.push_back(t == 7 ? -0.5f : 0.01f * static_cast<float>(t));
    history.sum += history.contribution.back();
  }
  history.shown = history.sum;
  const Snapshot snapshot = small_state();
  const Cursor cursor{.token = 1, .head = 1, .slot = 1, .row = 1, .column = 2};
  const HistoryQuestion question{.layer = 0, .slot = 1, .head = 1, .row = 1, .column = 2, .token = 1};
  const auto view = make_state();
  CHECK(view->questions(snapshot, cursor) == std::vector<Question>{question});
  Findings findings;
  findings.answer(question, history);
  const HistoryStrip strip = build_state(snapshot, cursor, findings).history;
  CHECK(strip.what == "S[1, 2]");
  REQUIRE(strip.parts.size() == 24);
  CHECK((strip.parts[0].token == 7 && strip.parts[1].token == 39));
  CHECK(strip.others == 16);
  double sum = strip.rest;
  for (const HistoryPart& part : strip.parts) sum += part.contribution;
  CHECK(sum == Approx(strip.shown));
  CHECK(strip.sentence() == "S[1, 2] = 7.23, written by 40 tokens that add up to 7.23");

  view->build(snapshot, cursor, findings);
  CHECK(view->on_hit({StateSheets::history, 0}).token == 7);
  CHECK_FALSE(view->on_hit({StateSheets::history, 24}).token);
  CHECK(view->tooltip({StateSheets::history, 0}).find("part of S[1, 2] = -0.5") != std::string::npos);
  CHECK(view->sentence().ends_with("; most of it: 7  −0.5, 39  +0.39, 38  +0.38."));
  CHECK(view->table().rows.back()[0].starts_with("token that wrote "));
  TextCanvas canvas({900, 500});
  view->draw(canvas, {0, 0, 900, 500}, {light_theme(), 1});
  CHECK(std::ranges::any_of(canvas.lines(), [](const std::string& line) { return line.find("others") != std::string::npos; }));

  Findings waiting;
  waiting.set(question, {nullptr, "too long", 0});
  CHECK(build_state(snapshot, cursor, waiting).history.sentence() == "Who wrote S[1, 2]: too long");
  Cursor row = cursor;
  row.column = -1;
  CHECK(view->questions(snapshot, row) == std::vector<Question>{HistoryQuestion{.layer = 0, .slot = 1, .head = 1, .row = 1, .token = 1}});
}

TEST_CASE("a whole row and a slot's whole state are chosen, named, measured and asked about as a cell is") {
  const Snapshot snapshot = small_state();
  const auto view = make_state();
  const Cursor all{.token = 1, .head = 1, .slot = 1, .row = kAllRows};
  const HistoryQuestion question{.layer = 0, .slot = 1, .head = 1, .row = -1, .token = 1};
  CHECK(view->questions(snapshot, {.token = 1, .head = 1, .slot = 1}).empty());
  CHECK(view->questions(snapshot, all) == std::vector<Question>{question});

  History history{.token = {0, 1}, .coefficient = {1, 3}, .written = {1, 4}, .contribution = {2, 3}, .sum = 5, .shown = 5};
  Findings findings;
  findings.answer(question, history);
  view->build(snapshot, all, findings);
  CHECK(build_state(snapshot, all, findings).history.sentence() == "‖S‖ = 5, written by 2 tokens that add up to 5");
  CHECK(chosen_words(build_state(snapshot, all)) == std::vector<std::string>{"‖S‖ = 5", "before 0", "‖change‖ 5"});
  CHECK(view->describe().find("; ‖S‖ = 5, before 0, ‖change‖ 5. ‖S‖ = 5, written by 2 tokens") != std::string::npos);
  CHECK(view->tooltip({StateSheets::history, 0}).find("⟨c v, S⟩ / ‖S‖") != std::string::npos);
  CHECK(view->table().rows.back()[0] == "token that wrote 0 “a”");

  const Cursor row{.token = 1, .head = 1, .slot = 1, .row = 1};
  CHECK(chosen_words(build_state(snapshot, row)) == std::vector<std::string>{"‖row 1‖ = 4", "before 0", "‖change‖ 4"});
  // The name of a slot's picture chooses all of it, the bar beside a row that row, whatever cell was chosen.
  const CursorMove whole = view->on_hit({StateSheets::slots, 0}), bar = view->on_hit({StateSheets::changes, 1, 1});
  CHECK((whole.slot == 0 && whole.row == kAllRows && whole.column == -1));
  CHECK((bar.row == 1 && bar.column == -1 && bar.slot == 1));
  CHECK(view->tooltip({StateSheets::slots, 0}).starts_with("shared\n"));
  TextCanvas canvas({900, 500});
  view->draw(canvas, {0, 0, 900, 500}, {light_theme(), 1});
  CHECK(std::ranges::any_of(canvas.lines(), [](const std::string& line) { return line.find("‖S‖ = 5, written by") != std::string::npos; }));
}

}  // namespace statescope::state_test

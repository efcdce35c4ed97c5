#include "views/needle.h"
#include "views/sheets.h"

#include <algorithm>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/samples.h"

namespace statescope::needle_test {
namespace {

/// Tokens 5 … 13 are the needle, 30 is asked about; layer 0 has a shared slot and 4 partitions, layer 1 no state.
NeedleStory small_story() {
  NeedleStory story;
  story.layers.resize(2);
  story.layers[0] = {.has_memory = true,
                     .clear = 0.25,
                     .decayed = 0.5,
                     .erased = 0,
                     .overwritten = 0.125,
                     .misrouted = 0.125,
                     .read_share = 0.75,
                     .kept = std::vector<float>(18, 1.0f),
                     .curves = {},
                     .places = 3};
  std::fill(story.layers[0].kept.begin() + 10, story.layers[0].kept.end(), 0.5f);
  story.layers[0].curves.push_back({.slot = 2, .head = 1, .written = 3, .read_share = 0, .token = {13, 20}, .kept = {1, 0.5f}});
  story.all = story.layers[0];
  story.causes = {{0, 2, 1, "decay", 0.5, 23}, {0, 0, 0, "overwriting", 0.125, 24}, {0, 3, 0, "erasure", 0, 25}};
  story.falls = {{23, 0.5}};
  return story;
}

NeedleData built(const Cursor& cursor = {.token = 20}, NeedleMode mode = NeedleMode::layers, const NeedleStory& story = small_story()) {
  const Sample sample({.tokens = 40});
  Findings findings;
  findings.answer(needle_question(*sample.run(), cursor.token), story);
  return build_needle(sample.at(20), cursor, findings, mode);
}

}  // namespace

TEST_CASE("needle: the legend begins with the chosen curve, which has no room at its end where there are many") {
  NeedleStory story = small_story();
  NeedleStory::Curve curve = story.layers[0].curves.front();
  for (const std::int64_t slot : {0, 1, 3}) {
    curve.slot = slot;
    story.layers[0].curves.push_back(curve);
  }
  const auto first = [&](std::int64_t slot) {
    const NeedleData data = built({.token = 20, .head = 1, .slot = slot}, NeedleMode::places, story);
    REQUIRE((data.colors.size() == 4 && data.curves.back().chosen));
    CHECK(std::ranges::is_sorted(data.colors.begin() + 1, data.colors.end(), {}, &NeedleColor::identity));
    return data.colors.front().identity == data.curves.back().identity;
  };
  CHECK(first(0));
  CHECK(first(3));
}

TEST_CASE("needle: what is asked for is the first needle or the one under the cursor, and the last token before the answer") {
  RunInfo run = *Sample({.tokens = 40}).run();
  CHECK(needle_question(run, 20) == NeedleQuestion{5, 14, 30});  // the answer was generated
  run.spans.push_back({SpanKind::needle, 16, 18});
  CHECK(needle_question(run, 17) == NeedleQuestion{16, 18, 30});
  CHECK(needle_question(run, 20) == NeedleQuestion{5, 14, 30});
  run.prompt_length = 40;  // the answer stands in the prompt
  CHECK(needle_question(run, 20).question == 30);
  run.spans.clear();
  CHECK(needle_question(run, 20).end == 0);
}

TEST_CASE("needle: curves, parts and causes are those of the story; what took nothing is left out") {
  const NeedleData data = built();
  REQUIRE_FALSE(data.message);
  CHECK(data.text == "the code of anna is 4 1 7 7");
  CHECK(data.tokens.tokens.front() == 13);
  CHECK(data.tokens.tokens.back() == 30);
  CHECK(data.mean.size() == data.tokens.tokens.size());
  REQUIRE(data.curves.size() == 1);
  CHECK((data.curves[0].name == "layer 0" && data.curves[0].chosen));
  REQUIRE(data.parts.size() == 2);
  CHECK((data.parts[0].name == "all layers" && data.parts[0].clear == 0.25));
  CHECK((data.parts[1].layer == 0 && data.parts[1].chosen && data.parts[1].read_share == 0.75));
  REQUIRE(data.causes.size() == 2);
  CHECK(data.causes[0].where == "layer 0, partition 2, head 1");
  CHECK(data.causes[0].token_text == "⏎");
}

TEST_CASE("needle: a place's curve keeps its value between the visits, and has the partition's colour") {
  const NeedleData data = built({.token = 20, .head = 1, .slot = 2}, NeedleMode::places);
  REQUIRE(data.curves.size() == 1);
  CHECK(data.curves[0].name == "partition 2, head 1");
  CHECK(data.curves[0].identity == 2);
  CHECK(data.curves[0].chosen);
  CHECK(data.hidden_curves == 2);
  CHECK(data.curves[0].kept[6] == 1);
  CHECK(data.curves[0].kept[7] == 0.5f);
  CHECK(data.curves[0].kept.back() == 0.5f);
}

TEST_CASE("needle: a level is called so, and the parts of a complex state are one place") {
  const Sample sample({.tokens = 40});
  const auto places = [&](const char* memory, const std::vector<std::string>& slots) {
    Snapshot snapshot = sample.at(20);
    RunInfo run = *snapshot.run;
    for (LayerInfo& layer : run.model.layers) layer.memory = memory, layer.slot_names = slots, layer.partitions = 0;
    snapshot.run = std::make_shared<const RunInfo>(run);
    Findings findings;
    findings.answer(needle_question(run, 20), small_story());
    const NeedleData data = build_needle(snapshot, {.token = 20}, findings, NeedleMode::places);
    return std::pair(data.curves.at(0).name, data.causes.at(0).where);
  };
  CHECK(places("log-linear attention", {"level 0", "level 1", "level 2", "level 3"}) ==
        std::pair<std::string, std::string>("level 2, head 1", "layer 0, level 2, head 1"));
  CHECK(places("state space", {"real part", "imaginary part"}) == std::pair<std::string, std::string>("head 1", "layer 0, head 1"));
}

TEST_CASE("needle: outside of its story the cursor has no line") {
  CHECK(built({.token = 20}).tokens.cursor == 20);
  CHECK(built({.token = 3}).tokens.cursor == -1);
  CHECK(built({.token = 35}).tokens.cursor == -1);
}

TEST_CASE("needle: clicks go to the layer, to what took most, and to the token of a fall") {
  const Sample sample({.tokens = 40});
  const auto view = make_needle();
  Findings findings;
  findings.answer(NeedleQuestion{5, 14, 30}, small_story());
  CHECK(view->questions(sample.at(20), {.token = 20}) == std::vector<Question>{NeedleQuestion{5, 14, 30}});
  view->build(sample.at(20), {.token = 20}, findings);
  CHECK(view->on_hit({NeedleSheets::falls, 0}).token == 23);
  const CursorMove cause = view->on_hit({NeedleSheets::causes, 0});
  CHECK((cause.token == 23 && cause.layer == 0 && cause.slot == 2 && cause.head == 1));
  CHECK_FALSE(view->on_hit({NeedleSheets::parts, 0}).layer);
  CHECK(view->on_hit({NeedleSheets::parts, 1}).layer == 0);
  CHECK(view->on_hit({NeedleSheets::curves, Hit::all, 7}).token == 20);
  CHECK(view->tooltip({NeedleSheets::causes, 0})
            .starts_with("decay in layer 0, partition 2, head 1\ntook = 0.5   part of all that the needle wrote\nmost at token = 23 "));
  CHECK(view->tooltip({NeedleSheets::curves, Hit::all, 7}).find("left: layer 0 = 1") != std::string::npos);
  CHECK(view->tooltip({NeedleSheets::curves, Hit::all, 7}).ends_with(std::string(kRecomputed.text())));
  CHECK(view->sentence() ==
        "Needle \"the code of anna is 4 1 7 7\", tokens 5 to 13, asked after token 30. At the question 0.25 of what the needle wrote is "
        "still clear: decay took 0.50, overwriting 0.12, misrouting 0.12; the needle is up to 0.75 of what is read from one memory.");
  const Table table = view->table();
  CHECK(table.columns[0] == "what");
  CHECK(std::ranges::any_of(table.columns, [](const std::string& name) { return name == "clear: part"; }));
  CHECK(std::ranges::any_of(table.rows, [](const auto& row) { return row[0] == "all layers" && std::ranges::count(row, "0.25") > 0; }));
}

TEST_CASE("needle: an empty view says what would fill it, and how far the work is") {
  RunInfo run = *Sample({.tokens = 40}).run();
  Snapshot snapshot = Sample({.tokens = 40}).at(20);
  CHECK(build_needle(snapshot, {}, {}, {}).message.headline == "What became of the needle has not been worked out yet");
  Findings findings;
  findings.set(NeedleQuestion{5, 14, 30}, {nullptr, {}, 0.5});
  CHECK(build_needle(snapshot, {}, findings, {}).message.detail == "50 % done.");
  findings.set(NeedleQuestion{5, 14, 30}, {nullptr, "too long", 0});
  CHECK(build_needle(snapshot, {}, findings, {}).message.detail == "Too long");
  CHECK(built({}, {}, {.layers = std::vector<NeedleStory::LayerFate>(2)}).message.headline == "The needle wrote to no matrix memory");
  run.prompt_length = 10;
  snapshot.run = std::make_shared<const RunInfo>(run);
  CHECK(build_needle(snapshot, {}, {}, {}).message.headline == "Nothing is asked after the needle");
  CHECK(make_needle()->questions(snapshot, {}).empty());
  run.spans.clear();
  snapshot.run = std::make_shared<const RunInfo>(run);
  CHECK(build_needle(snapshot, {}, {}, {}).message.detail.starts_with("Mark one in the prompt"));
  CHECK(build_needle({}, {}, {}, {}).message);
}

}  // namespace statescope::needle_test

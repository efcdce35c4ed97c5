#include "views/needle_grid.h"
#include "views/sheets.h"

#include <algorithm>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/sample_answers.h"
#include "tests/views/samples.h"

namespace statescope::needle_grid_test {
namespace {

Snapshot trained_on(std::int64_t length) {
  RunInfo run = *sample_run({.tokens = 4});
  run.model.name = "small.h5";
  run.model.trained_length = length;
  return {.run = std::make_shared<RunInfo>(run), .layer = 0, .token = 1, .state = {}, .before = {}, .routing = nullptr, .predictions = {}};
}

Findings answered(const NeedleGridQuestion& question, double progress = 1) {
  Findings findings;
  auto grid = std::make_shared<NeedleGrid>(sample_answer(question, {}));
  grid->haystack = "prose";
  findings.set(question, {grid, {}, progress});
  return findings;
}

}  // namespace

TEST_CASE("needle grid: asks for lengths around the one the model was trained on") {
  const NeedleGridQuestion question = needle_grid_question(*trained_on(1024).run, 4);
  CHECK(question.lengths == std::vector<std::int64_t>{256, 512, 1024, 2048, 4096});
  CHECK(question.needles == 4);
  CHECK(needle_grid_question(*trained_on(0).run, 1).lengths.front() == 128);
  const auto view = make_needle_grid();
  view->turn(6.5);
  CHECK(std::get<NeedleGridQuestion>(view->questions(trained_on(0), {}).at(0)).needles == 8);
  CHECK(view->questions({}, {}).empty());
}

TEST_CASE("needle grid: what is right, what is read, what is worst") {
  const Snapshot snapshot = trained_on(512);
  const NeedleGridQuestion question = needle_grid_question(*snapshot.run, 16);
  const NeedleGridData data = build_needle_grid(snapshot, answered(question, 0.5), question, -1);
  CHECK_FALSE(data.message);
  CHECK(data.count() == 25);
  CHECK(data.length_of(8) == 1024);
  CHECK(data.depth_of(8) == 25);
  const auto view = make_needle_grid();
  view->build(snapshot, {}, answered(question, 0.5));
  CHECK(view->sentence() == "280 of 480 prompts with 16 needles are answered right; fewest with 2048 words, 0 % deep; 50 % read.");
  CHECK(view->table().columns[1] == "length 128 words: answered right");
  CHECK(view->table().rows[1] == std::vector<std::string>{"25", "1", "0.8", "0.6", "0.4", "0.2", "20", "20", "20", "20", "20"});
  CHECK(view->table().rows[4][1] == "—");
  CHECK(view->tooltip({NeedleGridSheets::cells, 0, 1}) ==
        "depth 0 %, length 256 words\nanswered right = 0.8   right in every token ÷ asked, as statescope eval --task niah\nasked (prompts) "
        "= 20   prompts of each cell\nchoose it to open a prompt that failed\nread apart from the run; the same: statescope "
        "eval small.h5 --task niah --length 256 --needles 16 --depth 0 --samples 20 --haystack prose\nexact: kept from the run");
  CHECK(view->tooltip({NeedleGridSheets::cells, 4, 0}).find("2 needles do not fit") != std::string::npos);
  CHECK(view->tooltip({NeedleGridSheets::cells, 5, 0}).empty());
}

TEST_CASE("needle grid: before the first prompt has been read it says that it is being read, and where") {
  const Snapshot snapshot = trained_on(512);
  const NeedleGridQuestion question = needle_grid_question(*snapshot.run, 16);
  auto grid = std::make_shared<NeedleGrid>();
  grid->cells.resize(25);
  grid->cells[0].impossible = "16 needles do not fit";
  Findings findings;
  findings.set(question, {grid, {}, 0});
  const auto view = make_needle_grid();
  view->build(snapshot, {}, findings);
  CHECK(view->sentence() == "the first prompt with 16 needles is being read.");
  TextCanvas wide({900, 400}), narrow({330, 300});
  view->draw(wide, {0, 0, 900, 400}, {});
  const auto says = [](const TextCanvas& canvas, std::string_view text) {
    return std::ranges::count(canvas.texts(), text, &TextCanvas::Placed::text) > 0;
  };
  CHECK(says(wide, "the first prompt with 16 needles is being read"));
  view->build(snapshot, {}, answered(question, 0.5));
  view->draw(narrow, {0, 0, 330, 300}, {});
  CHECK(says(narrow, "280 of 480 answered right; 50 % read"));
}

TEST_CASE("needle grid: a cell with failures opens the first of them, its list any of them") {
  const Snapshot snapshot = trained_on(512);
  const auto view = make_needle_grid();
  view->build(snapshot, {}, answered(needle_grid_question(*snapshot.run, 16)));
  CHECK_FALSE(view->example({NeedleGridSheets::cells, 0, 0}));  // all are right
  const std::optional<NeedleExample> first = view->example({NeedleGridSheets::cells, 1, 2});
  REQUIRE(first);
  CHECK((first->needles == 16 && first->length == 512 && first->depth == 25 && first->haystack == "prose"));
  CHECK((first->index == 12 && first->place == 0));
  CHECK_FALSE(view->example({NeedleGridSheets::failures, 0}));
  view->set_mark({NeedleGridSheets::cells, 1, 2});
  CHECK(view->marked() == Hit(NeedleGridSheets::cells, 1, 2));
  CHECK(view->example({NeedleGridSheets::failures, 1})->index == 13);
  CHECK_FALSE(view->example({NeedleGridSheets::failures, 8}));
  TextCanvas canvas({1200, 600});
  view->draw(canvas, {0, 0, 1200, 600}, {light_theme(), 1});
  const auto drawn = [&](std::string_view text) { return std::ranges::count(canvas.texts(), text, &TextCanvas::Placed::text) > 0; };
  CHECK(drawn("12/20"));
  CHECK(drawn("512 words, 25 % deep"));
  CHECK(drawn("prompt 12: answer token 1 is wrong"));
}

TEST_CASE("needle grid: the mark moves by keys and stays inside") {
  const Snapshot snapshot = trained_on(512);
  const auto view = make_needle_grid();
  view->build(snapshot, {}, answered(needle_grid_question(*snapshot.run, 16)));
  CHECK_FALSE(view->marked());
  CHECK(view->step_mark(1, 0));
  CHECK(view->marked() == Hit(NeedleGridSheets::cells, 0, 0));
  CHECK(view->step_mark(1, 1));
  CHECK(view->marked() == Hit(NeedleGridSheets::cells, 1, 1));
  for (int i = 0; i < 9; ++i) view->step_mark(1, 1);
  CHECK(view->marked() == Hit(NeedleGridSheets::cells, 4, 4));
  view->build(snapshot, {}, answered(needle_grid_question(*snapshot.run, 16)));
  CHECK(view->marked() == Hit(NeedleGridSheets::cells, 4, 4));
}

TEST_CASE("needle grid: a quick look and a thorough one; a mark is of the cells that it was set in") {
  const Snapshot snapshot = trained_on(512);
  const auto view = make_needle_grid();
  REQUIRE(view->modes().size() == 3);
  const auto asked = [&](NeedleGridMode mode) {
    view->set_mode(static_cast<std::size_t>(mode));
    return std::get<NeedleGridQuestion>(view->questions(snapshot, {}).at(0));
  };
  view->build(snapshot, {}, answered(asked(NeedleGridMode::usual)));
  view->set_mark({NeedleGridSheets::cells, 1, 2});
  const NeedleGridQuestion thorough = asked(NeedleGridMode::thorough);
  CHECK((thorough.samples == 100 && thorough.lengths.size() == 5 && thorough.depths.size() == 5));
  view->build(snapshot, {}, answered(thorough));
  CHECK(view->marked() == Hit(NeedleGridSheets::cells, 1, 2));
  const NeedleGridQuestion quick = asked(NeedleGridMode::quick);
  CHECK(quick.samples == 5);
  CHECK(quick.lengths == std::vector<std::int64_t>{256, 512, 1024});
  CHECK(quick.depths == std::vector<int>{0, 50, 100});
  view->build(snapshot, {}, answered(quick));
  CHECK_FALSE(view->marked());
  CHECK(view->table().rows.size() == 3);
}

TEST_CASE("needle grid: what is missing is said") {
  CHECK(build_needle_grid({}, {}, {}, -1).message.headline == "No checkpoint is open");
  const Snapshot snapshot = trained_on(512);
  const NeedleGridQuestion question = needle_grid_question(*snapshot.run, 1);
  CHECK(build_needle_grid(snapshot, {}, question, -1).message);
  Findings refused;
  refused.set(question, {nullptr, "it does not know the word \"code\"", 1});
  CHECK(build_needle_grid(snapshot, refused, question, -1).message.detail == "It does not know the word \"code\"");
}

}  // namespace statescope::needle_grid_test

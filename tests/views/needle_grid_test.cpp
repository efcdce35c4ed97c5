#include "views/needle_grid.h"

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
  CHECK(view->describe() == "280 of 480 prompts with 16 needles are answered right; fewest with 2048 words, 0 % deep; 50 % read.");
  CHECK(view->table().columns[1] == "128 words");
  CHECK(view->table().rows[1] == std::vector<std::string>{"25", "20/20", "16/20", "12/20", "8/20", "4/20"});
  CHECK(view->table().rows[4][1] == "—");
  CHECK(
      view->tooltip(1) ==
      "256 words, 0 % deep: 16 of 20 prompts right\nchoose it to open a prompt that failed\nread apart from the run; the same: statescope "
      "eval small.h5 --task niah --length 256 --needles 16 --depth 0 --samples 20 --haystack prose");
  CHECK(view->tooltip(20).starts_with("128 words, 100 % deep: 2 needles do not fit"));
  CHECK(view->tooltip(25).empty());
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
  CHECK(view->describe() == "the first prompt with 16 needles is being read.");
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
  CHECK_FALSE(view->example(0));  // all are right
  const std::optional<NeedleExample> first = view->example(7);
  REQUIRE(first);
  CHECK((first->needles == 16 && first->length == 512 && first->depth == 25 && first->haystack == "prose"));
  CHECK((first->index == 12 && first->place == 0));
  const std::int64_t list = std::int64_t{1} << 40;
  CHECK_FALSE(view->example(list));
  view->set_mark(7);
  CHECK(view->marked() == 7);
  CHECK(view->example(list + 1)->index == 13);
  CHECK_FALSE(view->example(list + 8));
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
  CHECK(view->marked() == -1);
  CHECK(view->step_mark(1, 0));
  CHECK(view->marked() == 0);
  CHECK(view->step_mark(1, 1));
  CHECK(view->marked() == 6);
  for (int i = 0; i < 9; ++i) view->step_mark(1, 1);
  CHECK(view->marked() == 24);
  view->build(snapshot, {}, answered(needle_grid_question(*snapshot.run, 16)));
  CHECK(view->marked() == 24);
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
  view->set_mark(7);
  const NeedleGridQuestion thorough = asked(NeedleGridMode::thorough);
  CHECK((thorough.samples == 100 && thorough.lengths.size() == 5 && thorough.depths.size() == 5));
  view->build(snapshot, {}, answered(thorough));
  CHECK(view->marked() == 7);
  const NeedleGridQuestion quick = asked(NeedleGridMode::quick);
  CHECK(quick.samples == 5);
  CHECK(quick.lengths == std::vector<std::int64_t>{256, 512, 1024});
  CHECK(quick.depths == std::vector<int>{0, 50, 100});
  view->build(snapshot, {}, answered(quick));
  CHECK(view->marked() == -1);
  CHECK(view->table().rows.size() == 3);
}

TEST_CASE("needle grid: what is missing is said") {
  CHECK(build_needle_grid({}, {}, {}, -1).message.headline == "No checkpoint is open");
  const Snapshot snapshot = trained_on(512);
  const NeedleGridQuestion question = needle_grid_question(*snapshot.run, 1);
  CHECK(build_needle_grid(snapshot, {}, question, -1).message);
  Findings refused;
  refused.set(question, {nullptr, "it does not know the word \"code\"", 1});
  CHECK(build_needle_grid(snapshot, refused, question, -1).message.detail == "it does not know the word \"code\"");
}

}  // namespace statescope::needle_grid_test

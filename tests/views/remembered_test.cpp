#include "views/remembered.h"

#include <algorithm>
#include <cmath>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/sample_answers.h"
#include "tests/views/samples.h"
#include "views/sheets.h"

namespace statescope::remembered_test {
namespace {

const Cursor kCursor{.token = 2, .row = 0, .column = 5};

/// Of a layer whose states are coefficients.
Snapshot snapshot(std::int64_t tokens = 4) {
  Snapshot made = Sample({.tokens = tokens, .partitions = 0, .heads = 1, .rows = 3, .columns = 8, .memory = "state space"}).at(2);
  RunInfo run = *made.run;
  run.model.layers[0].mixer = "s4";
  made.run = std::make_shared<const RunInfo>(std::move(run));
  return made;
}

Findings answered() {
  Findings findings;
  findings.answer(RememberedQuestion{0, 5, 2, 0, 4}, Remembered{.entered = {3, 1, 2, 5}, .remembered = {1, 1, 1.5F, NAN}, .step = 0.5});
  return findings;
}

}  // namespace

TEST_CASE("remembered: the chosen column's channel, what came in beside what is remembered") {
  const auto view = make_remembered();
  CHECK(view->questions(snapshot(), kCursor) == std::vector<Question>{RememberedQuestion{0, 5, 2, 0, 4}});
  view->build(snapshot(), kCursor, answered());
  // Of tokens 1 and 2: √(0² + 0.5²) / √(1² + 2²)
  CHECK(view->sentence() == "Over the last 2 tokens what is remembered is off by 0.22 of the input's size · layer 0, channel 5.");
  CHECK(view->tooltip({RememberedSheets::tokens, 2}).find("remembered input = 1.5") != std::string::npos);
  CHECK(view->tooltip({RememberedSheets::tokens, 3}).find("not read yet") != std::string::npos);
  CHECK(view->on_hit({RememberedSheets::tokens, 1}).token == 1);
  CHECK(view->table().rows[0][2] == "3");
  TextCanvas canvas({600, 300});
  view->draw(canvas, {0, 0, 600, 300}, {light_theme(), 1});
  CHECK(
      std::ranges::any_of(canvas.texts(), [](const auto& placed) { return placed.text.find("what is remembered") != std::string::npos; }));
}

TEST_CASE("remembered: without a chosen column it is channel 0; what is missing is said") {
  CHECK(make_remembered()->questions(snapshot(), {.token = 2}) == std::vector<Question>{RememberedQuestion{0, 0, 2, 0, 4}});
  CHECK(build_remembered({}, {}, {}).message);
  CHECK(build_remembered(snapshot(), kCursor, {}).message.headline.starts_with("What is remembered in layer 0, channel 5"));
  const Snapshot gla = Sample({.tokens = 4, .partitions = 0}).at(2);
  CHECK(make_remembered()->questions(gla, kCursor).empty());
  CHECK(build_remembered(gla, kCursor, {}).message.headline == "Layer 0 (gla) keeps no coefficients of its input");
  CHECK(make_remembered()->questions(Sample({.tokens = 3}).attention_at(1), {}).empty());
}

TEST_CASE("remembered: nothing that came in has no part that is missing") {
  CHECK(std::isnan(forgotten_part({.message = {}, .place = {}, .title = {}, .tokens = {}, .entered = {0, 0}, .remembered = {0, 1}}, 2)));
}

}  // namespace statescope::remembered_test

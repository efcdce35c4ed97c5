#include "views/writes.h"
#include "views/sheets.h"

#include <cmath>

#include "tests/catch.h"
#include "tests/views/sample_answers.h"
#include "tests/views/samples.h"

namespace statescope::writes_test {
namespace {

const Cursor kCursor{.token = 2, .head = 1, .slot = 1};

Findings answered() {
  Findings findings;
  findings.answer(RowAgesQuestion{0, 1, 2}, RowAges{.slots = 2, .rows = 2, .written = {0, 2, -1, 1}, .halved = {-1, -1, -1, 3}});
  findings.answer(WriteSpreadQuestion{0, 1, 0, 3},
                  WriteSpreads{.slots = 2, .rows = 2, .effective = {2, 1, 1.5f, NAN, 1.25f, NAN}, .counted = {2, 1, 2, NAN, 2, NAN}});
  return findings;
}

Snapshot snapshot() { return Sample({.tokens = 3, .partitions = 1, .rows = 2}).at(2); }

}  // namespace

TEST_CASE("writes: ages of the rows, by slot") {
  const auto view = make_writes();
  CHECK(view->questions(snapshot(), kCursor) == std::vector<Question>{RowAgesQuestion{0, 1, 2}});
  view->build(snapshot(), kCursor, answered());
  CHECK(view->sentence() == "Half of the written rows were written in the last 2 tokens; not written yet: 1 · layer 0, head 1.");
  CHECK(view->table().rows == std::vector<std::vector<std::string>>{{"0", "0", "not written yet"}, {"1", "2", "1"}});
  CHECK(view->tooltip({WritesSheets::ages, 0, 1})
            .starts_with("key row 0, partition 1\ntime since the last write (tokens) = not written yet   since |ω_r| ≥ "));
  CHECK(view->tooltip({WritesSheets::ages, 0, 1}).find("\nlayer 0, head 1, after token 2\n") != std::string::npos);
  CHECK(view->tooltip({WritesSheets::ages, 1, 1}).starts_with("key row 1, partition 1\ntime since the last write (tokens) = 1"));
  CHECK(view->on_hit({WritesSheets::ages, 1, 1}).slot == 1);
  CHECK(view->on_hit({WritesSheets::ages, 1, 1}).row == 1);
  CHECK(view->tooltip({WritesSheets::ages, 2, 0}).empty());
  view->set_mode(1);
  view->build(snapshot(), kCursor, answered());
  CHECK(view->tooltip({WritesSheets::ages, 1, 1}).starts_with("key row 1, partition 1\ntime to half (tokens) = 3"));
}

TEST_CASE("writes: to how many rows each token writes, of the chosen slot") {
  const auto view = make_writes();
  view->set_mode(2);
  CHECK(view->questions(snapshot(), kCursor) == std::vector<Question>{WriteSpreadQuestion{0, 1, 0, 3}});
  view->build(snapshot(), kCursor, answered());
  CHECK(view->sentence() == "A token writes to 1.2 of 2 rows on average · layer 0, partition 1, head 1.");
  CHECK(view->tooltip({WritesSheets::tokens, 1}).find("effective rows (rows) = 1.25") != std::string::npos);
  CHECK(view->tooltip({WritesSheets::tokens, 0}).find("does not come here") != std::string::npos);
  CHECK(view->on_hit({WritesSheets::tokens, 1}).token == 1);
  CHECK(view->table().rows[1][2] == "1.25");
}

TEST_CASE("writes: what is missing is said") {
  CHECK(build_writes({}, {}, {}, WritesMode::written).message);
  CHECK(build_writes(snapshot(), kCursor, {}, WritesMode::spread).message.headline.starts_with("What was written in layer 0"));
  const auto view = make_writes();
  CHECK(view->questions(Sample({.tokens = 3}).attention_at(1), {}).empty());
}

}  // namespace statescope::writes_test

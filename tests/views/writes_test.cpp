#include "views/writes.h"

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
  CHECK(view->describe() == "Half of the rows were written within 1 tokens, 1 not yet · layer 0, head 1.");
  CHECK(view->table().rows == std::vector<std::vector<std::string>>{{"0", "0", "—"}, {"1", "2", "1"}});
  const std::int64_t cells = std::int64_t{1} << 40;
  CHECK(view->tooltip(cells + 1).starts_with("row 0 of partition 1: not written yet\nlayer 0, head 1, after token 2"));
  CHECK(view->tooltip(cells + 3).starts_with("row 1 of partition 1: last written 1 token ago"));
  CHECK(view->on_hit(cells + 3).slot == 1);
  CHECK(view->on_hit(cells + 3).row == 1);
  CHECK(view->tooltip(cells + 4).empty());
  view->set_mode(1);
  view->build(snapshot(), kCursor, answered());
  CHECK(view->tooltip(cells + 3).starts_with("row 1 of partition 1: decay took half within 3 tokens"));
}

TEST_CASE("writes: to how many rows each token writes, of the chosen slot") {
  const auto view = make_writes();
  view->set_mode(2);
  CHECK(view->questions(snapshot(), kCursor) == std::vector<Question>{WriteSpreadQuestion{0, 1, 0, 3}});
  view->build(snapshot(), kCursor, answered());
  CHECK(view->describe() == "A token writes to 1.2 of 2 rows on average · layer 0, partition 1, head 1.");
  CHECK(view->tooltip(1).find("writes to 1.25 rows") != std::string::npos);
  CHECK(view->tooltip(0).find("does not come here") != std::string::npos);
  CHECK(view->on_hit(1).token == 1);
  CHECK(view->table().rows[1][1] == "1.25");
}

TEST_CASE("writes: what is missing is said") {
  CHECK(build_writes({}, {}, {}, WritesMode::written).message);
  CHECK(build_writes(snapshot(), kCursor, {}, WritesMode::spread).message.headline.starts_with("What was written in layer 0"));
  const auto view = make_writes();
  CHECK(view->questions(Sample({.tokens = 3}).attention_at(1), {}).empty());
}

}  // namespace statescope::writes_test

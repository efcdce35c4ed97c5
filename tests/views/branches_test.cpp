#include "views/branches.h"
#include "views/sheets.h"

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/samples.h"

namespace statescope::branches_test {
namespace {

Snapshot snapshot_of(std::int64_t branch) {
  Snapshot snapshot = Sample({.tokens = 4}).at(2);
  auto run = std::make_shared<RunInfo>(*snapshot.run);
  run->branch = {.number = branch, .parent = branch - 1, .from = 1, .interventions = {"zero partition 2 at 0"}};
  snapshot.run = run;
  return snapshot;
}

Findings answered(const Snapshot& snapshot) {
  Findings findings;
  findings.answer(BranchPredictionsQuestion{}, BranchPredictions{.from = 1, .kl = {0.5f, 2, 0.25f}, .logits = {1, 4, 3}, .changed = 2});
  BranchStates states;
  for (std::size_t l = 0; l < snapshot.run->model.layers.size(); ++l) {
    states.left.push_back(4);
    states.here.push_back(5);
    states.difference.push_back(l == 0 ? 3 : 0);
  }
  findings.answer(BranchStatesQuestion{2}, states);
  return findings;
}

}  // namespace

TEST_CASE("branches: nothing is asked of the model's own run, which says what would fill the view") {
  const auto view = make_branches();
  const Snapshot own = snapshot_of(0), branch = snapshot_of(1);
  CHECK(view->questions(own, {.token = 2}).empty());
  Findings findings;
  findings.answer(BranchPredictionsQuestion{},
                  BranchPredictions{.from = 1, .kl = {0.5f, 2, 0.25f}, .logits = {1, 4, 3}, .changed = 2, .parted = 4});
  const std::string title = build_branches(branch, {.token = 2}, findings, BranchesMode::divergence).title;
  CHECK(title.find("from token 4 on they read different texts") != title.npos);
  CHECK(view->questions(branch, {.token = 2}) == std::vector<Question>{BranchPredictionsQuestion{}, BranchStatesQuestion{2}});
  view->build(own, {.token = 2});
  CHECK(view->describe().starts_with("This is the model's own run"));
  CHECK(view->table().rows.empty());
}

TEST_CASE("branches: the sentence says where predictions part, the curve begins where the branch does") {
  const Snapshot snapshot = snapshot_of(1);
  const BranchesData data = build_branches(snapshot, {.token = 2}, answered(snapshot), BranchesMode::divergence);
  CHECK(data.title ==
        "First changed prediction after token 2 “␣was”; KL up to 2 nat, after token 2 “␣was” · zero partition 2 at 0, against the model's "
        "own run");
  REQUIRE(data.values.size() == 4);
  CHECK(std::isnan(data.values[0]));
  CHECK((data.values[2] == 2 && data.logits[2] == 4));
  CHECK(data.layers[0].relative == 0.75f);
  CHECK(data.layers[0].difference == 3);
  const BranchesData logits = build_branches(snapshot_of(2), {.token = 2}, answered(snapshot), BranchesMode::logits);
  CHECK(logits.values[1] == 1);
  CHECK(logits.title.ends_with("against branch 1"));
}

TEST_CASE("branches: what has not been worked out yet says so, and what is known is shown") {
  const Snapshot snapshot = snapshot_of(1);
  const BranchesData data = build_branches(snapshot, {.token = 2}, {}, BranchesMode::divergence);
  CHECK(data.curve_message);
  CHECK(data.layers.empty());
  const auto view = make_branches();
  view->build(snapshot, {.token = 2}, answered(snapshot));
  CHECK(view->table().rows.size() >= 4);
  CHECK(view->tooltip({BranchesSheets::tokens, 0}).find("= the same on both branches") != std::string::npos);
  CHECK(view->tooltip({BranchesSheets::tokens, 1}).find("KL(p ‖ p′) (nat) = 0.5") != std::string::npos);
  CHECK(view->on_hit({BranchesSheets::tokens, 3}).token == 3);
  CHECK(view->on_hit({BranchesSheets::layers, 0}).layer == 0);
  TextCanvas canvas({800, 500});
  view->draw(canvas, {0, 0, 800, 500}, {light_theme(), 1});
}

}  // namespace statescope::branches_test

// Which experts scores choose that are each for themselves.
#include "engine/model/expert_choice.h"

#include "tests/catch.h"

namespace statescope::test::expert_choice_test {
namespace {

using Ids = std::vector<std::int32_t>;

ExpertsPlan plan(std::int64_t count, std::int64_t chosen) {
  ExpertsPlan plan;
  plan.count = count;
  plan.chosen = chosen;
  return plan;
}

}  // namespace

TEST_CASE("expert choice: the correction chooses, the scores order; ties go to the lowest index") {
  const std::vector<float> scores{0.5F, 0.2F, 0.9F, 0.5F}, none, correction{0, 0.8F, 0, 0};
  CHECK(chosen_by_scores(scores, plan(4, 2), none) == Ids{2, 0});
  CHECK(chosen_by_scores(scores, plan(4, 2), correction) == Ids{2, 1});
}

TEST_CASE("expert choice: of groups those count whose two best scores have the largest sum") {
  const std::vector<float> scores{0.9F, 0.1F, 0.6F, 0.5F, 0.4F, 0.8F}, none;
  ExpertsPlan grouped = plan(6, 2);
  grouped.groups = 3;
  grouped.chosen_groups = 1;
  CHECK(chosen_by_scores(scores, grouped, none) == Ids{5, 4});
  grouped.chosen_groups = 2;
  CHECK(chosen_by_scores(scores, grouped, none) == Ids{5, 2});
}

}  // namespace statescope::test::expert_choice_test

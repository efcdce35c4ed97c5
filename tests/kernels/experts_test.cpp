// Which experts scores choose that are each for themselves, and what the chosen ones of a token put out.
#include "kernels/ops/experts/experts.h"

#include "tests/catch.h"
#include "tests/kernels/random_tensors.h"

namespace statescope::experts_test {
using namespace statescope::testing;

namespace {

using Ids = std::vector<std::int32_t>;

float logit(float score) { return std::log(score / (1 - score)); }

struct Chosen {
  Ids ids;
  std::vector<float> weights;
};

/// By one token with these scores.
Chosen chosen(const std::vector<float>& scores, std::int64_t k, const std::vector<float>& correction, const ScoredChoice& how) {
  const std::int64_t E = std::ssize(scores);
  std::vector<float> logits;
  for (const float score : scores) logits.push_back(logit(score));
  Chosen all{Ids(static_cast<std::size_t>(k), -1), std::vector<float>(scores.size(), NAN)};
  ConstTensor added;
  if (!correction.empty()) added = {correction.data(), DType::f32, {E}};
  score_experts({Tensor(all.weights.data(), DType::f32, {1, E}), Tensor(all.ids.data(), DType::i32, {1, k}),
                 ConstTensor(logits.data(), DType::f32, {1, E}), added, how});
  return all;
}

}  // namespace

TEST_CASE("experts by scores: the correction chooses, the scores order; ties go to the lowest index") {
  const std::vector<float> scores{0.5F, 0.2F, 0.9F, 0.5F}, correction{0, 0.8F, 0, 0};
  CHECK(chosen(scores, 2, {}, {}).ids == Ids{2, 0});
  CHECK(chosen(scores, 2, correction, {}).ids == Ids{2, 1});
}

TEST_CASE("experts by scores: of groups those count whose two best scores have the largest sum") {
  const std::vector<float> scores{0.9F, 0.1F, 0.6F, 0.5F, 0.4F, 0.8F};
  CHECK(chosen(scores, 2, {}, {.groups = 3, .chosen_groups = 1}).ids == Ids{5, 4});
  CHECK(chosen(scores, 2, {}, {.groups = 3, .chosen_groups = 2}).ids == Ids{5, 2});
}

TEST_CASE("experts by scores: weights are the scores, shared among the chosen where the plan says so") {
  const std::vector<float> scores{0.5F, 0.25F, 0.75F};
  const Chosen shared = chosen(scores, 2, {}, {.eps = 0.5F, .factor = 3}), own = chosen(scores, 2, {}, {.renormalise = false, .factor = 2});
  CHECK(shared.weights[2] == Approx(3 * 0.75 / (0.5 + 0.75 + 0.5)));
  CHECK(shared.weights[0] == Approx(3 * 0.5 / (0.5 + 0.75 + 0.5)));
  CHECK(own.weights[2] == Approx(1.5));
}

TEST_CASE("expert MLPs: the weighted sum of the chosen MLPs is added, with a gate and without") {
  constexpr std::int64_t E = 5, D = 12, I = 7, k = 3;
  Random random(3);
  const Numbers x = random.uniform({1, D}), gate = random.uniform({E, I, D}), up = random.uniform({E, I, D}),
                down = random.uniform({E, D, I}), weights = random.uniform({1, E}), before = random.uniform({1, D});
  const Ids ids{4, 0, 2};
  for (const bool gated : {true, false}) {
    Numbers y = before;
    const auto first = [](const Numbers& all) { return ConstTensor(all.values.data(), DType::f32, {all.shape[1], all.shape[2]}); };
    expert_mlps({y.view(), x.view(), ConstTensor(ids.data(), DType::i32, {1, k}), weights.view(), gated ? first(gate) : ConstTensor(),
                 first(up), first(down), I * D * 4, I * D * 4});
    for (std::int64_t d = 0; d < D; ++d) {
      double expected = before[d];
      for (const std::int32_t e : ids) {
        for (std::int64_t i = 0; i < I; ++i) {
          double z = 0, u = 0;
          for (std::int64_t c = 0; c < D; ++c) {
            z += static_cast<double>(gate[(e * I + i) * D + c]) * x[c];
            u += static_cast<double>(up[(e * I + i) * D + c]) * x[c];
          }
          const double h = gated ? z / (1 + std::exp(-z)) * u : std::max(u, 0.0) * std::max(u, 0.0);
          expected += weights[e] * static_cast<double>(down[(e * D + d) * I + i]) * h;
        }
      }
      CHECK(y[d] == Approx(expected).epsilon(1e-5));
    }
  }
}

}  // namespace statescope::experts_test

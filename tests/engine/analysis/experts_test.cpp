// Which experts tokens go to: what is worked out from a recording is what the model chose as it read.
#include <numeric>

#include "engine/answers/answers.h"
#include "tests/catch.h"
#include "tests/engine/analysis/evidence_of.h"

namespace statescope::test::experts_test {
namespace {

constexpr std::int64_t kTokens = 37;

/// What the model shows of itself while it reads.
struct Read final : Observer {
  std::map<std::pair<std::int64_t, std::string>, std::vector<float>> rows;

  explicit Read(Model& model) {
    ModelState state = model.start();
    const std::vector<std::int32_t> ids = some_ids(kTokens);
    const Buffer memory = model.backend().allocate(static_cast<std::size_t>(kTokens * model.hidden()) * sizeof(float));
    model.forward(state, ids, {.prompt_length = kTokens}, Tensor(memory.get(), DType::f32, {kTokens, model.hidden()}), this);
  }
  void residual(std::int64_t, ConstTensor) override {}
  void channel(std::int64_t layer, std::string_view name, ConstTensor values) override {
    std::vector<float>& all = rows[{layer, std::string(name)}];
    for (std::int64_t t = 0; t < values.rows(); ++t) {
      if (values.dtype == DType::i32) {
        all.insert(all.end(), values.i32(t), values.i32(t) + values.row_size());
      } else {
        all.insert(all.end(), values.f32(t), values.f32(t) + values.row_size());
      }
    }
  }
  bool wants(std::string_view name) const override { return name == "moe_selected" || name == "moe_weights"; }
};

}  // namespace

TEST_CASE("answers: the experts of every family are those that the model chose as it read, with their weights") {
  int layers = 0;
  for (const auto& [name, config] : small_models()) {
    SmallEvidence run(config, kTokens);
    const Read read(*run.model);
    for (std::int64_t layer = 0; layer < run.model->layers(); ++layer) {
      INFO(name << ", layer " << layer);
      const LayerInfo& info = run.evidence.layer(layer);
      const Experts all = answer(ExpertsQuestion{layer, 0, kTokens}, run.evidence);
      CHECK(all.experts == info.experts);
      CHECK((all.experts > 0) == read.rows.contains({layer, "moe_selected"}));
      if (all.experts == 0) continue;
      ++layers;
      REQUIRE(std::ssize(all.expert) == kTokens * info.chosen_experts);
      const std::vector<float>&ids = read.rows.at({layer, "moe_selected"}), &weights = read.rows.at({layer, "moe_weights"});
      CHECK(std::vector<float>(all.expert.begin(), all.expert.end()) == ids);
      CHECK(relative_error(all.weight, weights) < 1e-6);
      for (std::size_t i = 1; i < weights.size(); ++i) {
        if (i % static_cast<std::size_t>(info.chosen_experts) != 0) CHECK(weights[i] <= weights[i - 1]);
      }
    }
  }
  CHECK(layers > 10);
}

TEST_CASE("answers: the load of experts is counted up to the window; windows are checked") {
  SmallEvidence run(qwen_config("qwen3_next"), kTokens);
  const Experts whole = answer(ExpertsQuestion{0, 0, kTokens}, run.evidence), late = answer(ExpertsQuestion{0, 20, kTokens}, run.evidence);
  CHECK(std::accumulate(whole.load.begin(), whole.load.end(), std::int64_t{0}) == 0);
  std::vector<std::int64_t> counted(static_cast<std::size_t>(whole.experts));
  for (std::int64_t i = 0; i < 20 * whole.chosen; ++i) ++counted[static_cast<std::size_t>(whole.expert[static_cast<std::size_t>(i)])];
  CHECK(late.load == counted);
  CHECK(std::ranges::equal(late.expert, std::span(whole.expert).subspan(static_cast<std::size_t>(20 * whole.chosen))));
  CHECK_THROWS_WITH(answer(ExpertsQuestion{0, 30, 40}, run.evidence), "no window of tokens 30 to 40");
}

}  // namespace statescope::test::experts_test

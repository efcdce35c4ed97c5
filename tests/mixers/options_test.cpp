// Options and sizes that no reference case has.
#include <cmath>
#include <numeric>

#include "engine/error.h"
#include "tests/catch.h"
#include "tests/engine/model/golden.h"
#include "tests/engine/model/small_models.h"

namespace statescope::test::options_test {
namespace {

/// Logits [T, 97] of 24 tokens, of the random model of a config.
std::vector<float> logits_of(const json& config) {
  const auto model = Model::load(random_checkpoint(Config(config), 7), make_cpu_backend(1));
  constexpr std::int64_t T = 24;
  std::vector<std::int32_t> ids;
  for (std::int64_t t = 0; t < T; ++t) ids.push_back(static_cast<std::int32_t>(t * 31 % 97));
  std::vector<float> hidden(static_cast<std::size_t>(T * model->hidden())),
      logits(static_cast<std::size_t>(T * model->vocab()), std::nanf(""));
  Tensor x(hidden.data(), DType::f32, {T, model->hidden()});
  ModelState state = model->start();
  model->forward(state, ids, {.chunk_size = 8, .prompt_length = T}, x);
  model->logits(Tensor(logits.data(), DType::f32, {T, model->vocab()}), x);
  return logits;
}

bool finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

}  // namespace

TEST_CASE("a hybrid's window counts in MoM as in every family") {
  const json mom{{"head_dim", 12}, {"num_memories", 3}, {"topk", 2}};
  const json full{{"attn", {{"layers", {1}}, {"num_heads", 4}}}}, window{{"attn", {{"layers", {1}}, {"num_heads", 4}, {"window_size", 2}}}};
  for (const char* family : {"mom", "gla"}) {
    INFO(family);
    const json base = small_config(family, std::string(family) == "mom" ? mom : json::object());
    CHECK(relative_error(logits_of(with(base, full)), logits_of(with(base, window))) > 1e-3);
  }
}

TEST_CASE("SLA at temperature 0 is uniform, which scales q and k alone") {
  const std::vector<float> logits = logits_of(small_config("gla", sla({{"temperature", 0.0}})));
  CHECK(finite(logits));
}

TEST_CASE("the joint softmax of SSE v1 shares the mass among the partitions that are written") {
  // One writer: its share is 1 however many readers there are, and so is that of the 1/W form.
  const json v1{{"sse_formulation", "v1"}, {"num_reader", 2}};
  const std::vector<float> joint = logits_of(sse_config("gla", with(v1, {{"v1_joint_softmax", true}})));
  CHECK(relative_error(joint, logits_of(sse_config("gla", v1))) < 1e-5);
}

TEST_CASE("elementwise_affine false takes the weight from the mixer's own norm, and from no other") {
  for (const char* family : {"linear_attn", "gsa", "gla", "retnet", "transformer"}) {
    INFO(family);
    const json config = small_config(family, {{"elementwise_affine", false}});
    for (const TensorSpec& spec : model_tensors(Config(config))) {
      const bool inner = spec.name.find(".attn.") != std::string::npos;
      CHECK((!inner || spec.name.find("norm") == std::string::npos));
    }
    CHECK(model_tensors(Config(small_config(family))).size() >= model_tensors(Config(config)).size());
    CHECK(finite(logits_of(config)));
  }
}

TEST_CASE("a norm's weight that is in the file is used whatever elementwise_affine says") {
  Editable said(small_config("gla"));
  said.each("g_norm_swish_gate.weight", [](std::span<float> w) { std::iota(w.begin(), w.end(), 1.0F); });
  Editable unsaid(*said.checkpoint());
  unsaid.set({{"elementwise_affine", false}});
  const std::vector<std::int32_t> ids = some_ids(12);
  CHECK(test::logits_of(*said.model(), ids) == test::logits_of(*unsaid.model(), ids));
}

TEST_CASE("the output gate of Gated DeltaNet is silu or sigmoid, as the config says") {
  const json base{{"head_dim", 16}};
  const std::vector<float> silu = logits_of(small_config("gated_deltanet", base));
  CHECK(silu == logits_of(small_config("gated_deltanet", with(base, {{"output_gate_activation", "silu"}}))));
  CHECK(relative_error(logits_of(small_config("gated_deltanet", with(base, {{"output_gate_activation", "sigmoid"}}))), silu) > 1e-2);
}

TEST_CASE("hidden_ratio null means 4, absent means the family's own") {
  const auto rows = [](const json& config) {
    for (const TensorSpec& spec : model_tensors(Config(config))) {
      if (spec.name == "model.layers.0.mlp.gate_proj.weight") return spec.shape[0];
    }
    return std::int64_t{0};
  };
  json config = small_config("retnet", {{"hidden_size", 1024}});
  config.erase("intermediate_size");
  CHECK(rows(config) == 1536);
  config["hidden_ratio"] = nullptr;
  CHECK(rows(config) == 2816);
}

TEST_CASE("a state that no memory could hold is refused before anything is written") {
  MixerLayout layout;
  const std::int64_t large = std::int64_t{1} << 22;
  layout.memory.push_back({"recurrent", {large, 1, large, large}});  // 2^66 wraps to 2^2 in 64 bits
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  CHECK_THROWS_AS(make_state(layout, *backend), Error);
}

TEST_CASE("many layers of a long config cost no copies of it") {
  json config = small_config("gla", {{"num_hidden_layers", 10000}, {"_name_or_path", std::string(1 << 20, 'x')}});
  CHECK(plan_model(Config(config)).layers.size() == 10000);
}

}  // namespace statescope::test::options_test

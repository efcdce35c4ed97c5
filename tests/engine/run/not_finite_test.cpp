// The first number that is none: of the weights by tensor and element, of a run by layer and token.
#include "engine/run/not_finite.h"

#include <cmath>
#include <limits>

#include "engine/run/run.h"
#include "engine/run/scoring.h"
#include "tests/catch.h"
#include "tests/engine/model/small_models.h"

namespace statescope::test::not_finite_test {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

NotFinite found_in(const Editable& checkpoint, const std::vector<std::int32_t>& ids) {
  return not_finite(Model::load(checkpoint.checkpoint(), make_cpu_backend(1)), ids);
}

}  // namespace

TEST_CASE("sound models have no number that is none") {
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    const NotFinite found = found_in(Editable(small.config), some_ids(40));
    INFO(found.text());
    CHECK(!found);
    CHECK(found.text().empty());
    CHECK(to_json(found).is_null());
  }
}

TEST_CASE("a weight is named with its element, what it makes of a run with layer and token") {
  Editable checkpoint(small_config("gla"));
  const std::string name = "model.layers.1.attn.v_proj.weight";
  const std::int64_t columns = checkpoint.tensor(name).shape[1];
  checkpoint.floats(name)[static_cast<std::size_t>(3 * columns + 5)] = kNaN;
  const NotFinite found = found_in(checkpoint, some_ids(20));
  REQUIRE(found.weight);
  CHECK(found.weight->tensor == name);
  CHECK(found.weight->element == std::vector<std::int64_t>{3, 5});
  CHECK(std::isnan(found.weight->value));
  REQUIRE(found.activation);
  CHECK(found.activation->layer == 1);
  CHECK(found.activation->token == 0);
  CHECK(found.activation->quantity == "residual stream");
  CHECK(found.text() ==
        "tensor " + name + ", element [3, 5], is NaN; the model computes NaN from layer 1 on, at token 0 (residual stream)");
  CHECK(to_json(found) == json{{"weight", {{"tensor", name}, {"element", {3, 5}}, {"value", "nan"}}},
                               {"activation", {{"layer", 1}, {"token", 0}, {"quantity", "residual stream"}, {"value", "nan"}}}});
}

TEST_CASE("of many elements in many pieces the first is found, in every stored type") {
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    Editable checkpoint(small_config("gla", {{"vocab_size", 40000}}));
    StoredTensor& head = checkpoint.tensor("lm_head.weight");
    std::vector<std::byte> bytes(static_cast<std::size_t>(head.size()) * size_of(type));
    head.dtype = type;
    head.data = bytes.data();
    const auto put = [&](std::int64_t at, std::uint32_t bits) {
      std::memcpy(bytes.data() + static_cast<std::size_t>(at) * size_of(type), &bits, size_of(type));
    };
    const std::uint32_t infinite = type == DType::f32 ? 0xff800000 : type == DType::f16 ? 0xfc00 : 0xff80;
    put(2'000'001, infinite | 1);
    put(1'234'567, infinite);
    const auto found = find_not_finite(*checkpoint.model());
    REQUIRE(found);
    CHECK(found->element == std::vector<std::int64_t>{1'234'567 / 64, 1'234'567 % 64});
    CHECK(found->value == -kInfinity);
  }
}

TEST_CASE("an embedding that is not finite is found where its token stands") {
  Editable checkpoint(small_config("gla"));
  checkpoint.floats("model.embeddings.weight")[7 * 64] = kInfinity;
  const NotFinite found = found_in(checkpoint, {1, 2, 3, 7, 1});
  REQUIRE(found.activation);
  CHECK(found.activation->quantity == "embedding");
  CHECK(found.activation->token == 3);
  CHECK(found.text().find("the embedding of token 3 is infinity") != std::string::npos);
  const NotFinite unread = found_in(checkpoint, {1, 2, 3});
  CHECK(unread.weight);
  CHECK(!unread.activation);
}

TEST_CASE("a head that is not finite is found, a tensor that no model reads may be what it likes") {
  Editable checkpoint(small_config("gla"));
  checkpoint.add("model.layers.0.attn.rotary.inv_freq", {2}, {0, -kInfinity});
  CHECK(!found_in(checkpoint, some_ids(5)));
  checkpoint.floats("model.norm.weight")[0] = kNaN;
  const NotFinite found = found_in(checkpoint, some_ids(5));
  REQUIRE(found.activation);
  CHECK(found.activation->quantity == "logits");
  CHECK(to_json(found)["activation"]["layer"] == "head");
}

TEST_CASE("an expert that no token went to plays no part, one that some token went to is named") {
  for (const std::int64_t expert : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{3}}) {
    Editable checkpoint(qwen_config("qwen3_next"));
    const std::string name = "model.layers.0.mlp.experts." + std::to_string(expert) + ".up_proj.weight";
    // The first two have the largest scores of every token, for all weights of the others' scores are equal.
    for (float& weight : checkpoint.floats("model.layers.0.mlp.gate.weight")) weight = 0;
    checkpoint.floats(name)[7] = kNaN;
    const std::shared_ptr<Model> model = Model::load(checkpoint.checkpoint(), make_cpu_backend(1));
    const NotFinite found = not_finite(model, some_ids(20));
    INFO("expert " << expert);
    CHECK(found.weight.has_value() == (expert < 2));
    CHECK(found.activation.has_value() == (expert < 2));
    REQUIRE(find_not_finite(*model));
    CHECK(find_not_finite(*model)->tensor == name);
    CHECK(!find_not_finite(*model, LookedThrough::all_but_experts));
  }
}

TEST_CASE("numbers that become infinite on the way are found without a weight") {
  Editable checkpoint(small_config("gla"));
  checkpoint.fill("model.layers.0.mlp.down_proj.weight", 3e38F).fill("model.layers.0.mlp.up_proj.weight", 3e38F);
  const NotFinite found = found_in(checkpoint, some_ids(5));
  CHECK(!found.weight);
  REQUIRE(found.activation);
  CHECK(found.activation->layer == 0);
  CHECK(found.activation->token == 0);
}

TEST_CASE("there is no score of numbers that are none") {
  Editable checkpoint(small_config("gla"));
  checkpoint.floats("model.embeddings.weight")[7 * 64] = kNaN;
  const auto scored = [&](std::vector<std::int32_t> ids) {
    ScorerPool pool(checkpoint.checkpoint(), {.threads = 1});
    pool.score(1, [&](std::int64_t) { return ScoredSequence{ids, 3, {{2, 1}}}; });
  };
  for (const std::vector<std::int32_t>& ids : {std::vector<std::int32_t>{1, 7, 2}, std::vector<std::int32_t>{1, 2, 3}}) {
    try {
      scored(ids);
      FAIL("a score was given");
    } catch (const NotFiniteError& error) {
      const std::string what = error.what();
      INFO(what);
      CHECK(what.find("tensor model.embeddings.weight, element [7, 0], is NaN") != what.npos);
      CHECK(what.ends_with("so there is no score"));
    }
  }
}

}  // namespace statescope::test::not_finite_test

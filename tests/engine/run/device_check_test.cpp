// Two devices beside each other: what agrees, and the first named value that does not.
#include "engine/run/device_check.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/error.h"
#include "kernels/device.h"
#include "tests/catch.h"
#include "tests/engine/model/small_models.h"
#include "tests/kernels/device_cases.h"

namespace statescope::test::device_check_test {
namespace {

std::shared_ptr<Model> model_of(const Editable& checkpoint, Precision precision = Precision::float32) {
  return Model::load(checkpoint.checkpoint(), make_cpu_backend(1, precision));
}

/// How far rounding reaches in this model: what the CPU's values move by when the last bit of its weights does.
double reach_of_rounding(const Editable& checkpoint) {
  Editable moved(*checkpoint.checkpoint());
  moved.each("weight", [](std::span<float> weights) {
    for (std::size_t i = 0; i < weights.size(); i += 2) weights[i] *= 1 + std::numeric_limits<float>::epsilon();
  });
  const DeviceCheck check = check_devices(*model_of(checkpoint), *model_of(moved), some_ids(70), 6, 1);
  const auto by_reach = [](const DeviceDifference& a, const DeviceDifference& b) { return a.relative < b.relative; };
  return std::ranges::max(check.largest, by_reach).relative;
}

}  // namespace

TEST_CASE("devices: a device agrees with itself to the bit, in every family") {
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    const Editable checkpoint(small.config);
    const auto one = model_of(checkpoint), other = model_of(checkpoint);
    const DeviceCheck check = check_devices(*one, *other, some_ids(40), 6, 0);
    CHECK(!check.first);
    CHECK(check.tokens == 34);
    CHECK(check.steps == 6);
    CHECK(check.largest.size() == static_cast<std::size_t>(one->layers() + 1));
    for (const DeviceDifference& each : check.largest) {
      CHECK(!each.name.empty());
      CHECK(each.relative == 0);
    }
  }
}

TEST_CASE("devices: the first value that differs is named, with layer, token and element") {
  Editable sound(small_config("gla")), changed(small_config("gla"));
  changed.floats("model.layers.1.attn.v_proj.weight")[0] += 0.5f;  // v of layer 1, its first column
  const auto one = model_of(sound), other = model_of(changed);
  const DeviceCheck check = check_devices(*one, *other, some_ids(20), 4, 1e-5);
  REQUIRE(check.first);
  CHECK(check.first->layer == 1);
  CHECK(check.first->name == "v");
  CHECK(check.first->element.back() == 0);
  CHECK(check.largest[0].relative == 0);
  CHECK(check.first->text(2).starts_with("layer 1, v after token "));
  CHECK(check.steps == 0);  // nothing is read behind it
}

TEST_CASE("devices: what the step of a token alone computes otherwise is found there") {
  Editable sound(small_config("gla")), changed(small_config("gla"));
  changed.floats("lm_head.weight")[7] += 0.5f;
  const auto one = model_of(sound), other = model_of(changed);
  const DeviceCheck check = check_devices(*one, *other, some_ids(20), 4, 1e-5);
  REQUIRE(check.first);
  CHECK(check.first->layer == 2);
  CHECK(check.first->name == "logits");
  CHECK(check.first->stepwise);
  CHECK(check.first->token == 16);
  CHECK(check.tokens == 16);
  CHECK(check.first->text(2).starts_with("after the last layer, logits after token 16 [0], in a token's step: "));
}

TEST_CASE("devices: rounded products are apart by what bfloat16 has, no more") {
  const Editable checkpoint(small_config("gla"));
  const auto one = model_of(checkpoint), other = model_of(checkpoint, Precision::bfloat16);
  CHECK(check_devices(*one, *other, some_ids(40), 4, 1e-6).first);
  const DeviceCheck check = check_devices(*one, *other, some_ids(40), 4, 0.1);
  CHECK(!check.first);
  CHECK(check.largest.back().relative > 1e-5);
}

TEST_CASE("devices: a number that is none differs, and a reading can be cancelled") {
  Editable sound(small_config("gla")), broken(small_config("gla"));
  broken.floats("model.layers.0.attn.q_proj.weight")[0] = std::nanf("");
  const auto one = model_of(sound), other = model_of(broken);
  const DeviceCheck check = check_devices(*one, *other, some_ids(20), 4, 1);
  REQUIRE(check.first);
  CHECK(check.first->layer == 0);
  CHECK(std::isnan(check.first->other));
  CHECK_THROWS_AS(check_devices(*one, *one, some_ids(20), 4, 1, [](double) { return false; }), Cancelled);
  CHECK_THROWS_AS(check_devices(*one, *other, std::vector<std::int32_t>{97}, 4, 1), Error);
}

TEST_CASE("device: CUDA agrees with the CPU in every family, by name", "[device]") {
  const std::shared_ptr<Backend> cuda = testing::cuda_backend();
  if (!cuda) return;
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    const Editable checkpoint(small.config);
    const auto one = model_of(checkpoint), other = Model::load(checkpoint.checkpoint(), cuda);
    const DeviceCheck check = check_devices(*one, *other, some_ids(70), 6, std::max(1e-4, 8 * reach_of_rounding(checkpoint)));
    if (check.first) FAIL(check.first->text(one->layers()));
  }
}

}  // namespace statescope::test::device_check_test

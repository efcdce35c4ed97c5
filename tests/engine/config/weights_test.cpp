// Weights that are loaded together: where they lie, and that they are what was stored.
#include "engine/config/weights.h"

#include "engine/error.h"
#include "tests/catch.h"
#include "tests/engine/model/golden.h"
#include "tests/kernels/device_cases.h"

namespace statescope::test::weights_test {
namespace {

/// Three matrices; the second one's bytes are no multiple of 64.
struct Stored {
  std::vector<float> numbers = std::vector<float>(512);
  std::vector<TensorSpec> specs{{"a", {3, 32}}, {"b", {1, 5}}, {"c", {2, 16}}};
  std::vector<StoredTensor> tensors;

  Stored() {
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
    const float* next = numbers.data();
    for (const TensorSpec& spec : specs) {
      tensors.push_back({spec.name, DType::f32, spec.shape, reinterpret_cast<const std::byte*>(next)});
      next += 100;
    }
  }
};

}  // namespace

TEST_CASE("weights that are loaded together stay where they are on the CPU") {
  const Stored stored;
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  StoredWeights weights(stored.tensors, *backend);
  const std::vector<ConstTensor> loaded = weights.matrices(stored.specs);
  REQUIRE(loaded.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(loaded[i].data == stored.tensors[i].data);
  CHECK(weights.unused().empty());
  CHECK_THROWS_AS(weights.matrices({{"a", {3, 32}}, {"d", {1, 1}}}), Error);
}

TEST_CASE("weights of float8 in another order of rows are widened first, each with its own scale") {
  const std::vector<std::uint8_t> bits{0x38, 0x40, 0x30, 0xB8, 0x3C, 0x44};  // 1, 2, 1/2, −1, 3/2, 3
  const std::vector<float> factors{10, 100};                                 // of rows 0 and 1, of row 2
  const BlockScales scales{factors.data(), 2, 2, 1};
  StoredTensor tensor{"a", DType::f8, {3, 2}, reinterpret_cast<const std::byte*>(bits.data())};
  tensor.scales = &scales;
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  StoredWeights weights({tensor}, *backend);
  const std::vector<std::int64_t> order{2, 0, 1};
  const ConstTensor found = weights.matrix_in_order("a", {3, 2}, order);
  CHECK(found.dtype == DType::f32);
  CHECK(std::vector<float>(found.f32(), found.f32() + 6) == std::vector<float>{150, 300, 10, 20, 5, -10});
}

TEST_CASE("device: weights that are loaded together lie side by side", "[device]") {
  const std::shared_ptr<Backend> device = testing::cuda_backend();
  if (!device) return;
  const Stored stored;
  StoredWeights weights(stored.tensors, *device);
  const std::vector<ConstTensor> loaded = weights.matrices(stored.specs);
  REQUIRE(loaded.size() == 3);
  const auto at = [&](std::size_t i) { return static_cast<const std::byte*>(loaded[i].data); };
  CHECK(at(1) == at(0) + stored.tensors[0].bytes());
  CHECK(at(2) == at(1) + 64);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto* const from = reinterpret_cast<const float*>(stored.tensors[i].data);
    CHECK(host_copy(*device, loaded[i]) == std::vector<float>(from, from + stored.tensors[i].size()));
  }
}

}  // namespace statescope::test::weights_test

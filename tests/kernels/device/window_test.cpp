// Rows that a window draws from where they were computed: texels against the device's numbers, bit for bit.
#include <cstring>
#include <thread>

#include "kernels/device_rows.h"
#include "tests/kernels/device_cases.h"
#include "tests/kernels/egl_context.h"

namespace statescope::device_window_test {
namespace {

using testing::EglContext;
using testing::FloatTexture;
using testing::PixelBuffer;

/// A state of several heads on the device; any bits may stand in it.
struct State {
  std::int64_t slots = 5, heads = 3, K = 24, V = 17;
  std::vector<float> numbers;  // [slots, H, K, V]
  Buffer memory;
  Tensor tensor;

  explicit State(Backend& backend) {
    std::mt19937 random(11);
    numbers.resize(static_cast<std::size_t>(slots * heads * K * V));
    for (float& x : numbers) x = std::bit_cast<float>(static_cast<std::uint32_t>(random()) & 0xff7fffffU);  // no NaN
    memory = backend.allocate(numbers.size() * sizeof(float));
    tensor = Tensor(memory.get(), DType::f32, {slots, heads, K, V});
    backend.upload(tensor, ConstTensor(numbers.data(), DType::f32, tensor.shape));
  }
  ConstTensor head(std::int64_t h) const { return tensor.columns(h * K * V, {K, V}); }
  std::vector<float> values(std::int64_t slot, std::int64_t h) const {
    const auto first = numbers.begin() + (slot * heads + h) * K * V;
    return {first, first + K * V};
  }
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Null, and the test case says so, where nothing can be shared.
std::unique_ptr<EglContext> gpu_context() {
  std::string why;
  auto context = EglContext::on_cuda_device(0, why);
  if (!context) WARN("skipped: " << why);
  return context;
}

}  // namespace

TEST_CASE("device: one head's rows become textures to the bit, as they were when they were kept", "[device]") {
  const std::shared_ptr<Backend> device = testing::cuda_backend();
  if (!device) return;
  State state(*device);
  const std::shared_ptr<const DeviceRows> rows = device->rows_for_window(state.head(1));
  REQUIRE(rows);
  CHECK(rows->bytes() == static_cast<std::size_t>(state.slots * state.K * state.V) * sizeof(float));
  device->fill(state.tensor, 0);
  CHECK_FALSE(rows->share(1));  // there is no context

  const std::unique_ptr<EglContext> context = gpu_context();
  if (!context) return;
  const PixelBuffer buffer(*context, rows->bytes());
  const std::unique_ptr<SharedBuffer> shared = rows->share(buffer.name());
  REQUIRE(shared);
  REQUIRE(shared->take(*rows));
  const FloatTexture texture(*context, state.K, state.V);
  buffer.bind(buffer.name());
  for (std::int64_t slot = 0; slot < state.slots; ++slot) {
    texture.fill(reinterpret_cast<const void*>(static_cast<std::uintptr_t>(slot * state.K * state.V) * sizeof(float)));
    CHECK(same_bits(texture.texels(), state.values(slot, 1)));
  }
  buffer.bind(0);

  device->upload(state.tensor, ConstTensor(state.numbers.data(), DType::f32, state.tensor.shape));
  const std::shared_ptr<const DeviceRows> others = device->rows_for_window(state.head(2));
  REQUIRE(shared->take(*others));  // the same buffer again, while the texture has what it had
  CHECK(same_bits(texture.texels(), state.values(state.slots - 1, 1)));
  buffer.bind(buffer.name());
  texture.fill(nullptr);
  buffer.bind(0);
  CHECK(same_bits(texture.texels(), state.values(0, 2)));

  const PixelBuffer small(*context, rows->bytes() - 1);
  const std::unique_ptr<SharedBuffer> without_room = rows->share(small.name());
  REQUIRE(without_room);
  CHECK_FALSE(without_room->take(*rows));
  CHECK(shared->take(*rows));  // a refusal spoils nothing
}

TEST_CASE("device: rows for a window outlast their backend, and are let go of by another thread while work is captured", "[device]") {
  if (!testing::cuda_backend()) return;
  auto device = make_backend("cuda");
  const std::unique_ptr<EglContext> context = gpu_context();
  State state(*device);
  std::shared_ptr<const DeviceRows> rows = device->rows_for_window(state.head(0)), dropped = device->rows_for_window(state.head(1));
  {
    const std::unique_ptr<Repeated> repeated = device->repeated();
    REQUIRE(repeated);
    const Buffer memory = device->allocate(sizeof(float));
    const Tensor sum(memory.get(), DType::f32, {1, 1});
    device->fill(sum, 0);
    int asked = 0;
    for (int i = 0; i < 5; ++i) {
      repeated->run([&] {
        if (asked++ == 1) std::thread([&] { dropped.reset(); }).join();
        device->add(sum, sum, sum);
        device->fill(sum, 3);
      });
    }
    CHECK(asked == 2);  // once as it is, once captured
    float found = 0;
    device->download(Tensor(&found, DType::f32, sum.shape), sum);
    CHECK(found == 3);
  }
  if (!context) return;
  state.memory.reset();
  device.reset();
  const PixelBuffer buffer(*context, rows->bytes());
  const std::unique_ptr<SharedBuffer> shared = rows->share(buffer.name());
  REQUIRE(shared);
  CHECK(shared->take(*rows));
  rows.reset();  // the buffer has them
  const FloatTexture texture(*context, state.K, state.V);
  buffer.bind(buffer.name());
  texture.fill(nullptr);
  buffer.bind(0);
  CHECK(same_bits(texture.texels(), state.values(0, 0)));
}

}  // namespace statescope::device_window_test

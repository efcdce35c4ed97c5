// Experts that stay in the host's memory: a model that keeps them there is, to the bit, the model that has them on its device.
#include "engine/model/expert_cache.h"

#include <sys/mman.h>
#include <unistd.h>

#include <fstream>

#include "engine/error.h"
#include "engine/run/not_finite.h"
#include "kernels/checked/operands.h"
#include "tests/catch.h"
#include "tests/engine/model/golden.h"
#include "tests/engine/model/locked_device.h"
#include "tests/engine/model/small_models.h"
#include "tests/kernels/device_cases.h"
#include "tests/temporary_folder.h"

namespace statescope::test::expert_cache_test {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

/// Refuses operands that are not in a device's memory.
struct Look final : OperandExchange {
  const LockedDevice& device;
  explicit Look(const LockedDevice& device_) : device(device_) {}
  template <class T>
  T own(T x) const {
    if (x && x.shape.size() > 0 && !device.holds(x.data)) throw std::logic_error("an operand in the host's memory");
    return x;
  }
  Tensor written(Tensor x) override { return own(x); }
  ConstTensor read(ConstTensor x) override { return own(x); }
};

/// Has so many bytes, and computes with nothing that is not in them.
class NarrowDevice final : public LockedDevice {
 public:
  using LockedDevice::LockedDevice;
  void run(const Operation& operation) override {
    Look look(*this);
    OtherOperands operands(look);
    LockedDevice::run(operands.of(operation));
  }
};

/// Whose experts take most of the room.
std::vector<SmallModel> models_of_experts() {
  return {{"qwen3_next", qwen_config("qwen3_next", {{"moe_intermediate_size", 2048}})},
          {"nemotron_h", nemotron_config("ME*E", {{"moe_intermediate_size", 2048}})},
          {"kimi_linear", kimi_config({{"moe_intermediate_size", 2048}})},
          {"lfm2_moe", lfm2_config("lfm2_moe", {{"moe_intermediate_size", 2048}})}};
}

/// A prompt in passes, and tokens behind it one by one: logits.
std::vector<float> read(Model& model) {
  ModelState state = model.start();
  std::vector<float> all;
  const std::vector<std::int32_t> ids = some_ids(40);
  for (std::size_t first = 0; first < ids.size();) {
    const std::size_t count = first < 30 ? 15 : 1;
    const std::int64_t T = static_cast<std::int64_t>(count);
    const Buffer hidden = model.backend().allocate(count * static_cast<std::size_t>(model.hidden()) * sizeof(float)),
                 logits = model.backend().allocate(count * static_cast<std::size_t>(model.vocab()) * sizeof(float));
    const Tensor y(logits.get(), DType::f32, {T, model.vocab()});
    model.forward(state, std::span(ids).subspan(first, count), {.chunk_size = count == 1 ? 0 : 64, .prompt_length = 30, .logits = y},
                  Tensor(hidden.get(), DType::f32, {T, model.hidden()}));
    const std::vector<float> rows = host_copy(model.backend(), y);
    all.insert(all.end(), rows.begin(), rows.end());
    first += count;
  }
  return all;
}

/// How many of a tensor's bytes the page cache holds.
std::int64_t resident_bytes(const StoredTensor& tensor) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(tensor.data) / page * page,
             end = reinterpret_cast<std::uintptr_t>(tensor.data) + static_cast<std::uintptr_t>(tensor.bytes());
  std::vector<unsigned char> pages((end - begin + page - 1) / page);
  if (mincore(reinterpret_cast<void*>(begin), end - begin, pages.data()) != 0) throw std::runtime_error("mincore");
  return std::ranges::count_if(pages, [](unsigned char state) { return (state & 1) != 0; }) * static_cast<std::int64_t>(page);
}

/// What a device must have for a room of so many bytes.
std::size_t free_for(std::size_t room) { return room + room / 7 + 8; }

}  // namespace

TEST_CASE("experts on the host: the logits are to the bit those of the model that has them on its device") {
  for (const SmallModel& small : models_of_experts()) {
    const std::shared_ptr<const Checkpoint> checkpoint = random_checkpoint(Config(small.config), 1);
    Plan plan = plan_model(Config(small.config));
    const std::vector<PartBytes> parts = part_bytes(plan, checkpoint->tensors);
    const std::vector<float> truth = read(*Model::load(checkpoint, std::make_shared<LockedDevice>()));
    std::size_t all = 0;
    for (const PartBytes& part : parts) all += part.own;
    std::size_t left = all;
    int tried = 0;
    for (std::size_t layer = parts.size() - 1; layer-- > 0;) {
      if (parts[layer].experts == 0) continue;
      left -= parts[layer].experts;
      INFO(small.name << ", from layer " << layer << " on");
      const auto device = std::make_shared<NarrowDevice>(free_for(free_for(left)));
      const std::shared_ptr<Model> model = Model::load(checkpoint, device);
      const std::vector<std::string> placement = model->info().placement;
      REQUIRE(placement.size() == 2);
      CHECK_THAT(placement[0], ContainsSubstring("more for the experts chosen last"));
      CHECK_THAT(placement[1], StartsWith(layer + 2 == parts.size() ? "the experts of layer " : "the experts of layers ") &&
                                   EndsWith("stay in the host's memory and come to the device as they are chosen"));
      CHECK(read(*model) == truth);
      CHECK(device->taken() < all);
      ++tried;
    }
    CHECK(tried > 0);
  }
}

TEST_CASE("experts on the disk: those that no token goes to are not read") {
  // Zeros, so that every token goes to the first two of 64.
  const Config config(qwen_config("qwen3_next", {{"num_experts", 64}, {"moe_intermediate_size", 4096}}));
  const TemporaryFolder folder;
  json header;
  std::int64_t bytes = 0, of_experts = 0;
  for (const TensorSpec& spec : model_tensors(config)) {
    if (header.contains(spec.name)) continue;
    const std::int64_t size = folded(spec.shape).size() * 4;
    header[spec.name] = {{"dtype", "F32"}, {"shape", spec.shape}, {"data_offsets", {bytes, bytes + size}}};
    bytes += size;
    if (spec.name.find(".experts.") != spec.name.npos) of_experts += size;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // what is not aligned is copied, not mapped
  const std::uint64_t length = text.size();
  const std::filesystem::path file = folder.path() / "model.safetensors";
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(&length), sizeof length) << text;
  std::filesystem::resize_file(file, sizeof length + text.size() + static_cast<std::size_t>(bytes));
  std::ofstream(folder.path() / "config.json") << config.raw().dump();
  const std::shared_ptr<Model> model = Model::load(open_checkpoint(folder.path()), make_cpu_backend(1));
  CHECK(!not_finite(model, some_ids(5)));
  std::int64_t read = 0;
  for (const StoredTensor& tensor : model->checkpoint().tensors) {
    if (tensor.name.find(".experts.") != tensor.name.npos) read += resident_bytes(tensor);
  }
  CHECK(of_experts > 100'000'000);
  CHECK(read > 0);
  CHECK(read < of_experts / 8);
}

TEST_CASE("experts on the host: a CUDA device computes with those that it is brought what it computes with its own", "[device]") {
  const std::shared_ptr<Backend> wide = testing::cuda_backend(), narrow = testing::own_cuda_backend();
  if (!wide || !narrow) return;
  const json config = qwen_config("qwen3_next", {{"moe_intermediate_size", 1 << 16}});
  const std::shared_ptr<const Checkpoint> checkpoint = random_checkpoint(Config(config), 1);
  const std::vector<float> truth = read(*Model::load(checkpoint, wide));
  std::size_t all = 0;
  for (const PartBytes& part : part_bytes(plan_model(Config(config)), checkpoint->tensors)) all += part.own;
  const Buffer ballast = narrow->allocate(narrow->free_bytes() - all * 3 / 4);
  const std::shared_ptr<Model> model = Model::load(checkpoint, narrow);
  REQUIRE(model->info().placement.size() == 2);
  CHECK(relative_error(read(*model), truth) < 1e-5);  // those that it has take another form of the step
}

TEST_CASE("experts on the host: only where there is no room, of as few layers as will do, and not beside the host") {
  const std::vector<PartBytes> parts{{100, 50, 80}, {10, 5, 0}, {100, 50, 80}, {4, 2, 0}};
  const auto place = [&](std::size_t bytes) { return place_layers_and_experts(parts, std::vector<DeviceRoom>{{"cuda:0", bytes, true}}); };
  CHECK(place(214).first_on_host == -1);
  CHECK(place(213).first_on_host == 2);
  CHECK(place(154).first_on_host == 2);
  CHECK(place(152).first_on_host == 0);
  CHECK(place(152).expert_bytes == std::vector<std::size_t>{19});
  CHECK_THROWS_AS(place(60), Error);
  const std::vector<DeviceRoom> with_host{{"cuda:0", 120, true}, {"cpu", 200, false}};
  CHECK(place_layers_and_experts(parts, with_host).first_on_host == -1);
  CHECK(place_layers_and_experts(parts, with_host).of_layer == std::vector<std::size_t>{0, 0, 1});
  const std::vector<DeviceRoom> two{{"cuda:0", 100, true}, {"cuda:1", 60, true}};
  const Placement over_two = place_layers_and_experts(parts, two);
  CHECK(over_two.first_on_host == 0);
  CHECK(over_two.expert_bytes == std::vector<std::size_t>{12, 7});
}

TEST_CASE("experts on the host: those chosen last stay, the one used longest ago goes") {
  LockedDevice device;
  std::vector<std::vector<float>> numbers;
  for (int e = 0; e < 4; ++e) numbers.emplace_back(std::vector<float>(200, static_cast<float>(e)));
  const auto matrices = [&](std::size_t e) {
    const ConstTensor up(numbers[e].data(), DType::f32, {10, 12}), down(numbers[e].data() + 120, DType::f32, {8, 10});
    return std::vector<ConstTensor>{up, down};
  };
  ExpertCache cache(device, 2 * (512 + 512));
  cache.expect(matrices(0));
  REQUIRE(cache.places() == 2);
  const auto bring = [&](std::size_t e) {
    const std::vector<ConstTensor> there = cache.bring(matrices(e));
    for (const ConstTensor& matrix : there) {
      CHECK(device.holds(matrix.data));
      for (const float number : host_copy(device, matrix)) REQUIRE(number == static_cast<float>(e));
    }
    return cache.brought();
  };
  CHECK(bring(0) == 1);
  CHECK(bring(1) == 2);
  CHECK(bring(0) == 2);
  CHECK(bring(2) == 3);  // in the place of 1
  CHECK(bring(0) == 3);
  CHECK(bring(1) == 4);
  CHECK(bring(3) == 5);
  CHECK(bring(1) == 5);
}

}  // namespace statescope::test::expert_cache_test

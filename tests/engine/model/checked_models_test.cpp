// Models on a device that checks itself: two that agree say what one says, and one wrong number is found where it is made.
#include "kernels/checked/checked_device.h"

#include <array>

#include "tests/catch.h"
#include "tests/engine/model/golden.h"
#include "tests/engine/model/locked_device.h"
#include "tests/engine/model/small_models.h"
#include "tests/kernels/checked/meddling_device.h"
#include "tests/kernels/device_cases.h"

namespace statescope::test::checked_models_test {
namespace {

/// A prompt in two passes and tokens one by one.
struct Piece {
  std::int64_t tokens, chunk_size;
};
constexpr std::array<Piece, 5> pieces{{{9, 4}, {4, 4}, {1, 0}, {1, 0}, {1, 0}}};

/// The logits of all of them; `watched`: somebody wants all channels.
std::vector<float> read_by(const std::shared_ptr<Backend>& device, const json& config, bool watched = false) {
  Recording recording(*device);
  const auto model = Model::load(random_checkpoint(Config(config), 1), device);
  const std::vector<std::int32_t> ids = some_ids(16, model->vocab());
  ModelState state = model->start();
  std::vector<float> all;
  auto from = ids.begin();
  for (const Piece& piece : pieces) {
    const auto room = [&](std::int64_t width) { return device->allocate(static_cast<std::size_t>(piece.tokens * width) * sizeof(float)); };
    const Buffer hidden_memory = room(model->hidden()), logits_memory = room(model->vocab());
    const Tensor hidden(hidden_memory.get(), DType::f32, {piece.tokens, model->hidden()}),
        logits(logits_memory.get(), DType::f32, {piece.tokens, model->vocab()});
    const ForwardOptions options{.chunk_size = piece.chunk_size, .prompt_length = 13};
    model->forward(state, {from, from + piece.tokens}, options, hidden, watched ? &recording : nullptr);
    model->logits(logits, hidden);
    const std::vector<float> read = host_copy(*device, logits);
    all.insert(all.end(), read.begin(), read.end());
    from += piece.tokens;
  }
  return all;
}

std::shared_ptr<Backend> checked(std::shared_ptr<Backend> one, std::shared_ptr<Backend> other, double tolerance = 0) {
  return std::make_shared<CheckedDevice>(Devices::Device{"one", std::move(one)}, Devices::Device{"other", std::move(other)}, tolerance);
}

/// The CPU, checked by one that gets the last row of result `which` of an operation wrong, the n-th time that it computes such a one.
struct Fault {
  std::string model, operation;
  int n;
  std::size_t which;
  std::string said;  // by the model, from the beginning on
};
std::string said_of(const Fault& fault) {
  const std::vector<SmallModel> all = small_models();
  int left = fault.n;
  const auto meddle = [&](const Operation& operation) {
    if (name_of(operation) != fault.operation || left-- != 0) return;
    const Tensor x = testing::written_by(operation).at(fault.which);
    x.dtype == DType::i32 ? void(x.i32(x.rows() - 1)[0] += 1) : void(x.f32(x.rows() - 1)[0] += 1);
  };
  try {
    read_by(checked(make_cpu_backend(1), std::make_shared<testing::MeddlingDevice>(meddle)),
            std::ranges::find(all, fault.model, &SmallModel::name)->config);
  } catch (const DevicesDiffer& difference) {
    return difference.what();
  }
  return "nothing differs";
}

}  // namespace

TEST_CASE("checked device: two CPUs agree to the bit in every family, watched or not, and say what one says") {
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    const std::vector<float> plain = read_by(make_cpu_backend(1), small.config);
    for (const bool watched : {false, true})
      CHECK(read_by(checked(make_cpu_backend(1), make_cpu_backend(1)), small.config, watched) == plain);
  }
}

TEST_CASE("checked device: two devices whose memory no other can touch agree in every family") {
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    const std::vector<float> plain = read_by(make_cpu_backend(1), small.config);
    CHECK(read_by(checked(std::make_shared<LockedDevice>(), std::make_shared<LockedDevice>()), small.config) == plain);
    CHECK(read_by(checked(make_cpu_backend(1), std::make_shared<LockedDevice>()), small.config) == plain);
  }
}

TEST_CASE("checked device: any operation of any family that goes wrong is the one that is named") {
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    int operations = 0;
    const auto count = [&](const Operation&) { ++operations; };
    read_by(std::make_shared<testing::MeddlingDevice>(count), small.config);
    for (const int which : {operations / 7, operations / 3, operations - 4}) {
      std::string expected;
      int left = which;
      const auto meddle = [&](const Operation& operation) {
        if (left-- != 0) return;
        const Tensor x = testing::written_by(operation).front();
        x.dtype == DType::i32 ? void(x.i32()[0] += 1) : void(x.f32()[0] += 1);
        expected = std::string(name_of(operation)) + ", ";
      };
      std::string said = "nothing differs";
      try {
        read_by(checked(make_cpu_backend(1), std::make_shared<testing::MeddlingDevice>(meddle)), small.config);
      } catch (const DevicesDiffer& difference) {
        said = difference.what();
      }
      INFO("operation " << which << " of " << operations);
      CHECK_THAT(said, Catch::Matchers::ContainsSubstring(expected));
    }
  }
}

TEST_CASE("checked device: a wrong number is named by layer, operation and the value of the layer's program") {
  const std::vector<Fault> faults{
      {"gla", "embed", 0, 0, "embed, result [8, 0]: "},
      {"gla", "forget_gated_outer_product", 0, 0, "layer 0, forget_gated_outer_product, S0 [0, 0, 0, 0]: "},
      {"gla", "forget_gated_outer_product", 1, 1, "layer 1, forget_gated_outer_product, v14 [8, 0, 0]: "},
      {"gla", "decayed_outer_product", 3, 1, "layer 1, decayed_outer_product, v14 [0, 0, 0]: "},
      {"gla", "project", 0, 1, "layer 0, project, q [8, 0]: "},
      {"gla", "swiglu", 1, 0, "layer 1, swiglu, result [8, 0]: "},
      {"gla", "linear", 0, 0, "linear, result [8, 0]: "},
      {"gated_deltanet", "unit_delta_rule", 1, 1, "layer 1, unit_delta_rule, v19 [8, 0, 0]: "},
      {"gated_deltanet", "project", 0, 1, "layer 0, project, beta [8, 0]: "},
      {"sse gla", "sparse_state", 0, 0, "layer 0, sparse_state, S0 [4, 0, 0, 0]: "},
      {"sse gla", "sparse_state", 1, 2, "layer 1, sparse_state, q [8, 0, 0, 0]: "},
      {"transformer", "copy", 0, 0, "layer 0, copy, key cache [8, 0, 0]: "},
      {"transformer", "softmax_attention", 1, 0, "layer 1, softmax_attention, readout [8, 0, 0]: "},
      {"mamba", "selective_scan", 1, 1, "layer 1, selective_scan, v17 [8, 0, 0]: "},
      {"moba", "softmax_attention", 2, 0, "layer 0, softmax_attention, v11 [3, 0, 0]: "},
      {"mom", "top_k", 1, 0, "layer 1, top_k, partition_selected [8, 0]: "},
      {"kimi_linear", "rms_norm", 0, 0, "layer 0, rms_norm, result [8, 0]: "},
      {"rwkv7", "wkv", 3, 1, "layer 0, wkv, v51 [3, 0, 0]: "},
  };
  for (const Fault& fault : faults) {
    INFO(fault.model << ", " << fault.operation << ", " << fault.n);
    CHECK_THAT(said_of(fault), Catch::Matchers::StartsWith(fault.said));
  }
  std::string all;
  for (std::size_t which = 0; which < 6; ++which) all += said_of({"gated_deltanet", "project", 0, which, ""}) + "\n";
  CHECK_THAT(all, Catch::Matchers::ContainsSubstring("layer 0, project, convolution cache 0 [0, 0, 0]: "));
}

TEST_CASE("device: what the CPU and CUDA make of each operation of every family is the same", "[device]") {
  const std::shared_ptr<Backend> cuda = testing::cuda_backend();
  if (!cuda) return;
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    CHECK_NOTHROW(read_by(checked(make_cpu_backend(), cuda, 1e-4), small.config));
    CHECK_NOTHROW(read_by(checked(cuda, make_cpu_backend(), 1e-4), small.config, true));
  }
}

}  // namespace statescope::test::checked_models_test

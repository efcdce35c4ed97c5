// Steps of one token, which a CUDA device does again as a graph, against the same steps launched one operation after the other: the same
// bits, and an observer sees the same.
#include "tests/catch.h"
#include "tests/engine/model/golden.h"
#include "tests/engine/model/small_models.h"
#include "tests/kernels/device_cases.h"

namespace statescope::test::device_steps_test {
namespace {

/// What a step shows, as numbers on the host.
class Seen final : public Observer {
 public:
  explicit Seen(Backend& backend) : backend_(backend) {}
  void residual(std::int64_t layer, ConstTensor x) override { take("residual " + std::to_string(layer), x); }
  void channel(std::int64_t layer, std::string_view name, ConstTensor values) override {
    take(std::string(name) + " " + std::to_string(layer), values);
  }
  bool wants(std::string_view name) const override { return name == "partition_gate" || name == "partition_selected"; }

  std::vector<std::pair<std::string, std::vector<std::int32_t>>> all;

 private:
  void take(std::string name, ConstTensor x) {
    std::vector<std::int32_t> bits(static_cast<std::size_t>(x.shape.size()));
    backend_.download(Tensor(bits.data(), x.dtype, x.shape), x);
    all.emplace_back(std::move(name), std::move(bits));
  }
  Backend& backend_;
};

/// A sequence that is read token by token.
struct Sequence {
  std::shared_ptr<Model> model;
  std::int64_t chunk_size;  // 0: steps, else each operation is launched
  ModelState state = model->start();
  Buffer memory = model->backend().allocate(static_cast<std::size_t>(model->hidden() + model->vocab()) * sizeof(float));

  /// The logits after the next token, and the states then.
  std::vector<float> read(std::int32_t id, Observer* observer) {
    auto* const numbers = static_cast<float*>(memory.get());
    const Tensor hidden(numbers, DType::f32, {1, model->hidden()}), logits(numbers + model->hidden(), DType::f32, {1, model->vocab()});
    model->backend().fill(hidden, std::nanf(""));
    model->backend().fill(logits, std::nanf(""));
    model->forward(state, std::span(&id, 1), {.chunk_size = chunk_size, .prompt_length = 4, .logits = logits}, hidden, observer);
    std::vector<float> all = host_copy(model->backend(), logits);
    for (const MixerState& layer : state.layers) {
      if (!layer.everything) continue;
      const std::vector<float> states = host_copy(model->backend(), layer.everything);
      all.insert(all.end(), states.begin(), states.end());
    }
    return all;
  }
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Whether a token is several steps of a layer's memory: the chunk form, which is launched, then rounds otherwise than the step form.
bool takes_several_steps(const Model& model) {
  for (std::int64_t layer = 0; layer < model.layers(); ++layer)
    if (model.layout(layer).steps > 1) return true;
  return false;
}

/// Two sequences by turns, so that two steps are repeated; then one of them from its start again.
void compare_steps(const std::shared_ptr<Model>& model, bool observed) {
  Sequence steps[2] = {{model, 0}, {model, 0}}, launched[2] = {{model, 64}, {model, 64}};
  for (const std::int32_t id : {3, 1, 4, 1, 5, 9, 2, 6}) {
    for (const int s : {0, 1}) {
      Seen found(model->backend()), truth(model->backend());
      const std::vector<float> repeated = steps[s].read(id + s, observed ? &found : nullptr);
      const std::vector<float> once = launched[s].read(id + s, observed ? &truth : nullptr);
      if (takes_several_steps(*model)) {
        CHECK(relative_error(repeated, once) < 0.04);
      } else {
        CHECK(same_bits(repeated, once));
        CHECK(found.all == truth.all);
      }
    }
  }
}

}  // namespace

TEST_CASE("device: a repeated step leaves the bits of a launched one, in every family", "[device]") {
  const std::shared_ptr<Backend> device = testing::cuda_backend(Precision::bfloat16);
  if (!device) return;
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    try {
      const auto model = Model::load(random_checkpoint(Config(small.config), 1, DType::bf16), device);
      for (const bool observed : {false, true}) compare_steps(model, observed);
    } catch (const std::exception& error) {
      FAIL_CHECK(error.what());
    }
  }
}

TEST_CASE("device: a failure within a step leaves the backend usable", "[device]") {
  const std::shared_ptr<Backend> device = testing::cuda_backend();
  if (!device) return;
  const std::unique_ptr<Repeated> repeated = device->repeated();
  const Buffer memory = device->allocate(4 * sizeof(float));
  const Tensor x(memory.get(), DType::f32, {1, 4});
  device->fill(x, 1);
  bool fails = false;
  const auto work = [&] {
    device->add(x, x, x);
    if (fails) throw std::runtime_error("as it should");
  };
  repeated->run(work);
  fails = true;
  CHECK_THROWS(repeated->run(work));  // while it is captured: nothing of it is done
  fails = false;
  for (int i = 0; i < 3; ++i) repeated->run(work);
  CHECK(host_copy(*device, x) == std::vector<float>(4, 16));
}

}  // namespace statescope::test::device_steps_test

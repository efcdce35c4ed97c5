// Steps that a device does again (engine/model/steps.h): nothing changes by it, neither what is computed nor what an observer sees.
#include "engine/model/steps.h"

#include "tests/catch.h"
#include "tests/engine/model/failing_device.h"
#include "tests/engine/model/golden.h"
#include "tests/engine/model/small_models.h"

namespace statescope::test::steps_test {
namespace {

/// The CPU as a device that repeats steps; it may forget to do so from the second time on.
class RepeatingDevice final : public FailingDevice {
 public:
  explicit RepeatingDevice(bool forgetful = false) : FailingDevice([](std::string_view) {}), forgetful_(forgetful) {}

  int steps = 0;  // that differ

  std::unique_ptr<Repeated> repeated() override {
    struct Again final : Repeated {
      bool forgetful = false, done = false;
      void run(const std::function<void()>& work) override {
        if (!done || !forgetful) work();
        done = true;
      }
    };
    ++steps;
    auto again = std::make_unique<Again>();
    again->forgetful = forgetful_;
    return again;
  }

 private:
  bool forgetful_;
};

/// Everything that an observer sees, in its order.
class Seen final : public Observer {
 public:
  explicit Seen(Backend& backend, std::string_view unwanted = {}) : backend_(backend), unwanted_(unwanted) {}
  void residual(std::int64_t layer, ConstTensor x) override { channel(layer, "residual", x); }
  void channel(std::int64_t layer, std::string_view name, ConstTensor values) override {
    CHECK(name != unwanted_);
    const Buffer memory = backend_.allocate(static_cast<std::size_t>(values.shape.size()) * sizeof(float));
    const Tensor contiguous(memory.get(), values.dtype, values.shape);
    backend_.copy(contiguous, values);
    all.emplace_back(std::to_string(layer) + " " + std::string(name), host_copy<std::int32_t>(backend_, contiguous));
  }
  bool wants(std::string_view name) const override { return name != unwanted_; }

  std::vector<std::pair<std::string, std::vector<std::int32_t>>> all;

 private:
  Backend& backend_;
  std::string_view unwanted_;
};

/// A sequence that is read token by token.
struct Sequence {
  std::shared_ptr<Model> model;
  ModelState state = model->start();
  std::vector<float> hidden = std::vector<float>(static_cast<std::size_t>(model->hidden()));

  const std::vector<float>& read(std::int32_t id, Observer* observer = nullptr) {
    model->forward(state, std::span(&id, 1), {.chunk_size = 0, .prompt_length = 4}, Tensor(hidden.data(), DType::f32, {1, model->hidden()}),
                   observer);
    return hidden;
  }
};

std::shared_ptr<Model> model_on(const std::shared_ptr<Backend>& device, const json& config) {
  return Model::load(random_checkpoint(Config(config), 1, DType::f32), device);
}

}  // namespace

TEST_CASE("Steps: what is repeated is what is computed and shown without", "[engine]") {
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    const auto repeating = std::make_shared<RepeatingDevice>();
    const std::shared_ptr<Backend> plain = std::make_shared<FailingDevice>([](std::string_view) {});
    Sequence found{model_on(repeating, small.config)}, truth{model_on(plain, small.config)};
    for (const std::int32_t id : {3, 1, 4, 1, 5}) {
      Seen found_channels(*repeating), true_channels(*plain);
      CHECK(found.read(id, &found_channels) == truth.read(id, &true_channels));
      CHECK(found_channels.all == true_channels.all);
      CHECK(found.read(id) == truth.read(id));
    }
    CHECK(repeating->steps == 2);  // one that is seen, one that is not
  }
}

TEST_CASE("Steps: an observer sees what a device did without being asked again", "[engine]") {
  const auto device = std::make_shared<RepeatingDevice>(true);
  Sequence sequence{model_on(device, sse_config("gla"))};
  Seen first(*device), second(*device);
  sequence.read(3, &first);
  sequence.read(3, &second);  // all but the embedding is left undone
  CHECK(first.all.size() > 10);
  CHECK(second.all == first.all);
  CHECK(sequence.state.position == 2);
}

TEST_CASE("Steps: other rules, states or wishes are other steps", "[engine]") {
  const auto device = std::make_shared<RepeatingDevice>();
  const auto model = model_on(device, sse_config("gla"));
  Sequence one{model}, other{model};
  const auto read = [&](Sequence& sequence, const std::vector<Rules>& rules, Observer* observer = nullptr) {
    constexpr std::int32_t id = 3;
    model->forward(sequence.state, std::span(&id, 1), {.chunk_size = 0, .prompt_length = 0, .rules = rules},
                   Tensor(sequence.hidden.data(), DType::f32, {1, model->hidden()}), observer);
    return device->steps;
  };
  const std::vector<Rules> own, slower{{.decay = 0.5F}, {}}, slowest{{.decay = 0.25F}, {}};
  CHECK(read(one, own) == 1);
  CHECK(read(other, own) == 2);
  CHECK(read(one, slower) == 3);
  CHECK(read(one, slowest) == 4);
  CHECK(read(one, own) == 4);
  CHECK(read(one, slower) == 4);
  Seen everything(*device), without_q(*device, "q"), without_q_again(*device, "q");
  CHECK(read(one, own, &everything) == 5);
  CHECK(read(one, own, &without_q) == 6);
  CHECK(read(one, own, &without_q_again) == 6);
}

}  // namespace statescope::test::steps_test

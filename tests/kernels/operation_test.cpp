#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backend.h"
#include "tests/catch.h"
#include "tests/kernels/random_tensors.h"

namespace statescope::operation_test {
namespace {
using namespace statescope::testing;

/// The CPU, which writes down the single operations that it is asked for.
class Recorder final : public Backend {
 public:
  std::string description() const override { return cpu_->description(); }
  Buffer allocate(std::size_t bytes) override { return cpu_->allocate(bytes); }
  void upload(Tensor device, ConstTensor host) override { cpu_->upload(device, host); }
  void download(Tensor host, ConstTensor device) override { cpu_->download(host, device); }
  ConstTensor adopt(ConstTensor host, Buffer& owner) override { return cpu_->adopt(host, owner); }
  void run(const Operation& operation) override {
    if (run_by_parts(operation)) return;
    names.emplace_back(name_of(operation));
    cpu_->run(operation);
  }

  std::vector<std::string> names;

 private:
  std::unique_ptr<Backend> cpu_ = make_cpu_backend(1);
};

template <std::size_t... i>
std::vector<std::string_view> names_of_all(std::index_sequence<i...>) {
  return {std::variant_alternative_t<i, Operation>::name...};
}

}  // namespace

TEST_CASE("operations: each has a name of its own") {
  const auto names = names_of_all(std::make_index_sequence<std::variant_size_v<Operation>>());
  CHECK(std::set(names.begin(), names.end()).size() == names.size());
  CHECK(name_of(ops::Fill{{}, 0}) == "fill");
}

TEST_CASE("operations: who stands before a device sees the single operations in fused ones, and changes no number") {
  Recorder recorder;
  const auto cpu = make_cpu_backend(1);
  Random random(1);
  const std::int64_t T = 5, D = 12, I = 20;
  const Numbers x = random.uniform({T, D}), weight = random.uniform({D}), addend = random.uniform({T, D});
  const Numbers gate = random.uniform({I, D}), up = random.uniform({I, D}), down = random.uniform({D, I});
  const auto swiglu_on = [&](Backend& device) {
    Workspace workspace(device);
    Numbers y = poisoned({T, D});
    device.swiglu(y.view(), x.view(), gate.view(), up.view(), down.view(), workspace, {.group = D, .weight = weight.view(), .eps = 1e-6F},
                  addend.view());
    return y.values;
  };
  CHECK(swiglu_on(recorder) == swiglu_on(*cpu));
  CHECK(recorder.names == std::vector<std::string>{"rms_norm", "linear", "linear", "gate", "linear", "add"});
}

}  // namespace statescope::operation_test

// A device that fails when a test wants it to: the CPU behind a hook that every single operation calls first.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/device.h"

namespace statescope::test {

class FailingDevice : public Backend {
 public:
  /// `before` throws, or does not.
  explicit FailingDevice(std::function<void(std::string_view operation)> before) : before_(std::move(before)) {}

  std::string description() const override { return "a device that fails"; }
  Buffer allocate(std::size_t bytes) override { return on("allocate").allocate(bytes); }
  void upload(Tensor a, ConstTensor b) override { on("upload").upload(a, b); }
  void download(Tensor a, ConstTensor b) override { on("download").download(a, b); }
  ConstTensor adopt(ConstTensor host, Buffer& owner) override { return on("adopt").adopt(host, owner); }
  void run(const Operation& operation) override {
    if (!run_by_parts(operation)) on(name_of(operation)).run(operation);
  }

 private:
  Backend& on(std::string_view operation) {
    before_(operation);
    return *cpu_;
  }

  std::function<void(std::string_view)> before_;
  std::unique_ptr<Backend> cpu_ = make_cpu_backend(1);
};

}  // namespace statescope::test

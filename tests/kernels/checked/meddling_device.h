// A device that computes one operation wrong: the CPU, which changes what that operation has written.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/checked/operands.h"
#include "kernels/device.h"

namespace statescope::testing {

/// What an operation writes, in the order of its fields, without what is absent.
inline std::vector<Tensor> written_by(const Operation& operation) {
  struct Keeping final : OperandExchange {
    std::vector<Tensor> all;
    Tensor written(Tensor x) override {
      if (x) all.push_back(x);
      return x;
    }
  } keeping;
  OtherOperands(keeping).of(operation);
  return keeping.all;
}

class MeddlingDevice final : public Backend {
 public:
  /// `after` may change what the operation has written.
  explicit MeddlingDevice(std::function<void(const Operation& operation)> after) : after_(std::move(after)) {}

  std::string description() const override { return "a device that meddles"; }
  Buffer allocate(std::size_t bytes) override { return cpu_->allocate(bytes); }
  void upload(Tensor device, ConstTensor host) override { cpu_->upload(device, host); }
  void download(Tensor host, ConstTensor device) override { cpu_->download(host, device); }
  ConstTensor adopt(ConstTensor host, Buffer& owner) override { return cpu_->adopt(host, owner); }
  void run(const Operation& operation) override {
    cpu_->run(operation);
    after_(operation);
  }

 private:
  std::function<void(const Operation&)> after_;
  std::unique_ptr<Backend> cpu_ = make_cpu_backend(1);
};

}  // namespace statescope::testing

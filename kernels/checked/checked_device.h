// Two devices as one that checks itself: both compute every operation of the same numbers, and the first result that they have apart ends
// it.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "kernels/backend.h"
#include "kernels/devices.h"

namespace statescope {

/// Whether this is the name of one device: "cpu", "cuda", "cuda:1".
bool is_device(const std::string& name);

/// The devices of "check:cpu,cuda", and how far apart they may be where that is said behind them: "check:cpu,cuda,1e-3".
struct CheckedDevices {
  std::string one, other;
  std::optional<double> tolerance;
};
/// None for a name that does not begin so. Throws std::invalid_argument with one line for one that means nothing.
std::optional<CheckedDevices> checked_devices(const std::string& name);

/// What two devices have further apart than they may. One line: "layer 1, gated_delta_rule, o [17, 2, 5]: 0.5012 on cpu, 0.4988 on cuda:1
/// (tolerance: 0.0001 of its largest number, 2.31)".
class DevicesDiffer final : public std::exception {
 public:
  /// `memory`: where the value begins on the first device; `result`: what it is called where nobody knows better.
  DevicesDiffer(std::string_view operation, const void* memory, std::string result, std::string numbers);

  const void* memory() const { return memory_; }
  /// Whoever knows the value by a name says so, and where it is computed. An empty name is none.
  void name_value(std::string name);
  void name_place(std::string name);
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  void write();

  std::string operation_, value_, numbers_, place_, text_;
  const void* memory_;
};

/// What two devices have apart in `work` is of this layer.
template <class Work>
void in_layer(std::int64_t layer, const Work& work) {
  try {
    work();
  } catch (DevicesDiffer& difference) {
    difference.name_place("layer " + std::to_string(layer));
    throw;
  }
}

/// Memory is the first device's, and has a counterpart on the other one; whatever is read comes from the first. After each operation both
/// hold the same numbers, those of the first, so that a difference is of this operation alone. Steps are not repeated as a whole.
class CheckedDevice final : public Backend {
 public:
  /// `tolerance`: how far apart two numbers may be, relative to the largest of their value. Indices must be equal; what is not a number
  /// must be none on both.
  CheckedDevice(Devices::Device one, Devices::Device other, double tolerance);

  std::string description() const override;
  Buffer allocate(std::size_t bytes) override;
  Buffer allocate_weights(std::size_t bytes) override;
  void upload(Tensor device, ConstTensor host) override;
  void download(Tensor host, ConstTensor device) override { one().download(host, device); }
  std::unique_ptr<Download> download_later(Tensor host, ConstTensor device) override { return one().download_later(host, device); }
  /// Half of what the smaller one has: the two may share it.
  std::size_t free_bytes() override;
  bool has_own_memory() const override { return one().has_own_memory() || other().has_own_memory(); }
  std::int64_t tokens_at_once() const override;
  ConstTensor adopt(ConstTensor host, Buffer& owner) override;
  /// Where it is faster on one of them, which then is checked as it runs alone.
  bool folds_norms(std::int64_t rows) const override { return one().folds_norms(rows) || other().folds_norms(rows); }
  /// float32 where they do not agree.
  DType activation_type(std::int64_t rows) const override;
  std::shared_ptr<const DeviceRows> rows_for_window(ConstTensor rows) override { return one().rows_for_window(rows); }
  /// Throws DevicesDiffer.
  void run(const Operation& operation) override;

 private:
  class Counterparts;
  struct Result;
  Backend& one() const { return *one_.backend; }
  Backend& other() const { return *other_.backend; }
  Tensor there(Tensor x) const;
  ConstTensor there(ConstTensor x) const;
  /// Throws DevicesDiffer. `number`: which result of the operation it is, where it has several.
  void compare(const Result& result, std::string_view operation, std::size_t number) const;

  Devices::Device one_, other_;
  double tolerance_;
  std::shared_ptr<Counterparts> counterparts_;
  Workspace scratch_;  // of the other one
};

}  // namespace statescope

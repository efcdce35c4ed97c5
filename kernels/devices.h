// Several devices as one: a model whose layers live on more than one of them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace statescope {

/// Memory lies on one of the devices, and an operation runs where what it writes lies; `copy` alone takes operands of two. Memory that is
/// asked for here is the first device's, which is called home; that of others is asked for there. Whoever knows which device it needs asks
/// that device itself.
class Devices final : public Backend {
 public:
  struct Device {
    std::string name;  // "cuda:0", as the user gave it
    std::shared_ptr<Backend> backend;
  };
  using OpenNext = std::function<std::optional<Device>()>;  // none: there are no more
  /// At least one, and at most one without memory of its own. With `open_next` models keep to as few as have room for them, the first ones,
  /// and others are opened when they are needed.
  explicit Devices(std::vector<Device> devices, OpenNext open_next = {});

  static constexpr std::size_t home = 0;
  const std::vector<Device>& all() const { return devices_; }
  Backend& at(std::size_t device) const { return *devices_[device].backend; }
  bool as_few_as_will_do() const { return open_next_ != nullptr; }
  /// False: there are no more. Throws DeviceError, std::bad_alloc.
  bool open_next();
  /// Throws DeviceError for memory that none of them has.
  std::size_t where(const void* memory) const;

  std::string description() const override;
  Buffer allocate(std::size_t bytes) override { return at(home).allocate(bytes); }
  Buffer allocate_weights(std::size_t bytes) override { return at(home).allocate_weights(bytes); }
  void upload(Tensor device, ConstTensor host) override { of(device).upload(device, host); }
  void download(Tensor host, ConstTensor device) override { of(device).download(host, device); }
  std::unique_ptr<Download> download_later(Tensor host, ConstTensor device) override { return of(device).download_later(host, device); }
  /// Of all together.
  std::size_t free_bytes() override;
  /// Whether one of them has.
  bool has_own_memory() const override;
  bool holds(const void* memory) const override;
  Devices* devices() override { return this; }
  /// As many as suit all of them.
  std::int64_t tokens_at_once() const override;
  ConstTensor adopt(ConstTensor host, Buffer& owner) override { return at(home).adopt(host, owner); }
  bool folds_norms(std::int64_t rows) const override { return at(home).folds_norms(rows); }
  DType activation_type(std::int64_t rows) const override { return at(home).activation_type(rows); }
  std::shared_ptr<const DeviceRows> rows_for_window(ConstTensor rows) override { return of(rows).rows_for_window(rows); }
  void run(const Operation& operation) override;

 private:
  Backend& of(ConstTensor x) const { return at(where(x.data)); }
  /// dst ← src, from one device to another.
  void cross(Tensor dst, ConstTensor src);

  std::vector<Device> devices_;
  OpenNext open_next_;
};

}  // namespace statescope

// A device with little memory of its own, which brings numbers to the host as late as it may: the CPU again.
#pragma once

#include "tests/engine/model/failing_device.h"

namespace statescope::test {

class SmallDevice final : public FailingDevice {
 public:
  /// Of so many bytes.
  explicit SmallDevice(std::size_t bytes) : FailingDevice([](std::string_view) {}), free_(std::make_shared<std::size_t>(bytes)) {}

  Buffer allocate(std::size_t bytes) override {
    if (bytes > *free_) throw std::bad_alloc();
    const Buffer memory = FailingDevice::allocate(bytes);
    *free_ -= bytes;
    return Buffer(memory.get(), [memory, bytes, free = free_](void*) { *free += bytes; });
  }
  std::size_t free_bytes() override { return *free_; }
  bool has_own_memory() const override { return true; }
  std::unique_ptr<Download> download_later(Tensor host, ConstTensor device) override {
    struct Later final : Download {
      SmallDevice* owner = nullptr;
      Tensor host;
      ConstTensor device;
      void wait() override { owner->download(host, device); }
    };
    auto later = std::make_unique<Later>();
    later->owner = this;
    later->host = host;
    later->device = device;
    return later;
  }

 private:
  std::shared_ptr<std::size_t> free_;
};

}  // namespace statescope::test

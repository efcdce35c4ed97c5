// A device whose memory no other one can touch: the CPU again, whose pages are closed as soon as another such device does something. Who
// reads or writes them nevertheless ends the program (SIGSEGV).
#pragma once

#include <sys/mman.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>

#include "kernels/device.h"
#include "kernels/devices.h"

namespace statescope::test {

class LockedDevice : public Backend {
  static constexpr std::size_t kBytes = std::size_t{1} << 30;

 public:
  /// `free`: what it says that it has.
  explicit LockedDevice(std::size_t free = kBytes) : free_(free) {}
  std::string description() const override { return "a locked device"; }
  Buffer allocate(std::size_t bytes) override {
    open();
    void* const memory = pages_->take(bytes);
    return Buffer(memory, [pages = pages_, bytes](void* p) { pages->give_back(p, bytes); });
  }
  void upload(Tensor device, ConstTensor host) override { open().upload(device, host); }
  void download(Tensor host, ConstTensor device) override { open().download(host, device); }
  ConstTensor adopt(ConstTensor host, Buffer& owner) override {
    const Tensor own((owner = allocate(static_cast<std::size_t>(host.shape.size()) * size_of(host.dtype))).get(), host.dtype, host.shape);
    upload(own, host);
    return own;
  }
  std::size_t free_bytes() override { return free_; }
  /// Bytes that were ever handed out at once.
  std::size_t taken() const { return pages_->taken(); }
  bool has_own_memory() const override { return true; }
  bool holds(const void* memory) const override { return pages_->has(memory); }
  void run(const Operation& operation) override { open().run(operation); }
  /// Does all work each time.
  std::unique_ptr<Repeated> repeated() override {
    struct Again final : Repeated {
      void run(const std::function<void()>& work) override { work(); }
    };
    return std::make_unique<Again>();
  }

 private:
  /// Handed out one behind the other; what comes back is handed out again for the same size.
  class Pages {
   public:
    Pages() : begin_(static_cast<std::byte*>(mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
      if (begin_ == MAP_FAILED) throw std::bad_alloc();
    }
    ~Pages() {
      if (open_ == this) open_ = nullptr;
      munmap(begin_, kBytes);
    }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    void open() {
      if (open_ == this) return;
      if (open_) mprotect(open_->begin_, kBytes, PROT_NONE);
      mprotect(begin_, kBytes, PROT_READ | PROT_WRITE);
      open_ = this;
    }
    std::size_t taken() const { return used_; }
    bool has(const void* memory) const { return memory >= begin_ && memory < begin_ + kBytes; }
    void* take(std::size_t bytes) {
      const std::lock_guard lock(mutex_);
      if (const auto found = free_.find(bytes); found != free_.end()) return free_.extract(found).mapped();
      constexpr std::size_t alignment = 64;
      const std::size_t taken = (bytes + alignment - 1) / alignment * alignment;
      if (taken > kBytes - used_) throw std::bad_alloc();
      return begin_ + std::exchange(used_, used_ + taken);
    }
    void give_back(void* memory, std::size_t bytes) {
      const std::lock_guard lock(mutex_);
      free_.emplace(bytes, memory);
    }

   private:
    static inline Pages* open_ = nullptr;  // of all devices
    std::byte* begin_;
    std::size_t used_ = 0;
    std::multimap<std::size_t, void*> free_;
    std::mutex mutex_;
  };

  Backend& open() {
    pages_->open();
    return *cpu_;
  }

  std::size_t free_;
  std::shared_ptr<Pages> pages_ = std::make_shared<Pages>();
  std::unique_ptr<Backend> cpu_ = make_cpu_backend(1);
};

/// So many of them as one.
inline std::shared_ptr<Devices> locked_devices(std::size_t count) {
  std::vector<Devices::Device> devices;
  for (std::size_t i = 0; i < count; ++i) devices.push_back({"locked:" + std::to_string(i), std::make_shared<LockedDevice>()});
  return std::make_shared<Devices>(std::move(devices));
}

}  // namespace statescope::test

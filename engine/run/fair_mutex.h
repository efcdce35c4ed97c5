// A mutex that is handed on in the order of asking: a thread that takes it again and again in small pieces cannot keep another one out.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace statescope {

class FairMutex {
 public:
  void lock() {
    std::unique_lock lock(mutex_);
    const std::uint64_t ticket = next_++;
    turn_.wait(lock, [&] { return ticket == serving_; });
  }
  void unlock() {
    {
      const std::lock_guard lock(mutex_);
      ++serving_;
    }
    turn_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable turn_;
  std::uint64_t next_ = 0, serving_ = 0;
};

}  // namespace statescope

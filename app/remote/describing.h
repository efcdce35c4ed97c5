// What clients ask about checkpoints, found out beside all else, one after the other.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "engine/remote/messages.h"

namespace statescope {

/// Answers on the thread of the running QCoreApplication, also when this has gone.
class Describing {
 public:
  using Told = decltype(remote::Event::told);
  struct Job {
    std::function<Told(const std::function<bool()>& goes_on)> find_out;  // what it throws is told as Failed
    std::function<void(Told)> tell;
  };

  Describing();
  /// What is under way is given up.
  ~Describing();
  void add(Job job);

 private:
  void work(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<Job> jobs_;
  std::jthread thread_;  // last
};

}  // namespace statescope

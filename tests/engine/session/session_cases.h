// What the session's tests share: an interface thread that runs what is posted when the test says so, what became of a request, and a
// device that fails.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "engine/session/session.h"
#include "tests/catch.h"
#include "tests/engine/model/failing_device.h"
#include "tests/engine/model/golden.h"
#include "tests/engine/model/small_models.h"

namespace statescope::test {

inline const std::filesystem::path kGla = golden_root() / "gla", kSse = golden_root() / "sse_gla_n4k1";

/// The interface thread's queue.
class Posts {
 public:
  std::function<void(std::function<void()>)> post() {
    return [this](std::function<void()> work) {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
      arrived_.notify_one();
    };
  }
  /// Runs what arrives until `done`, or fails after a minute.
  template <class Done>
  void run_until(Done done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!done()) {
      std::unique_lock lock(mutex_);
      if (!arrived_.wait_until(lock, deadline, [&] { return !queue_.empty(); })) FAIL("nothing arrived for a minute");
      run_front(lock);
    }
  }
  void run_all() {
    for (std::unique_lock lock(mutex_); !queue_.empty(); lock.lock()) run_front(lock);
  }

 private:
  void run_front(std::unique_lock<std::mutex>& lock) {
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
  }
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::function<void()>> queue_;
};

/// What became of one opening.
struct Opening {
  std::vector<std::shared_ptr<const RunInfo>> runs;
  std::vector<std::string> failures, device_failures, not_saved, other_device;
  std::shared_ptr<const BranchTree> tree;
  std::vector<std::pair<double, std::string>> progress;
  bool done = false;
  std::function<void()> on_progress;

  Session::OpenCallbacks callbacks() {
    return {[this](double fraction, std::string what) {
              progress.emplace_back(fraction, std::move(what));
              if (on_progress) on_progress();
            },
            [this](std::shared_ptr<const RunInfo> run) { runs.push_back(std::move(run)); },
            [this](const Failure& failure) { failures.push_back(failure.message); },
            [this] { done = true; },
            [this](std::string message) { device_failures.push_back(std::move(message)); },
            [this](std::shared_ptr<const BranchTree> branches) { tree = std::move(branches); },
            [this](std::string message) { not_saved.push_back(std::move(message)); },
            [this](std::string message) { other_device.push_back(std::move(message)); }};
  }
  bool ended() const { return !runs.empty() || !failures.empty(); }
};

inline PromptInput ids_prompt(std::int64_t tokens, std::int64_t generate = 0) {
  PromptInput prompt;
  prompt.ids = some_ids(tokens);
  prompt.generate = generate;
  return prompt;
}

inline const std::string kLost = "cuda: the device is lost; the CPU reads from here on";

/// Fails for good at the nth call of an operation, and counts what it is asked for after that.
struct Failure {
  std::string operation;
  int calls = 1;
  bool out_of_memory = false;
  std::atomic<bool> armed = true, failed = false;
  std::atomic<int> asked_again = 0;

  Failure(std::string operation_, int calls_, bool out_of_memory_ = false)
      : operation(std::move(operation_)), calls(calls_), out_of_memory(out_of_memory_) {}

  std::shared_ptr<Backend> device() {
    return std::make_shared<FailingDevice>([this](std::string_view what) {
      asked_again += failed ? 1 : 0;
      if (!failed && (!armed || what != operation || --calls > 0)) return;
      failed = true;
      if (out_of_memory) throw std::bad_alloc();
      throw DeviceError("cuda: the device is lost");
    });
  }
};

}  // namespace statescope::test

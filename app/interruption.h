// Ctrl+C as a wish that a command hears between two pieces of its work, so that nothing is left half-done.
#pragma once

#include <atomic>
#include <csignal>

namespace statescope {

/// While it lives, the first Ctrl+C is remembered; the second ends the program. One at a time.
class Interruption {
 public:
  Interruption() {
    asked_ = false;
    struct sigaction action{};
    action.sa_handler = [](int) { asked_ = true; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(SIGINT, &action, &before_);
  }
  ~Interruption() { ::sigaction(SIGINT, &before_, nullptr); }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  static bool asked() { return asked_; }

 private:
  static inline std::atomic<bool> asked_;
  struct sigaction before_{};
};

}  // namespace statescope

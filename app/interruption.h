// Ctrl+C, or being told to end, as a wish that a command hears between two pieces of its work, so that nothing is left half-done.
#pragma once

#include <array>
#include <atomic>
#include <csignal>

namespace statescope {

/// While it lives, the first such signal is remembered; the second ends the program. One at a time.
class Interruption {
 public:
  Interruption() {
    signal_ = 0;
    struct sigaction action{};
    action.sa_handler = [](int signal) { signal_ = signal; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &action, &before_[i]);
  }
  ~Interruption() {
    for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &before_[i], nullptr);
  }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  static bool asked() { return signal_ != 0; }
  /// What a program that failed ends with: 1, or what a shell makes of the signal.
  static int status() { return asked() ? 128 + signal_ : 1; }

 private:
  static constexpr std::array signals{SIGINT, SIGTERM};
  static inline std::atomic<int> signal_ = 0;
  std::array<struct sigaction, signals.size()> before_{};
};

}  // namespace statescope

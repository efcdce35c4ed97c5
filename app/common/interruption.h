// Ctrl+C, or being told to end, as a wish that a command hears between two pieces of its work, so that nothing is left half-done.
#pragma once

#include <array>
#include <atomic>
#include <csignal>

#include "engine/checkpoint/file.h"

namespace statescope {

/// While it lives, the first such signal is remembered; the second ends the program, and its drafts. One at a time.
class Interruption {
 public:
  Interruption() {
    signal_ = 0;
    struct sigaction action {};
    ::sigfillset(&action.sa_mask);
    action.sa_handler = [](int signal) {
      signal_ = signal;
      restore();
    };
    for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &action, &before_[i]);
  }
  ~Interruption() { restore(); }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  static bool asked() { return signal_ != 0; }
  /// What a program that failed ends with: 1, or what a shell makes of the signal.
  static int status() { return asked() ? 128 + signal_ : 1; }

 private:
  static void restore() {
    for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &before_[i], nullptr);
    remove_drafts_on_signals();
  }

  static constexpr std::array signals{SIGINT, SIGTERM};
  static inline std::atomic<int> signal_ = 0;
  static inline std::array<struct sigaction, signals.size()> before_{};
};

}  // namespace statescope

// Ctrl+C, being told to end, a terminal or a reader that has gone: wishes that a command hears between two pieces of its work, so that
// nothing is left half-done.
#pragma once

#include <array>
#include <atomic>
#include <csignal>

#include "engine/checkpoint/file.h"

namespace statescope {

/// While it lives, the first such signal is remembered; the second ends the program, and its drafts. What is written for a reader that has
/// gone fails. Signals that whoever started the program had ignored (nohup) stay ignored. One at a time.
class Interruption {
 public:
  Interruption() {
    signal_ = 0;
    struct sigaction action {};
    ::sigfillset(&action.sa_mask);
    action.sa_handler = [](int signal) {
      signal_ = signal;
      if (signal != SIGPIPE) restore();
    };
    for (std::size_t i = 0; i < signals.size(); ++i) {
      ::sigaction(signals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) ::sigaction(signals[i], &action, nullptr);
    }
  }
  ~Interruption() {
    restore();
    ::sigaction(SIGPIPE, &before_[kPipe], nullptr);
  }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  static bool asked() { return signal_ != 0; }
  /// By the reader of what it writes, who wants no more of it.
  static bool was_reader() { return signal_ == SIGPIPE; }
  /// What a program that failed ends with: 1, or what a shell makes of the signal.
  static int status() { return asked() ? 128 + signal_ : 1; }

 private:
  static void restore() {
    for (std::size_t i = 0; i < kPipe; ++i) ::sigaction(signals[i], &before_[i], nullptr);
    remove_drafts_on_signals();
  }

  static constexpr std::array signals{SIGINT, SIGTERM, SIGHUP, SIGPIPE};
  static constexpr std::size_t kPipe = signals.size() - 1;
  static inline std::atomic<int> signal_ = 0;
  static inline std::array<struct sigaction, signals.size()> before_{};
};

}  // namespace statescope

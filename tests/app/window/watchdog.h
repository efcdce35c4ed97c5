// How much the interface thread had to do at a stretch.
#pragma once

#include <QObject>
#include <algorithm>
#include <ctime>
#include <utility>

namespace statescope {

/// CPU time of this thread, which other work on the machine does not lengthen.
inline double thread_cpu_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

/// The most CPU time between two rounds of the event loop: for so long at least, the window did not answer.
class Watchdog : public QObject {
 public:
  Watchdog() { startTimer(1); }
  double longest_ms() const { return longest_; }
  /// What it has been since the last time that this was asked.
  double take_longest_ms() { return std::exchange(longest_, 0); }

 protected:
  void timerEvent(QTimerEvent*) override {
    const double now = thread_cpu_ms();
    longest_ = std::max(longest_, now - std::exchange(last_, now));
  }

 private:
  double longest_ = 0, last_ = thread_cpu_ms();
};

}  // namespace statescope

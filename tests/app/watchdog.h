// How long the interface thread was busy at a stretch.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <algorithm>
#include <utility>

namespace statescope {

/// The longest time between two rounds of the event loop.
class Watchdog : public QObject {
 public:
  Watchdog() {
    startTimer(1);
    clock_.start();
  }
  qint64 longest_ms() const { return longest_; }
  /// What it has been since the last time that this was asked.
  qint64 take_longest_ms() { return std::exchange(longest_, 0); }

 protected:
  void timerEvent(QTimerEvent*) override { longest_ = std::max(longest_, clock_.restart()); }

 private:
  QElapsedTimer clock_;
  qint64 longest_ = 0;
};

}  // namespace statescope

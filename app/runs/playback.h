// What playing does beyond stepping: it stops at breakpoints and may go round in a range.
#pragma once

#include <QObject>
#include <vector>

#include "app/runs/breakpoints.h"
#include "app/runs/navigator.h"

namespace statescope {

/// Tokens [first, last] that are played again and again.
struct Loop {
  std::int64_t first = 0, last = 0;
};

class Playback : public QObject {
  Q_OBJECT

 public:
  explicit Playback(Navigator& navigator, QObject* parent = nullptr);

  const std::vector<Breakpoint>& breakpoints() const { return breakpoints_; }
  void add(Breakpoint breakpoint);
  void remove(std::size_t index);
  void enable(std::size_t index, bool enabled);
  /// Sets a breakpoint at the cursor's token, or removes the one there.
  void toggle_here();

  const std::optional<Loop>& loop() const { return loop_; }
  /// The whole run, or none.
  void toggle_loop();
  /// From, and up to, the cursor's token.
  void loop_from_here();
  void loop_to_here();

  void toggle_play();
  /// To the next needle, question, answer or breakpoint.
  void step_to_stop(int direction);

 Q_SIGNALS:
  void changed();                   // breakpoints or the range
  void said(const QString& words);  // why playing stopped, what a key did

 private:
  Known known() const;
  void ask_for_needle();
  void watch();
  void go_round();
  void go_round_from_end();
  void show_loop();

  Navigator& navigator_;
  std::vector<Breakpoint> breakpoints_;
  std::optional<Loop> loop_;
  NeedleQuestion asked_;                       // of the run shown
  std::shared_ptr<const NeedleStory> needle_;  // null: not asked for, or not known yet
  bool was_playing_ = false, paused_by_reader_ = false;
};

}  // namespace statescope

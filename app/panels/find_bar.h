// Under the text: words to find in it, how often they stand there, and the way from one place to the next.
#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QToolButton>
#include <QWidget>
#include <vector>

#include "app/runs/navigator.h"

namespace statescope {

/// Where a text stands, in small letters or capitals, with whatever white space; ascending. Nothing for an empty text.
struct FoundTokens {
  std::vector<std::int64_t> first;  // in which it begins
  std::vector<std::int64_t> all;    // that have something of it
};
FoundTokens tokens_with(const RunInfo& run, const QString& text);

class FindBar : public QWidget {
  Q_OBJECT

 public:
  explicit FindBar(Navigator& navigator, QWidget* parent = nullptr);

  void set_frame(const Frame& frame);
  /// Comes up with the keyboard in its line.
  void begin();
  void leave();
  const FoundTokens& found() const { return found_; }

 Q_SIGNALS:
  void found_changed();
  void left();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void find();
  void take(const std::shared_ptr<const RunInfo>& run, const QString& text, FoundTokens tokens);
  void go(int direction);
  void show_place();

  Navigator& navigator_;
  QLineEdit* line_;
  QLabel* place_;
  QToolButton *previous_, *next_, *close_;
  FoundTokens found_;
  bool goes_ = false;  // to the first one, once it is known
};

}  // namespace statescope

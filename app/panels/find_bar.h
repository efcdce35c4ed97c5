// Under the text: words to find in it, how often they stand there, and the way from one place to the next.
#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QToolButton>
#include <QWidget>
#include <vector>

#include "app/runs/navigator.h"

namespace statescope {

/// The tokens in which `text` begins, in small letters or capitals, with whatever white space. Nothing for an empty text.
std::vector<std::int64_t> tokens_with(const RunInfo& run, const QString& text);

class FindBar : public QWidget {
  Q_OBJECT

 public:
  explicit FindBar(Navigator& navigator, QWidget* parent = nullptr);

  void set_frame(const Frame& frame);
  /// Comes up with the keyboard in its line.
  void begin();
  void leave();
  const std::vector<std::int64_t>& found() const { return found_; }

 Q_SIGNALS:
  void found_changed();
  void left();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void find();
  void take(const std::shared_ptr<const RunInfo>& run, const QString& text, std::vector<std::int64_t> tokens);
  void go(int direction);
  void show_place();

  Navigator& navigator_;
  QLineEdit* line_;
  QLabel* place_;
  QToolButton *previous_, *next_, *close_;
  std::vector<std::int64_t> found_;
  bool goes_ = false;  // to the first one, once it is known
};

}  // namespace statescope

// Time: first, back, play, forward, last; how fast; and where.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QSlider>
#include <QWidget>

#include "app/controls/actions.h"
#include "app/controls/typed_number.h"
#include "app/runs/navigator.h"
#include "app/runs/playback.h"

class QToolButton;

namespace statescope {

/// The token's number: Return goes there; Esc, or leaving it, gives up what was typed.
class TokenNumber : public NumberBox {
  Q_OBJECT

 public:
  explicit TokenNumber(QWidget* parent = nullptr);
  /// Where the reader stands. What is being typed stays.
  void set_token(int token);
  /// The arrows go at once.
  void stepBy(int steps) override;

 Q_SIGNALS:
  void chosen(int token);
  void left();  // by Return or Esc

 protected:
  bool event(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;

 private:
  void give_up();

  int token_ = 0;
};

/// The place of the token in the run, with breakpoints above it and the range that is played round and round below.
class TimeSlider : public QSlider {
  Q_OBJECT

 public:
  using QSlider::QSlider;
  void set_marks(std::vector<std::int64_t> tokens, const std::optional<Loop>& loop);
  /// Places of what is looked for in the text: lines across it.
  void set_found(std::vector<std::int64_t> tokens);
  const std::vector<std::int64_t>& found() const { return found_; }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  std::vector<std::int64_t> tokens_, found_;
  std::optional<Loop> loop_;
};

class Transport : public QWidget {
  Q_OBJECT

 public:
  Transport(Navigator& navigator, Actions& actions, QWidget* parent = nullptr);

  void set_frame(const Frame& frame);
  /// Puts the keyboard into the token's number.
  void ask_for_token();
  void step_speed(int direction);
  void show_marks(const Playback& playback);
  void show_found(const std::vector<std::int64_t>& tokens) { slider_->set_found(tokens); }

 Q_SIGNALS:
  void asked();                    // a number was entered or given up
  void spoke(const QString& why);  // why what was entered is no token's

 private:
  void show_place();
  void show_playing();

  Navigator& navigator_;
  QList<QToolButton*> buttons_;
  QComboBox* speed_;
  TimeSlider* slider_;
  TokenNumber* number_;
  QLabel* count_;
};

}  // namespace statescope

// Time: first, back, play, forward, last; how fast; and where.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QSlider>
#include <QSpinBox>
#include <QWidget>
#include <functional>

#include "app/navigator.h"

class QAction;
class QToolButton;

namespace statescope {

class Transport : public QWidget {
  Q_OBJECT

 public:
  /// `action` finds the window's action of a command.
  Transport(Navigator& navigator, const std::function<QAction*(std::string_view)>& action, QWidget* parent = nullptr);

  void set_frame(const Frame& frame);
  /// Puts the keyboard into the token's number.
  void ask_for_token();
  void step_speed(int direction);

 Q_SIGNALS:
  void asked();  // a number was entered

 private:
  void show_place();
  void show_playing();

  Navigator& navigator_;
  QList<QToolButton*> buttons_;
  QComboBox* speed_;
  QSlider* slider_;
  QSpinBox* number_;
  QLabel* count_;
};

}  // namespace statescope

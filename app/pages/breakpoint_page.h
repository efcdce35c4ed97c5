// Where playing stops, as a list that can be changed.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>

#include "app/runs/playback.h"

namespace statescope {

class BreakpointPage : public QWidget {
  Q_OBJECT

 public:
  explicit BreakpointPage(Playback& playback, QWidget* parent = nullptr);

 private:
  void fill();
  void show_kind();
  void add();
  void remove();

  Playback& playback_;
  QComboBox* kind_;
  QLineEdit* value_;
  QListWidget* list_;
  QLabel* wrong_;  // why what was typed cannot be added
  QPushButton *add_, *remove_;
  QLabel* loop_;
};

}  // namespace statescope

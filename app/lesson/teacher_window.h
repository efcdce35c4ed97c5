// The teacher's own window while the class sees the other: all of the step's text, the run's answer, what comes next, and the time.
#pragma once

#include <QElapsedTimer>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QTimer>

#include "app/lesson/lesson_page.h"

namespace statescope {

class TeacherWindow : public QWidget {
  Q_OBJECT

 public:
  /// The keys of `actions` do here what they do in `owner`.
  TeacherWindow(LessonPlayer& player, const LessonPage::FindAction& action, const QList<QAction*>& actions, QWidget* owner);

  void set_frame(const Frame& frame);

 Q_SIGNALS:
  void visible_changed();

 protected:
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;

 private:
  void enter();
  void show_step();
  void show_time();

  LessonPlayer& player_;
  QString lesson_;  // whose time is told
  QElapsedTimer since_begin_;
  QTimer second_;
  QLabel *place_, *time_;
  QScrollArea* scroll_;  // what follows is in it
  QLabel *heading_, *caption_, *prose_, *question_, *answer_, *reveal_, *next_heading_, *next_;
  QPushButton *back_, *forward_;
};

}  // namespace statescope

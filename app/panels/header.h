// The line under the menu: which model, on what, and what is going on; below it, what went wrong.
#pragma once

#include <QFrame>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QToolButton>
#include <functional>

#include "app/panels/model_chips.h"

class QAction;

namespace statescope {

/// How far keyframes are from each other, what the recording takes and what it may take.
QString recording_words(const RecordingInfo& recording);

class Header : public QWidget {
  Q_OBJECT

 public:
  /// `side` shows and hides the right side, `cancel` stops what is going on, `about` tells of the model.
  Header(Navigator& navigator, Comparison& comparison, QAction* side, QAction* cancel, QAction* about, QWidget* parent = nullptr);

  void set_frame(const Frame& frame);
  ModelChips& chips() const { return *chips_; }
  /// Whether it says which models answer rightly: not while a lesson asks that.
  void set_answers_told(bool told);

 private:
  void show_model();
  void show_answer();
  void show_chips();
  void show_progress(double fraction, const QString& what);
  void show_rest();
  void show_facts();

  Navigator& navigator_;
  Comparison& comparison_;
  bool answers_told_ = true;
  ModelChips* chips_;  // instead of model_, answer_ and details_ while models are compared
  QLabel *model_, *branch_, *answer_, *details_, *what_;
  QProgressBar* progress_;
  QToolButton *cancel_, *side_, *no_text_, *notes_;  // the last two: what is unusual about the model, where something is
};

/// One message, where it happened, until it is dismissed or the next thing works.
class ErrorBar : public QFrame {
  Q_OBJECT

 public:
  explicit ErrorBar(QWidget* parent = nullptr);

  void set_frame(const Frame& frame);
  void show_message(const QString& message);
  /// What the reader may do about the message that stands; it goes with that.
  void offer(const QString& words, std::function<void()> act);
  void dismiss();
  QString message() const { return message_->text(); }

 Q_SIGNALS:
  void dismissed();  // by the reader

 private:
  QLabel* message_;
  QPushButton* offer_;
  std::function<void()> act_;
  QToolButton* dismiss_;
};

}  // namespace statescope

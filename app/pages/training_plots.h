// The course of a training: small diagrams over its steps, a line for each training of the folder.
#pragma once

#include <QWidget>
#include <vector>

#include "app/pages/training_watch.h"
#include "views/view.h"

namespace statescope {

class TrainingPlots : public QWidget {
  Q_OBJECT

 public:
  explicit TrainingPlots(QWidget* parent = nullptr);

  void set_frame(const Frame& frame);
  void show_steps(const std::vector<TrainingStep>& steps);
  /// The step with a mark around its points; −1: none.
  void mark(int step);
  /// What is to be seen, in sentences.
  static QString described(const std::vector<TrainingStep>& steps);

 Q_SIGNALS:
  void chosen(int step);  // by a click on one of its points

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  bool event(QEvent* event) override;

 private:
  struct Series {
    std::string name;
    std::vector<std::size_t> steps;
  };
  Rect panel(std::size_t trend) const;
  Rect plot(std::size_t trend) const;
  Point place(std::size_t trend, std::size_t step) const;
  /// The step whose point is nearest, within reach; −1: none.
  int step_at(QPointF at) const;
  void draw_panel(Canvas& canvas, std::size_t trend) const;
  void draw_point(Canvas& canvas, Point at, const TrainingStep& step, Color color, bool marked) const;

  Frame frame_;
  std::vector<TrainingStep> steps_;
  std::vector<Series> series_;
  std::vector<double> along_;  // [steps] where each stands along the axis, 0 … 1
  int marked_ = -1;
};

}  // namespace statescope

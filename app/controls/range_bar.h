// Under a view: which numbers the colours of its heatmap span, over a histogram of the numbers shown.
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QFrame>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>

#include "views/view.h"

namespace statescope {

/// The histogram with a handle at each end of the range; what lies beyond it is hatched.
class RangeHistogram : public QWidget {
  Q_OBJECT

 public:
  explicit RangeHistogram(QWidget* parent);
  void show_numbers(const Shading& shading, const Theme& theme);

 Q_SIGNALS:
  void dragged(float low, float high);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;

 private:
  double place_of(float number) const;
  float number_at(double x) const;

  Shading shading_;
  Theme theme_;
  bool drags_high_ = true;
};

/// Where it is too narrow for all, the numbers of the range go last: they are whole or not there.
class RangeBar : public QFrame {
  Q_OBJECT

 public:
  explicit RangeBar(QWidget* parent);
  /// As narrow as its view: it folds.
  QSize minimumSizeHint() const override;
  /// `shading`: of the view as it is drawn now, `choice` what it was asked for.
  void show_range(const Shading& shading, const RangeChoice& choice, const Theme& theme);

 Q_SIGNALS:
  void chosen(const RangeChoice& choice);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void choose_fixed(float low, float high);
  void take_typed();
  QString wrong_end() const;
  void show_wrong(const QString& words);
  void fold();

  QHBoxLayout* row_;
  QComboBox* fit_;
  RangeHistogram* histogram_;
  QLineEdit *low_, *high_;
  QCheckBox* logarithmic_;
  QLabel *beyond_, *wrong_;  // wrong: why what was typed is not the range
  Shading shading_;
  RangeChoice choice_;
};

}  // namespace statescope

// The focused view as a figure: how it will look, its size and style, and the files it is written to.
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTimer>

#include "app/figure/spec.h"

namespace statescope {

class MainWindow;
class ViewPanel;

class FigurePage : public QWidget {
  Q_OBJECT

 public:
  explicit FigurePage(MainWindow& window, QWidget* parent = nullptr);

  /// Offers a name for the view in focus, and shows it.
  void refresh();
  /// The view has been built again, or another is in focus: what is shown follows.
  void follow(const ViewPanel& panel);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void make_controls();
  void lay_out();
  FigureSpec style() const;
  void show_preview();
  void choose_size(int index);
  void browse();
  void write();
  void told(const QString& words);

  MainWindow& window_;
  QLabel *view_, *preview_, *note_, *result_;
  QLineEdit* path_;
  QComboBox *size_, *colors_, *eyes_, *family_;
  QDoubleSpinBox *width_, *height_, *type_;
  QCheckBox *title_, *color_bar_, *marks_, *sentences_, *data_, *caption_;
  QPushButton* write_;
  QTimer preview_delay_;
};

}  // namespace statescope

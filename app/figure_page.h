// The focused view as a file: its name, its size.
#pragma once

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>

namespace statescope {

class MainWindow;

class FigurePage : public QWidget {
  Q_OBJECT

 public:
  explicit FigurePage(MainWindow& window, QWidget* parent = nullptr);

  /// Offers a name for the view in focus.
  void refresh();

 private:
  void browse();
  void write();

  MainWindow& window_;
  QLabel *view_, *result_;
  QLineEdit* path_;
  QComboBox* width_;
  QDoubleSpinBox *height_, *type_;
};

}  // namespace statescope

// The focused view as a figure: how it will look, its size and style, and the files it is written to.
#pragma once

#include <QBoxLayout>
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTimer>

#include "app/controls/typed_number.h"
#include "app/figure/from_view.h"

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
  bool is_height_free() const;
  void fit_height();
  void browse();
  QString why_not_there() const;
  void ask_or_write();
  void ask_to_replace(const QStringList& files);
  void replace();
  void keep();
  FigureExport figure_of(const ViewRecipe& recipe) const;
  void write(FigureExport figure);
  void told(const QString& words);

  MainWindow& window_;
  QLabel *view_, *preview_, *note_, *result_;
  QLineEdit* path_;
  QComboBox *size_, *colors_, *eyes_, *family_;
  NumberBox *width_, *height_, *type_;
  QCheckBox *title_, *color_bar_, *marks_, *sentences_, *data_, *caption_;
  QPushButton *write_, *keep_, *replace_;
  QWidget* question_;              // keep what is there, or replace it
  QStringList asked_;              // which files that is about
  QStringList allowed_;            // may be replaced without a question: this page wrote them, or was told to
  QBoxLayout* columns_ = nullptr;  // the picture and its file, then the style: side by side where there is room
  QTimer preview_delay_;
};

}  // namespace statescope

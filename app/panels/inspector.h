// Exactly what is this? Where the reader stands, the cell under the pointer, what the model expects next, and the focused view as a table.
#pragma once

#include <QComboBox>
#include <QFormLayout>
#include <QLabel>
#include <QMenu>
#include <QTableView>
#include <QTableWidget>
#include <QWidget>
#include <optional>

#include "app/controls/actions.h"
#include "app/controls/table_model.h"
#include "app/runs/navigator.h"

namespace statescope {

class ViewPanel;

class Inspector : public QWidget {
  Q_OBJECT

 public:
  explicit Inspector(Navigator& navigator, Actions& actions, QWidget* parent = nullptr);

  void set_frame(const Frame& frame);
  /// The view whose values the table repeats.
  void show_table_of(const ViewPanel& panel);
  /// Of the table that has the keyboard; null: none has.
  QTableView* focused_table() const;
  /// Whether these are the values of the view in focus.
  bool shows_view(const QTableView& table) const { return &table == table_; }
  /// Copying from `table`: the value in the marked cell, the chosen rows, all of it where no view has it. Tabs stand between the cells.
  void fill_menu(QMenu& menu, QTableView& table);

 Q_SIGNALS:
  void menu_wanted(QTableView* table, QPoint at);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void show_place();
  void show_cell();
  void show_rest();
  void show_predictions();
  void fill(QComboBox& picker, const QStringList& names, std::int64_t chosen);
  QLabel* add_heading(const QString& text);
  QLabel* add_value(QFormLayout& form, const QString& name);

  Navigator& navigator_;
  QComboBox *layer_, *head_, *slot_;
  QLabel *cell_, *before_, *now_, *difference_, *accuracy_;
  QTableWidget* predictions_;
  QLabel* table_heading_;
  QTableView* table_;
  TableModel* model_;
  float scale_ = 1;
};

}  // namespace statescope

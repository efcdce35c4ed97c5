// All keys: to find, to change, to have back.
#pragma once

#include <QKeySequenceEdit>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTableWidget>

#include "app/controls/actions.h"
#include "views/view.h"

namespace statescope {

class KeyPage : public QWidget {
  Q_OBJECT

 public:
  explicit KeyPage(Actions& actions, QWidget* parent = nullptr);

  void set_frame(const Frame& frame);

 private:
  void fill();
  void filter();
  void show_chosen();
  void show_conflict();
  void change();
  const Actions::Row* chosen() const;

  Actions& actions_;
  std::vector<const Actions::Row*> rows_;  // as they are listed
  QLineEdit* find_;
  QTableWidget* list_;
  QLabel *name_, *conflict_;
  QKeySequenceEdit* key_;
  QPushButton *change_, *none_, *reset_, *reset_all_;
};

}  // namespace statescope

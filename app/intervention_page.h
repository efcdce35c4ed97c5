// Interventions on the run shown, and the branches that they have made.
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QToolButton>
#include <QTreeWidget>

#include "app/navigator.h"

namespace statescope {

/// The form writes a line (engine/run/intervention.h) of where the cursor is, until the reader types one; what is in the line is applied.
class InterventionPage : public QWidget {
  Q_OBJECT

 public:
  /// `beside`: shows the parent branch beside the one shown.
  InterventionPage(Navigator& navigator, QAction* beside, QWidget* parent = nullptr);

 private:
  QLayout* make_form();
  void make_tree();
  void make_connections();
  void show_kind();
  void write_line();
  void check_line();
  void apply();
  void show_tree();
  void show_message(const QString& message);
  double value() const;

  Navigator& navigator_;
  QComboBox *kind_, *value_;
  QLabel* value_name_;
  QCheckBox* all_layers_;
  QLineEdit* line_;
  QLabel* message_;  // what is wrong with the line, or what may stand in it
  QPushButton *apply_, *undo_, *redo_;
  QTreeWidget* tree_;
  QToolButton* beside_;
};

}  // namespace statescope

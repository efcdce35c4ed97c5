// Interventions on the run shown, and the branches that they have made.
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTreeWidget>

#include "app/runs/comparison.h"
#include "app/runs/interventions.h"

namespace statescope {

/// The form writes a line (engine/run/intervention.h) of where the cursor is, until the reader types one; what is in the line is applied.
class InterventionPage : public QWidget {
  Q_OBJECT

 public:
  /// `comparison`: where a branch stands beside the one shown.
  InterventionPage(Navigator& navigator, Comparison& comparison, QWidget* parent = nullptr);

  /// Reads a prompt from a file, whose states can be imported then.
  void add_prompt(const std::filesystem::path& path);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  QLayout* make_form();
  void make_tree();
  void make_beside();
  void make_connections();
  void show_kind();
  void write_line();
  void check_line();
  void apply();
  void show_tree();
  void fit_columns();
  void show_beside();
  void put_beside(int index);
  void choose_prompt();
  void show_message(const QString& message);
  std::optional<double> value() const;
  QString what_is_wrong() const;
  const InterventionRow& chosen_row() const { return intervention_rows()[static_cast<std::size_t>(kind_->currentIndex())]; }

  Navigator& navigator_;
  Comparison& comparison_;
  QComboBox *kind_, *value_;
  QLabel *where_, *value_name_;
  QCheckBox* all_layers_;
  QLineEdit* line_;
  QLabel* message_;                                // what is wrong with the line, or what may stand in it
  QPushButton *another_, *apply_, *undo_, *redo_;  // another: prompt, to import from
  QTreeWidget* tree_;
  QWidget* beside_row_;
  QComboBox* beside_;  // which branch stands beside the one shown
};

}  // namespace statescope

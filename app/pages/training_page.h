// A training under way, as its checkpoints come: the course of it, and the verdict of each; any of them opens in the window.
#pragma once

#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QTableView>

#include "app/controls/table_model.h"
#include "app/pages/training_plots.h"
#include "app/pages/training_watch.h"

namespace statescope {

class TrainingPage : public QWidget {
  Q_OBJECT

 public:
  TrainingPage(TrainingWatch::Inspect inspect, std::optional<KeptResults> kept, QWidget* parent = nullptr);

  void set_frame(const Frame& frame);
  TrainingWatch& watch() { return watch_; }
  QTableView& table() { return *table_; }

 Q_SIGNALS:
  void folder_wanted();  // which one is to be asked for
  void step_chosen(const TrainingStep& step);
  void spoke(const QString& words);  // what is new, also for a screen reader

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void show_state();
  void show_steps();
  void show_told();
  void show_skipped();
  void choose(int row);
  int current() const;

  TrainingWatch watch_;
  QLabel *folder_, *doing_, *told_, *skipped_;
  QProgressBar* progress_;
  QPushButton *stop_, *other_;
  TrainingPlots* plots_;
  QTableView* table_;
  TableModel* model_;
  QStringList whys_;                // the newest last
  std::filesystem::path told_of_;   // the folder that they are of
  std::vector<std::string> known_;  // "PATH verdict" of what has been told
  bool rests_ = false;
};

}  // namespace statescope

// What the program's own words mean: fair, clear, recomputed and the others.
#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QWidget>

namespace statescope {

class WordsPage : public QWidget {
  Q_OBJECT

 public:
  explicit WordsPage(QWidget* parent = nullptr);

  /// Only those that stand in `text`, until others are asked for.
  void show_used_in(const QString& text);
  void show_all();

 private:
  void filter();

  QLineEdit* find_;
  QListWidget* list_;
  QLabel* nothing_;
  QPushButton* all_;
  QString text_;  // whose words are shown; empty: all
};

}  // namespace statescope

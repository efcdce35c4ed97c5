// What the window shows while nothing is open, or when asked for: everything that can be opened, by shelf, and a line to find it by.
#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QThreadPool>
#include <QTreeWidget>
#include <QWidget>
#include <atomic>
#include <memory>
#include <vector>

#include "app/start/shelf.h"
#include "views/view.h"

class QAction;

namespace statescope {

class StartPage : public QWidget {
  Q_OBJECT

 public:
  /// `actions`: other ways to open something, a button each.
  explicit StartPage(const QList<QAction*>& actions, QWidget* parent = nullptr);
  ~StartPage() override;

  void set_frame(const Frame& frame);
  /// What there is now; what is known of the models comes by and by.
  void fill(std::vector<ShelfItem> items);
  /// The three keys that a beginner needs; they are shown until something has been opened.
  void show_hints(bool shown);
  /// Puts the keyboard into the line.
  void begin();

 Q_SIGNALS:
  void chosen(Shelf shelf, const std::filesystem::path& path);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void showEvent(QShowEvent* event) override;

 private:
  void ask_about_models();
  void show_about(const std::filesystem::path& model, const QString& about);
  void set_words(QTreeWidgetItem& row, const ShelfItem& item);
  void filter();
  void choose(QTreeWidgetItem* row);
  void go(int direction);
  bool take_letter(const QObject* watched, QKeyEvent& key);
  std::vector<QTreeWidgetItem*> shown_rows() const;

  QLineEdit* line_;
  QTreeWidget* tree_;
  QLabel *hints_, *nothing_;
  std::vector<ShelfItem> items_;
  std::vector<QTreeWidgetItem*> rows_;         // parallel to items_
  std::shared_ptr<std::atomic<bool>> asking_;  // null: not asked yet; false: the answers are not wanted any more
  QThreadPool readers_;                        // ends with the page: no file is open when the program ends
};

}  // namespace statescope

// The window's actions, made from the table of commands, with the keys that the reader has given them.
#pragma once

#include <QAction>
#include <QObject>
#include <QSettings>
#include <map>
#include <string>
#include <vector>

#include "app/controls/commands.h"

class QMenu;
class QMenuBar;

namespace statescope {

class Actions : public QObject {
  Q_OBJECT

 public:
  /// The keys work in `owner`; commands are run on `window`. `settings` may be null: then nothing is remembered.
  Actions(QWidget& owner, MainWindow& window, QSettings* settings);

  struct Row {
    std::string id;  // of the command; where it has one entry per key, with the entry's number after it: "slot3"
    const Command* command;
    QAction* action;
    QList<QKeySequence> usual;  // keys of the table
  };
  /// In the order of the table.
  const std::vector<Row>& rows() const { return rows_; }
  const Row& row(std::string_view id) const;
  QAction* action(std::string_view id) const { return row(id).action; }

  /// The action that `key` belongs to now; null: none.
  const Row* owner_of(const QKeySequence& key) const;
  /// Takes the keys from whatever else has them.
  void set_keys(const Row& row, const QList<QKeySequence>& keys);
  void reset_keys(const Row& row) { set_keys(row, row.usual); }
  void reset_all_keys();

  /// Gives the widget a tooltip of `words` and the first keys of these commands, now and whenever keys change.
  void tell_keys(QWidget& widget, const QString& words, const std::vector<std::string>& ids);

  void fill(QMenuBar& bar);
  /// The menu as it was filled.
  QMenu* menu(Menu menu) const { return menus_.at({menu, ""}); }
  void update_ticks();

 Q_SIGNALS:
  void triggered(const Command& command, int key);
  void keys_changed();

 private:
  void apply_keys(const Row& row, const QList<QKeySequence>& keys);

  MainWindow& window_;
  QSettings* settings_;
  std::vector<Row> rows_;
  std::map<std::pair<Menu, std::string>, QMenu*> menus_;  // the second: a submenu's title, or empty
};

}  // namespace statescope

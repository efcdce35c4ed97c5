#include "app/controls/actions.h"

#include <QMenuBar>
#include <QWidget>
#include <algorithm>

namespace statescope {
namespace {

QString setting_of(const Actions::Row& row) { return "keys/" + QString::fromStdString(row.id); }

/// The first of its letters that none before it has, those that begin a word first.
QString with_letter(const QString& title, QString& taken) {
  for (const bool begins_word : {true, false}) {
    for (qsizetype i = 0; i < title.size(); ++i) {
      const QChar letter = title[i].toLower();
      if (!letter.isLetter() || taken.contains(letter) || (begins_word && i > 0 && title[i - 1].isLetter())) continue;
      taken += letter;
      return QString(title).insert(i, QLatin1Char('&'));
    }
  }
  return title;
}

/// Of its entries, while it is open: elsewhere the same actions' names have no mark in them.
void show_letters(QMenu& menu) {
  QString taken;
  for (QAction* entry : menu.actions()) {
    if (entry->isSeparator() || entry->text().contains('&')) continue;
    const QString name = entry->text();
    entry->setText(with_letter(name, taken));
    QObject::connect(
        &menu, &QMenu::aboutToHide, entry, [entry, name] { entry->setText(name); }, Qt::SingleShotConnection);
  }
}

}  // namespace

Actions::Actions(QWidget& owner, MainWindow& window, QSettings* settings) : window_(window), settings_(settings) {
  for (const Command& command : commands()) {
    const QList<QKeySequence> keys = keys_of(command);
    const int copies = command.one_per_key ? static_cast<int>(keys.size()) : 1;
    for (int i = 0; i < copies; ++i) {
      const QString text = command_words(command.text), number = QString::number(i + 1);
      auto* action = new QAction(command.one_per_key ? text + " " + number : text, &owner);
      action->setCheckable(command.checked != nullptr);
      connect(action, &QAction::triggered, this, [this, &command, i] { Q_EMIT triggered(command, i); });
      owner.addAction(action);  // so that its keys work where the menu is hidden
      rows_.push_back({std::string(command.id) + (command.one_per_key ? number.toStdString() : std::string()), &command, action,
                       command.one_per_key ? QList{keys[i]} : keys});
      apply_keys(rows_.back(), rows_.back().usual);
    }
  }
  if (!settings_) return;
  for (const Row& row : rows_) {
    const QString keys = settings_->value(setting_of(row), "usual").toString();
    if (keys != "usual") apply_keys(row, keys.isEmpty() ? QList<QKeySequence>() : QKeySequence::listFromString(keys));
  }
}

const Actions::Row& Actions::row(std::string_view id) const { return *std::ranges::find(rows_, id, &Row::id); }

const Actions::Row* Actions::owner_of(const QKeySequence& key) const {
  const auto found = std::ranges::find_if(rows_, [&](const Row& row) { return row.action->shortcuts().contains(key); });
  return found == rows_.end() ? nullptr : &*found;
}

void Actions::apply_keys(const Row& row, const QList<QKeySequence>& keys) {
  row.action->setShortcuts(keys);
  const QString text = row.action->text();
  row.action->setToolTip(keys.isEmpty() ? text : QStringLiteral("%1 (%2)").arg(text, keys.first().toString(QKeySequence::NativeText)));
}

void Actions::set_keys(const Row& row, const QList<QKeySequence>& keys) {
  const auto give = [this](const Row& to, const QList<QKeySequence>& given) {
    apply_keys(to, given);
    if (!settings_) return;
    if (given == to.usual)
      settings_->remove(setting_of(to));
    else
      settings_->setValue(setting_of(to), QKeySequence::listToString(given));
  };
  for (const QKeySequence& key : keys) {
    const Row* owner = owner_of(key);
    if (!owner || owner == &row) continue;
    QList<QKeySequence> left = owner->action->shortcuts();
    left.removeAll(key);
    give(*owner, left);
  }
  give(row, keys);
  Q_EMIT keys_changed();
}

void Actions::reset_all_keys() {
  for (const Row& row : rows_) apply_keys(row, row.usual);
  if (settings_) settings_->remove("keys");
  Q_EMIT keys_changed();
}

void Actions::tell_keys(QWidget& widget, const QString& words, const std::vector<std::string>& ids) {
  const auto tell = [this, &widget, words, ids] {
    QStringList keys;
    for (const std::string& id : ids)
      if (const QKeySequence key = action(id)->shortcut(); !key.isEmpty()) keys += key.toString(QKeySequence::NativeText);
    widget.setToolTip(keys.isEmpty() ? words : QStringLiteral("%1 (%2)").arg(words, keys.join(QStringLiteral("  "))));
  };
  tell();
  connect(this, &Actions::keys_changed, &widget, tell);
}

/// Titles have a letter to open them by. What would do nothing is grey while a menu shows it; its keys stay.
void Actions::fill(QMenuBar& bar) {
  const auto add_menu = [this](QMenu* menu) {
    const auto grey = [this, menu](bool all_on) {
      for (const Row& row : rows_)
        if (menu->actions().contains(row.action)) row.action->setEnabled(all_on || is_available(*row.command, window_));
    };
    connect(menu, &QMenu::aboutToShow, this, [grey, menu] {
      grey(false);
      show_letters(*menu);
    });
    connect(menu, &QMenu::aboutToHide, this, [grey] { grey(true); });
    return menu;
  };
  QString letters;
  for (const Row& row : rows_) {
    QMenu*& menu = menus_[{row.command->menu, ""}];
    if (!menu) menu = add_menu(bar.addMenu(with_letter(title_of(row.command->menu), letters)));
    if (begins_group(*row.command)) menu->addSeparator();
    if (!row.command->submenu) {
      menu->addAction(row.action);
      continue;
    }
    QMenu*& submenu = menus_[{row.command->menu, row.command->submenu}];
    if (!submenu) submenu = add_menu(menu->addMenu(command_words(row.command->submenu)));
    submenu->addAction(row.action);
  }
}

void Actions::update_ticks() {
  for (const Row& row : rows_)
    if (row.command->checked) row.action->setChecked(row.command->checked(window_));
}

}  // namespace statescope

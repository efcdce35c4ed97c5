#include "app/pages/key_page.h"

#include <QGridLayout>
#include <QHeaderView>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <algorithm>
#include <array>

#include "app/controls/fuzzy.h"

namespace statescope {
namespace {

QString keys_text(const Actions::Row& row) {
  return QKeySequence::listToString(row.action->shortcuts(), QKeySequence::NativeText).replace("; ", ", ");
}

/// With the group that says what it is about: "1× · Type and spacing".
QString name_of(const Actions::Row& row) {
  const QString name = row.action->text(), group = row.command->submenu ? command_words(row.command->submenu) : QString();
  return group.isEmpty() || name.contains(group, Qt::CaseInsensitive) ? name : QStringLiteral("%1 · %2").arg(name, group);
}

/// Stepping and playing come first, files and help last.
int place_of(Menu menu) {
  constexpr std::array order = {Menu::go, Menu::run, Menu::view, Menu::learn, Menu::file, Menu::help};
  return static_cast<int>(std::ranges::find(order, menu) - order.begin());
}

}  // namespace

KeyPage::KeyPage(Actions& actions, QWidget* parent) : QWidget(parent), actions_(actions) {
  find_ = new QLineEdit(this);
  find_->setPlaceholderText(tr("Find a command or a key"));
  find_->setAccessibleName(tr("Find a command or a key"));
  find_->setClearButtonEnabled(false);
  list_ = new QTableWidget(0, 2, this);
  list_->setAccessibleName(tr("Keys"));
  list_->setObjectName("keys");
  list_->horizontalHeader()->hide();
  list_->verticalHeader()->hide();
  list_->horizontalHeader()->setSectionResizeMode(0, QHeaderView::ResizeToContents);
  list_->horizontalHeader()->setStretchLastSection(true);
  list_->verticalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);  // a long name takes a second line
  list_->setShowGrid(false);
  list_->setTabKeyNavigation(false);
  list_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  list_->setSelectionBehavior(QAbstractItemView::SelectRows);
  list_->setSelectionMode(QAbstractItemView::SingleSelection);
  name_ = new QLabel(this);
  name_->setObjectName("heading");
  name_->setWordWrap(true);
  key_ = new QKeySequenceEdit(this);
  key_->setAccessibleName(tr("New key"));
  conflict_ = new QLabel(this);
  conflict_->setObjectName("small");
  conflict_->setWordWrap(true);
  const auto add_button = [this](const QString& text, const QString& help, const auto& act) {
    auto* button = new QPushButton(text, this);
    button->setToolTip(help);
    button->setFocusPolicy(Qt::StrongFocus);
    connect(button, &QPushButton::clicked, this, act);
    return button;
  };
  change_ = add_button(tr("Use it"), tr("Gives the command this key instead of the ones it has"), [this] { change(); });
  none_ = add_button(tr("No key"), tr("The command stays in the menu and in the palette"), [this] { actions_.set_keys(*chosen(), {}); });
  reset_ = add_button(tr("Default key"), tr("Gives the command the key it had at first"), [this] { actions_.reset_keys(*chosen()); });
  reset_all_ = add_button(tr("All default keys"), tr("Every command has its default key"), [this] { actions_.reset_all_keys(); });

  auto* buttons = new QGridLayout;
  buttons->addWidget(change_, 0, 0);
  buttons->addWidget(none_, 0, 1);
  buttons->addWidget(reset_, 1, 0);
  buttons->addWidget(reset_all_, 1, 1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(find_);
  layout->addWidget(list_, 1);
  for (QWidget* widget : std::initializer_list<QWidget*>{name_, key_, conflict_}) layout->addWidget(widget);
  layout->addLayout(buttons);
  setFocusProxy(find_);

  connect(find_, &QLineEdit::textChanged, this, &KeyPage::filter);
  connect(list_, &QTableWidget::currentCellChanged, this, &KeyPage::show_chosen);
  connect(key_, &QKeySequenceEdit::keySequenceChanged, this, &KeyPage::show_conflict);
  connect(&actions_, &Actions::keys_changed, this, [this] {
    fill();
    show_chosen();
  });
  for (const Actions::Row& row : actions.rows()) rows_.push_back(&row);
  std::ranges::stable_sort(rows_, {}, [](const Actions::Row* row) { return place_of(row->command->menu); });
  fill();
  list_->setCurrentCell(0, 0);
}

void KeyPage::set_frame(const Frame& frame) {
  list_->verticalHeader()->setMinimumSectionSize(static_cast<int>(23 * frame.scale));
  layout()->setSpacing(static_cast<int>(7 * frame.scale));
}

/// One row for each action.
void KeyPage::fill() {
  const QSignalBlocker quiet(list_);
  list_->setRowCount(static_cast<int>(rows_.size()));
  for (int i = 0; i < list_->rowCount(); ++i) {
    const Actions::Row& row = *rows_[static_cast<std::size_t>(i)];
    list_->setItem(i, 0, new QTableWidgetItem(keys_text(row)));
    list_->setItem(i, 1, new QTableWidgetItem(name_of(row)));
    list_->item(i, 1)->setToolTip(name_of(row));
    QFont font = list_->font();
    font.setBold(row.action->shortcuts() != row.usual);  // changed
    list_->item(i, 0)->setFont(font);
  }
}

void KeyPage::filter() {
  const std::string typed = find_->text().toStdString();
  std::optional<int> best;
  int best_row = -1;
  for (int i = 0; i < list_->rowCount(); ++i) {
    const QString words = list_->item(i, 1)->text() + " " + list_->item(i, 0)->text();
    const std::optional<int> score = fuzzy_score(typed, words.toStdString());
    list_->setRowHidden(i, !score);
    if (score > best) best = score, best_row = i;
  }
  list_->setCurrentCell(best_row, 0);
}

const Actions::Row* KeyPage::chosen() const {
  const int row = list_->currentRow();
  return row < 0 ? nullptr : rows_[static_cast<std::size_t>(row)];
}

void KeyPage::show_chosen() {
  const Actions::Row* row = chosen();
  name_->setText(row ? tr("Another key for “%1”").arg(row->action->text()) : tr("No command fits"));
  key_->setEnabled(row);
  none_->setEnabled(row && !row->action->shortcuts().isEmpty());
  reset_->setEnabled(row && row->action->shortcuts() != row->usual);
  key_->clear();
  show_conflict();
}

void KeyPage::show_conflict() {
  const QKeySequence key = key_->keySequence();
  const Actions::Row* owner = key.isEmpty() ? nullptr : actions_.owner_of(key);
  const bool taken = owner && owner != chosen();
  conflict_->setText(taken ? tr("%1 is the key of “%2”, which loses it.").arg(key.toString(QKeySequence::NativeText), owner->action->text())
                           : tr("Press the new key in the field above."));
  change_->setText(taken ? tr("Take it") : tr("Use it"));
  change_->setEnabled(!key.isEmpty());
}

void KeyPage::change() {
  const QKeySequence key = key_->keySequence();
  if (chosen() && !key.isEmpty()) actions_.set_keys(*chosen(), {key});
}

}  // namespace statescope

#include "app/pages/breakpoint_page.h"

#include <QHBoxLayout>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <algorithm>

#include "app/controls/typed_number.h"

namespace statescope {
namespace {

struct KindRow {
  Breakpoint::Kind kind;
  const char* name;
  const char* value;  // what must be typed; empty: nothing
};
constexpr KindRow kinds[] = {
    {Breakpoint::Kind::partition, QT_TRANSLATE_NOOP("statescope::BreakpointPage", "A partition is chosen"),
     QT_TRANSLATE_NOOP("statescope::BreakpointPage", "Its number")},
    {Breakpoint::Kind::text, QT_TRANSLATE_NOOP("statescope::BreakpointPage", "A text begins"),
     QT_TRANSLATE_NOOP("statescope::BreakpointPage", "The text")},
    {Breakpoint::Kind::survival, QT_TRANSLATE_NOOP("statescope::BreakpointPage", "Less of the needle is left than"),
     QT_TRANSLATE_NOOP("statescope::BreakpointPage", "Percent")},
    {Breakpoint::Kind::token, QT_TRANSLATE_NOOP("statescope::BreakpointPage", "A token"),
     QT_TRANSLATE_NOOP("statescope::BreakpointPage", "Its number")},
    {Breakpoint::Kind::needle, QT_TRANSLATE_NOOP("statescope::BreakpointPage", "A needle begins"), ""},
    {Breakpoint::Kind::question, QT_TRANSLATE_NOOP("statescope::BreakpointPage", "A question begins"), ""},
    {Breakpoint::Kind::answer, QT_TRANSLATE_NOOP("statescope::BreakpointPage", "An answer begins"), ""},
};

}  // namespace

BreakpointPage::BreakpointPage(Playback& playback, QWidget* parent) : QWidget(parent), playback_(playback) {
  auto* hint = new QLabel(tr("Playing, and the keys to the next needle, stop where:"), this);
  hint->setObjectName("faint");
  hint->setWordWrap(true);
  list_ = new QListWidget(this);
  list_->setAccessibleName(tr("Breakpoints"));
  list_->setToolTip(tr("Space switches one on or off, Delete removes it"));
  kind_ = new QComboBox(this);
  kind_->setAccessibleName(tr("Kind of breakpoint"));
  for (const KindRow& row : kinds) kind_->addItem(tr(row.name));
  value_ = new QLineEdit(this);
  wrong_ = new QLabel(this);
  wrong_->setWordWrap(true);
  wrong_->setAccessibleName(tr("What is wrong with it"));
  add_ = new QPushButton(tr("Add"), this);
  remove_ = new QPushButton(tr("Remove"), this);
  remove_->setShortcut(QKeySequence(Qt::Key_Delete));
  loop_ = new QLabel(this);
  loop_->setObjectName("faint");
  loop_->setWordWrap(true);
  auto* buttons = new QHBoxLayout;
  buttons->addWidget(add_);
  buttons->addWidget(remove_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(hint);
  layout->addWidget(list_, 1);
  layout->addWidget(kind_);
  layout->addWidget(value_);
  layout->addWidget(wrong_);
  layout->addLayout(buttons);
  layout->addWidget(loop_);
  setFocusProxy(kind_);

  connect(kind_, &QComboBox::currentIndexChanged, this, &BreakpointPage::show_kind);
  connect(value_, &QLineEdit::textChanged, this, &BreakpointPage::show_kind);
  connect(value_, &QLineEdit::returnPressed, this, &BreakpointPage::add);
  connect(add_, &QPushButton::clicked, this, &BreakpointPage::add);
  connect(remove_, &QPushButton::clicked, this, &BreakpointPage::remove);
  connect(list_, &QListWidget::itemChanged, this, [this](const QListWidgetItem* item) {
    playback_.enable(static_cast<std::size_t>(list_->row(item)), item->checkState() == Qt::Checked);
  });
  connect(&playback_, &Playback::changed, this, &BreakpointPage::fill, Qt::QueuedConnection);  // the list may be what changed
  fill();
  show_kind();
}

void BreakpointPage::fill() {
  const QSignalBlocker quiet(list_);
  const int row = list_->currentRow();
  list_->clear();
  for (const Breakpoint& breakpoint : playback_.breakpoints()) {
    auto* item = new QListWidgetItem(words_of(breakpoint), list_);
    item->setFlags(item->flags() | Qt::ItemIsUserCheckable);
    item->setCheckState(breakpoint.enabled ? Qt::Checked : Qt::Unchecked);
  }
  list_->setCurrentRow(std::min(std::max(row, 0), list_->count() - 1));
  remove_->setEnabled(list_->count() > 0);
  const std::optional<Loop>& loop = playback_.loop();
  loop_->setText(loop ? tr("Playing loops over tokens %1 to %2.").arg(loop->first).arg(loop->last) : QString());
}

void BreakpointPage::show_kind() {
  const KindRow& row = kinds[kind_->currentIndex()];
  const bool wants_value = *row.value != '\0', wants_number = wants_value && row.kind != Breakpoint::Kind::text;
  value_->setVisible(wants_value);
  value_->setPlaceholderText(wants_value ? tr(row.value) : QString());
  value_->setAccessibleName(wants_value ? tr(row.value) : tr("Nothing to type"));
  const bool is_number = typed_whole(value_->text()).has_value(), is_empty = value_->text().isEmpty();
  add_->setEnabled(!wants_value || (wants_number ? is_number : !is_empty));
  wrong_->setText(wants_number && !is_number && !is_empty ? why_no_whole(value_->text()) : QString());
  wrong_->setVisible(!wrong_->text().isEmpty());
}

void BreakpointPage::add() {
  if (!add_->isEnabled()) return;
  const Breakpoint::Kind kind = kinds[kind_->currentIndex()].kind;
  const bool text = kind == Breakpoint::Kind::text;
  playback_.add(
      {.kind = kind, .number = text ? 0 : typed_whole(value_->text()).value_or(0), .text = text ? value_->text().toStdString() : ""});
  value_->clear();
}

void BreakpointPage::remove() {
  if (list_->currentRow() >= 0) playback_.remove(static_cast<std::size_t>(list_->currentRow()));
}

}  // namespace statescope

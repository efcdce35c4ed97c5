#include "app/controls/palette.h"

#include <QApplication>
#include <QKeyEvent>
#include <QPainter>
#include <QScrollBar>
#include <QStyledItemDelegate>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "app/controls/fuzzy.h"
#include "app/controls/theme.h"

namespace statescope {
namespace {

constexpr std::size_t most_shown = 60;
constexpr int rows_in_sight = 12, usual_width = 620, row_height = 28, top = 56;  // at 1×
constexpr int kind_role = Qt::UserRole, keys_role = Qt::UserRole + 1;

/// What its text alone says counts more than what its kind adds.
std::optional<int> score_of(const std::string& query, const PaletteEntry& entry) {
  constexpr int by_text = 100'000;
  if (const std::optional<int> score = fuzzy_score(query, entry.text.toStdString())) return *score + by_text;
  return fuzzy_score(query, QStringList({entry.text, entry.kind, entry.also}).join(' ').toStdString());
}

}  // namespace

/// The text, and to the right, faint, its keys and its kind.
class Palette::EntryDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  QColor faint_ink;

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const QPalette& colors = option.palette;
    const bool chosen = option.state & QStyle::State_Selected;
    if (chosen) painter->fillRect(option.rect, colors.color(QPalette::Highlight));
    const QColor ink = colors.color(chosen ? QPalette::HighlightedText : QPalette::Text);
    const QColor faint = chosen ? ink : faint_ink;
    const int gap = option.rect.height() / 3;
    // Its own gaps at both ends, and one before the words beside it.
    const int for_text = std::min(option.fontMetrics.horizontalAdvance(index.data().toString()) + 3 * gap, option.rect.width() * 2 / 3);
    QRect room = option.rect.adjusted(gap, 0, -gap, 0);
    painter->setFont(option.font);
    painter->setPen(faint);
    for (const int role : {kind_role, keys_role}) {
      const QString words = option.fontMetrics.elidedText(index.data(role).toString(), Qt::ElideRight, room.width() - for_text);
      if (words.isEmpty()) continue;
      painter->drawText(room, Qt::AlignRight | Qt::AlignVCenter, words);
      room.setRight(room.right() - option.fontMetrics.horizontalAdvance(words) - 2 * gap);
    }
    painter->setPen(ink);
    const QString text = option.fontMetrics.elidedText(index.data().toString(), Qt::ElideMiddle, room.width());
    painter->drawText(room, Qt::AlignLeft | Qt::AlignVCenter, text);
  }
};

Palette::Palette(QWidget* parent)
    : QFrame(parent),
      line_(new QLineEdit(this)),
      list_(new QListWidget(this)),
      nothing_(new QLabel(this)),
      delegate_(new EntryDelegate(list_)) {
  setObjectName("palette");
  line_->setPlaceholderText(tr("Command, view, model, prompt, layer, head, partition, token or its text, file"));
  line_->setAccessibleName(tr("What to find"));
  list_->setAccessibleName(tr("Matches"));
  list_->setItemDelegate(delegate_);
  list_->setUniformItemSizes(true);
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(line_);
  layout->addWidget(list_, 1);
  layout->addWidget(nothing_);
  nothing_->setObjectName("faint");
  nothing_->setWordWrap(true);
  nothing_->setAccessibleName(tr("What was not found"));
  line_->installEventFilter(this);
  list_->installEventFilter(this);
  parent->installEventFilter(this);
  connect(line_, &QLineEdit::textChanged, this, &Palette::fill);
  connect(list_, &QListWidget::itemClicked, this, &Palette::choose);
  hide();
}

void Palette::set_frame(const Frame& frame) {
  scale_ = frame.scale;
  delegate_->faint_ink = to_qcolor(frame.theme.faint);
  const int margin = static_cast<int>(8 * scale_);
  layout()->setContentsMargins(margin, margin, margin, margin);
  layout()->setSpacing(margin);
  place();
  if (isVisible()) fill();
}

/// In the upper middle of the window, as high as what fits.
void Palette::place() {
  const auto px = [this](int length) { return static_cast<int>(static_cast<float>(length) * scale_); };
  const QSize room = parentWidget()->size();
  const int above = std::min(px(top), room.height() / 10), rows = std::clamp(list_->count(), 1, rows_in_sight);
  const int wide = std::min(px(usual_width), room.width() - px(16));
  const int high = std::min(line_->sizeHint().height() + px(rows * row_height + 28), room.height() - above - px(8));
  setGeometry((room.width() - wide) / 2, above, wide, high);
}

void Palette::ask(std::vector<PaletteEntry> entries, Search search) {
  entries_ = std::move(entries);
  search_ = std::move(search);
  const QSignalBlocker quiet(line_);
  line_->clear();
  fill();
  show();
  raise();
  line_->setFocus(Qt::ShortcutFocusReason);
}

void Palette::leave() {
  if (!isVisible()) return;
  hide();
  entries_.clear();
  shown_.clear();
  Q_EMIT left();
}

void Palette::fill() {
  const QString typed = line_->text().trimmed();
  const std::string query = typed.toStdString();
  std::vector<std::pair<int, const PaletteEntry*>> fitting;
  for (const PaletteEntry& entry : entries_)
    if (const auto score = score_of(query, entry)) fitting.emplace_back(*score, &entry);
  // What was searched for stays in its own order, at the place of the best of it.
  const std::vector<PaletteEntry> found = typed.isEmpty() ? std::vector<PaletteEntry>() : search_(typed);
  std::optional<int> best;
  for (const PaletteEntry& entry : found) best = std::max(best, score_of(query, entry));
  for (const PaletteEntry& entry : found) fitting.emplace_back(best.value_or(0), &entry);
  if (!typed.isEmpty()) std::ranges::stable_sort(fitting, std::greater(), &std::pair<int, const PaletteEntry*>::first);
  shown_.clear();
  for (const auto& [score, entry] : fitting)
    if (shown_.size() < most_shown) shown_.push_back(*entry);

  list_->clear();
  for (const PaletteEntry& entry : shown_) {
    auto* item = new QListWidgetItem(entry.text, list_);
    item->setData(kind_role, entry.kind);
    item->setData(keys_role, entry.keys);
    item->setData(Qt::AccessibleTextRole, QStringList({entry.text, entry.kind, entry.keys}).join(", "));
    item->setSizeHint({0, static_cast<int>(row_height * scale_)});
  }
  list_->setCurrentRow(0);
  list_->setVisible(!shown_.empty());
  nothing_->setVisible(shown_.empty());
  nothing_->setText(tr("Nothing here is called “%1”.").arg(typed));
  place();
}

/// Gone before it is done: what is chosen may want the keyboard.
void Palette::choose() {
  const int row = list_->currentRow();
  if (row < 0) return;
  const std::function<void()> run = shown_[static_cast<std::size_t>(row)].run;
  leave();
  run();
}

bool Palette::eventFilter(QObject* watched, QEvent* event) {
  if (watched == parent()) {
    if (event->type() == QEvent::Resize) place();
    return false;
  }
  const bool key = event->type() == QEvent::KeyPress || event->type() == QEvent::ShortcutOverride;
  if (event->type() == QEvent::FocusOut && !isAncestorOf(QApplication::focusWidget())) leave();
  if (!key) return false;
  auto* pressed = static_cast<QKeyEvent*>(event);
  const int row = list_->currentRow(), last = list_->count() - 1;
  const auto go = [&](int to) { list_->setCurrentRow(std::clamp(to, 0, std::max(last, 0))); };
  const bool down = event->type() == QEvent::KeyPress;
  switch (pressed->key()) {
    case Qt::Key_Up:
      if (down) go(row - 1);
      break;
    case Qt::Key_Down:
      if (down) go(row + 1);
      break;
    case Qt::Key_PageUp:
      if (down) go(row - rows_in_sight);
      break;
    case Qt::Key_PageDown:
      if (down) go(row + rows_in_sight);
      break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (down) choose();
      break;
    case Qt::Key_Escape:
      if (down) leave();
      break;
    default:
      return false;
  }
  event->accept();  // they are the window's as well
  return true;
}

}  // namespace statescope

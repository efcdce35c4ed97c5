#include "app/panels/find_bar.h"

#include <QApplication>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QPointer>
#include <QThreadPool>
#include <algorithm>
#include <utility>

#include "app/controls/theme.h"

namespace statescope {

namespace {

QString letters_alone(QString text) {
  text.removeIf([](QChar c) { return c.isSpace(); });
  return text.toLower();
}

}  // namespace

FoundTokens tokens_with(const RunInfo& run, const QString& text) {
  const QString wanted = letters_alone(text);
  FoundTokens found;
  if (wanted.isEmpty()) return found;
  QString all;
  std::vector<qsizetype> begins;
  for (const TokenInfo& token : run.tokens) {
    begins.push_back(all.size());
    all += letters_alone(QString::fromStdString(token.text));
  }
  for (qsizetype at = all.indexOf(wanted); at >= 0; at = all.indexOf(wanted, at + 1)) {
    const auto token_at = [&begins](qsizetype letter) { return std::ranges::upper_bound(begins, letter) - begins.begin() - 1; };
    const std::int64_t first = token_at(at), last = token_at(at + wanted.size() - 1);
    if (found.first.empty() || found.first.back() != first) found.first.push_back(first);
    for (std::int64_t token = found.all.empty() ? first : std::max(first, found.all.back() + 1); token <= last; ++token)
      found.all.push_back(token);
  }
  return found;
}

FindBar::FindBar(Navigator& navigator, QWidget* parent) : QWidget(parent), navigator_(navigator) {
  line_ = new QLineEdit(this);
  line_->setPlaceholderText(tr("Find in the text"));
  line_->setAccessibleName(tr("Find in the text"));
  place_ = new QLabel(this);
  place_->setObjectName("faint");
  place_->setAccessibleName(tr("Places found"));
  const auto button = [this](const QString& name, const auto& act) {
    auto* made = new QToolButton(this);
    made->setFocusPolicy(Qt::TabFocus);
    made->setAccessibleName(name);
    made->setToolTip(name);
    connect(made, &QToolButton::clicked, this, act);
    return made;
  };
  previous_ = button(tr("Previous place (Shift+Enter)"), [this] { go(-1); });
  next_ = button(tr("Next place (Enter)"), [this] { go(1); });
  close_ = button(tr("Close (Esc)"), [this] { leave(); });
  auto* layout = new QHBoxLayout(this);
  layout->addWidget(line_, 1);
  for (QWidget* widget : std::initializer_list<QWidget*>{place_, previous_, next_, close_}) layout->addWidget(widget);
  line_->installEventFilter(this);
  connect(line_, &QLineEdit::textChanged, this, &FindBar::find);
  connect(&navigator_, &Navigator::run_changed, this, [this] {
    if (isVisible()) find();
  });
  connect(&navigator_, &Navigator::cursor_changed, this, &FindBar::show_place);
  hide();
}

void FindBar::set_frame(const Frame& frame) {
  const auto px = [&frame](int length) { return static_cast<int>(static_cast<float>(length) * frame.scale); };
  layout()->setContentsMargins(px(8), 0, px(8), 0);
  layout()->setSpacing(px(6));
  previous_->setIcon(icon_of("back", frame.theme));
  next_->setIcon(icon_of("forward", frame.theme));
  close_->setIcon(icon_of("close", frame.theme));
  for (QToolButton* button : {previous_, next_, close_}) button->setIconSize({px(14), px(14)});
}

void FindBar::begin() {
  show();
  line_->setFocus(Qt::ShortcutFocusReason);
  line_->selectAll();
  find();
}

void FindBar::leave() {
  if (!isVisible()) return;
  hide();
  found_ = {};
  Q_EMIT found_changed();
  Q_EMIT left();
}

/// Beside the interface: a text may have a hundred thousand tokens.
void FindBar::find() {
  const std::shared_ptr<const RunInfo> run = navigator_.run();
  const QString text = line_->text();
  if (!run) return;
  goes_ = line_->hasFocus() && !text.isEmpty();
  QThreadPool::globalInstance()->start([self = QPointer<FindBar>(this), run, text] {
    FoundTokens tokens = tokens_with(*run, text);
    QMetaObject::invokeMethod(
        qApp,
        [self, run, text, tokens = std::move(tokens)] {
          if (self) self->take(run, text, tokens);
        },
        Qt::QueuedConnection);
  });
}

/// Another text, or a run that has grown since, has been asked for by then, or nobody asks any more.
void FindBar::take(const std::shared_ptr<const RunInfo>& run, const QString& text, FoundTokens tokens) {
  if (!isVisible() || navigator_.run() != run || line_->text() != text) return;
  found_ = std::move(tokens);
  if (std::exchange(goes_, false) && !found_.first.empty() && std::ranges::count(found_.first, navigator_.cursor().token) == 0) go(1);
  show_place();
  Q_EMIT found_changed();
}

/// Round and round.
void FindBar::go(int direction) {
  const std::vector<std::int64_t>& found = found_.first;
  if (found.empty()) return;
  const std::int64_t here = navigator_.cursor().token;
  const auto after = std::ranges::upper_bound(found, here), from = std::ranges::lower_bound(found, here);
  const std::int64_t to =
      direction > 0 ? (after == found.end() ? found.front() : *after) : (from == found.begin() ? found.back() : *(from - 1));
  navigator_.move({.token = to});
}

void FindBar::show_place() {
  if (!isVisible()) return;
  const std::vector<std::int64_t>& found = found_.first;
  const auto here = std::ranges::find(found, navigator_.cursor().token);
  const auto count = static_cast<int>(found.size());
  place_->setText(line_->text().isEmpty() ? QString()
                  : found.empty()         ? tr("not in the text")
                  : here == found.end()   ? tr("%1 places").arg(count)
                                          : tr("%1 of %2").arg(here - found.begin() + 1).arg(count));
  for (QToolButton* button : {previous_, next_}) button->setEnabled(count > 0);
}

bool FindBar::eventFilter(QObject* watched, QEvent* event) {
  const bool key = event->type() == QEvent::KeyPress || event->type() == QEvent::ShortcutOverride;
  if (watched != line_ || !key) return QWidget::eventFilter(watched, event);
  const auto* pressed = static_cast<QKeyEvent*>(event);
  const bool enters = pressed->key() == Qt::Key_Return || pressed->key() == Qt::Key_Enter;
  if (!enters && pressed->key() != Qt::Key_Escape) return QWidget::eventFilter(watched, event);
  if (event->type() == QEvent::KeyPress) {
    if (enters)
      go(pressed->modifiers() & Qt::ShiftModifier ? -1 : 1);
    else
      leave();
  }
  event->accept();  // they are the window's as well
  return true;
}

}  // namespace statescope

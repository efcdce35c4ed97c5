#include "app/panels/transport.h"

#include <QAction>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLineEdit>
#include <QPainter>
#include <QSignalBlocker>
#include <QStyle>
#include <QToolButton>
#include <algorithm>
#include <utility>

#include "engine/unread.h"

namespace statescope {
namespace {

constexpr double speeds[] = {0.25, 0.5, 1, 2, 4, 8, 16};

}  // namespace

TokenNumber::TokenNumber(QWidget* parent) : NumberBox(parent) { setDecimals(0); }

void TokenNumber::set_token(int token) {
  token_ = token;
  if (!hasFocus() || !lineEdit()->isModified()) setValue(token);
}

void TokenNumber::stepBy(int steps) {
  NumberBox::stepBy(steps);
  Q_EMIT chosen(static_cast<int>(value()));
}

void TokenNumber::give_up() {
  lineEdit()->setModified(false);
  setValue(token_);
}

/// Esc is the window's as well.
bool TokenNumber::event(QEvent* event) {
  const bool escape = event->type() == QEvent::ShortcutOverride && static_cast<QKeyEvent*>(event)->key() == Qt::Key_Escape;
  if (!escape) return NumberBox::event(event);
  event->accept();
  return true;
}

void TokenNumber::keyPressEvent(QKeyEvent* event) {
  const bool enters = event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
  if (!enters && event->key() != Qt::Key_Escape) return NumberBox::keyPressEvent(event);
  if (enters) {
    if (!take_typed()) return;
    lineEdit()->setModified(false);
    Q_EMIT chosen(static_cast<int>(value()));
  } else {
    give_up();
  }
  Q_EMIT left();
}

void TokenNumber::focusOutEvent(QFocusEvent* event) {
  give_up();
  NumberBox::focusOutEvent(event);
}

void TimeSlider::set_marks(std::vector<std::int64_t> tokens, const std::optional<Loop>& loop) {
  tokens_ = std::move(tokens);
  loop_ = loop;
  update();
}

void TimeSlider::set_found(std::vector<std::int64_t> tokens) {
  found_ = std::move(tokens);
  update();
}

void TimeSlider::paintEvent(QPaintEvent* event) {
  QSlider::paintEvent(event);
  const int handle = height() / 2;  // the style's, about
  const auto x_of = [&](std::int64_t token) {
    return handle / 2 + QStyle::sliderPositionFromValue(minimum(), maximum(), static_cast<int>(token), width() - handle);
  };
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(Qt::NoPen);
  painter.setBrush(palette().color(QPalette::WindowText));
  const int mark = std::max(3, height() / 6);
  if (loop_) painter.drawRect(QRect(QPoint(x_of(loop_->first), height() - mark / 2), QPoint(x_of(loop_->last), height())));
  for (const std::int64_t token : found_) painter.drawRect(QRect(x_of(token), height() / 5, 2, height() * 3 / 5));
  for (const std::int64_t token : tokens_) {
    const int x = x_of(token);
    painter.drawPolygon(QPolygon({QPoint(x - mark, 0), QPoint(x + mark, 0), QPoint(x, mark)}));
  }
}

Transport::Transport(Navigator& navigator, Actions& actions, QWidget* parent) : QWidget(parent), navigator_(navigator) {
  auto* layout = new QHBoxLayout(this);
  for (const std::string_view id : {"first", "previous", "play", "next", "last"}) {
    auto* button = new QToolButton(this);
    button->setDefaultAction(actions.action(id));
    button->setToolButtonStyle(Qt::ToolButtonIconOnly);
    button->setFocusPolicy(Qt::TabFocus);
    button->setAccessibleName(actions.action(id)->text());
    layout->addWidget(button);
    buttons_.push_back(button);
  }
  speed_ = new QComboBox(this);
  for (const double speed : speeds) speed_->addItem(QStringLiteral("%1×").arg(speed), speed);
  speed_->setCurrentIndex(speed_->findData(1.0));
  speed_->setAccessibleName(tr("Speed of playing"));
  actions.tell_keys(*speed_, tr("Speed of playing"), {"slower", "faster"});
  speed_->setFocusPolicy(Qt::TabFocus);
  slider_ = new TimeSlider(Qt::Horizontal, this);
  slider_->setAccessibleName(tr("Token"));
  actions.tell_keys(*slider_, tr("Token"), {"previous", "next"});
  slider_->setFocusPolicy(Qt::TabFocus);
  slider_->setPageStep(10);
  number_ = new TokenNumber(this);
  number_->setAccessibleName(tr("Go to token"));
  actions.tell_keys(*number_, tr("Go to token"), {"go-to"});
  number_->setAlignment(Qt::AlignRight);
  count_ = new QLabel(this);
  count_->setObjectName("faint");
  layout->addWidget(speed_);
  layout->addStretch(1);
  layout->addWidget(slider_, 100);
  layout->addWidget(number_);
  layout->addWidget(count_);

  const auto go = [this](int token) {
    CursorMove change;
    change.token = token;
    navigator_.move(change);
  };
  connect(slider_, &QSlider::valueChanged, this, go);
  connect(number_, &TokenNumber::chosen, this, go);
  connect(number_, &TokenNumber::left, this, &Transport::asked);
  connect(number_, &TokenNumber::refused, this, &Transport::spoke);
  connect(speed_, &QComboBox::currentIndexChanged, this, [this] { navigator_.set_speed(speed_->currentData().toDouble()); });
  connect(&navigator_, &Navigator::run_changed, this, &Transport::show_place);
  connect(&navigator_, &Navigator::cursor_changed, this, &Transport::show_place);
  connect(&navigator_, &Navigator::opening_ended, this, &Transport::show_place);
  connect(&navigator_, &Navigator::playing_changed, this, &Transport::show_playing);
  show_place();
  show_playing();
}

void Transport::set_frame(const Frame& frame) {
  const auto px = [&frame](int length) { return static_cast<int>(static_cast<float>(length) * frame.scale); };
  layout()->setContentsMargins(px(6), px(2), px(8), px(4));
  layout()->setSpacing(px(4));
  for (QToolButton* button : buttons_) button->setIconSize({px(18), px(18)});
  slider_->setMaximumWidth(px(520));
  slider_->setMinimumSize(px(60), px(20));
  number_->setMinimumWidth(px(56));
}

void Transport::show_place() {
  const int read = static_cast<int>(navigator_.tokens());
  const bool reads_on = navigator_.run() && navigator_.is_opening();
  const int tokens = read + static_cast<int>(reads_on ? unread(*navigator_.run()) : 0);
  const int token = static_cast<int>(navigator_.cursor().token);
  const QSignalBlocker quiet_slider(slider_), quiet_number(number_);
  for (QWidget* widget : std::initializer_list<QWidget*>{slider_, number_, speed_}) widget->setEnabled(tokens > 0);
  slider_->setRange(0, std::max(0, tokens - 1));
  slider_->setValue(token);
  number_->setRange(0, std::max(0, tokens - 1));
  number_->set_token(token);
  count_->setText(read < tokens ? tr("/ %1, %2 read").arg(tokens).arg(read) : QStringLiteral("/ %1").arg(tokens));
}

void Transport::show_playing() {
  const QSignalBlocker quiet(speed_);
  speed_->setCurrentIndex(speed_->findData(navigator_.speed()));
}

void Transport::show_marks(const Playback& playback) {
  std::vector<std::int64_t> tokens;
  for (const Breakpoint& breakpoint : playback.breakpoints())
    if (breakpoint.kind == Breakpoint::Kind::token && breakpoint.enabled && breakpoint.number < navigator_.tokens())
      tokens.push_back(breakpoint.number);
  slider_->set_marks(std::move(tokens), playback.loop());
}

void Transport::ask_for_token() {
  number_->setFocus(Qt::ShortcutFocusReason);
  number_->selectAll();
}

void Transport::step_speed(int direction) {
  speed_->setCurrentIndex(std::clamp(speed_->currentIndex() + direction, 0, speed_->count() - 1));
}

}  // namespace statescope

#include "app/pages/chat_turns.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QShortcut>
#include <QSignalBlocker>
#include <algorithm>
#include <utility>

namespace statescope {
namespace {

constexpr int lines_in_sight = 3;
constexpr int most_of_line = 200;  // letters; the list cuts what it has no room for
constexpr const char* usual_roles[] = {"system", "user", "assistant", "tool"};

QPushButton* make_button(const QString& sign, const QString& name, QWidget* parent) {
  auto* button = new QPushButton(parent);
  button->setText(sign);
  button->setAccessibleName(name);
  button->setToolTip(name);
  button->setFocusPolicy(Qt::StrongFocus);
  return button;
}

}  // namespace

void click_at_once(QAbstractButton& button, const QKeySequence& keys) {
  QObject::connect(new QShortcut(keys, &button), &QShortcut::activated, &button, &QAbstractButton::click);
}

ChatTurns::ChatTurns(QWidget* parent) : QWidget(parent), list_(new QListWidget(this)), role_(new QComboBox(this)) {
  list_->setAccessibleName(tr("Turns of the chat"));
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  list_->setUniformItemSizes(true);
  role_->setObjectName("names");  // as chat templates know them, in no language
  role_->setAccessibleName(tr("Who says this turn"));
  role_->setToolTip(role_->accessibleName());
  for (const char* role : usual_roles) role_->addItem(QLatin1String(role));
  add_ = make_button(QStringLiteral("+"), tr("Add a turn after this one (Alt+T)"), this);
  click_at_once(*add_, QKeySequence("Alt+T"));
  remove_ = make_button(QStringLiteral("−"), tr("Remove this turn (Delete in the list)"), this);
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* controls = new QVBoxLayout;
  auto* buttons = new QHBoxLayout;
  for (QPushButton* button : {add_, remove_}) {
    button->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    buttons->addWidget(button);
  }
  controls->addWidget(role_);
  controls->addLayout(buttons);
  layout->addWidget(list_, 1);
  layout->addLayout(controls);
  list_->installEventFilter(this);
  connect(list_, &QListWidget::currentRowChanged, this, &ChatTurns::choose);
  connect(role_, &QComboBox::textActivated, this, &ChatTurns::set_role);
  connect(add_, &QPushButton::clicked, this, &ChatTurns::add);
  connect(remove_, &QPushButton::clicked, this, &ChatTurns::remove);
  show_turns();
}

void ChatTurns::fit() {
  const int line = fontMetrics().lineSpacing();
  list_->setFixedHeight(lines_in_sight * (line + line / 3) + line / 2);
}

void ChatTurns::set_turns(std::vector<ChatTurn> turns) {
  turns_ = std::move(turns);
  current_ = static_cast<int>(turns_.size()) - 1;
  show_turns();
}

void ChatTurns::write(std::string text, std::vector<TextSpan> spans) {
  ChatTurn& turn = turns_[static_cast<std::size_t>(current_)];
  turn.text = std::move(text);
  turn.spans = std::move(spans);
  show_line(current_);
}

void ChatTurns::choose(int turn) {
  if (turn < 0 || turn == current_) return;
  Q_EMIT leaving();
  current_ = turn;
  show_turns();
  Q_EMIT chosen();
}

/// After the user the assistant has its say, after all others the user.
void ChatTurns::add() {
  Q_EMIT leaving();
  const std::string role = current().role == "user" ? "assistant" : "user";
  turns_.insert(turns_.begin() + ++current_, ChatTurn{role, ""});
  show_turns();
  Q_EMIT chosen();
  Q_EMIT left();
}

void ChatTurns::remove() {
  if (turns_.size() < 2) return;
  turns_.erase(turns_.begin() + current_);
  current_ = std::min(current_, static_cast<int>(turns_.size()) - 1);
  show_turns();
  Q_EMIT chosen();
  Q_EMIT changed();
}

void ChatTurns::set_role(const QString& role) {
  turns_[static_cast<std::size_t>(current_)].role = role.toStdString();
  show_line(current_);
  Q_EMIT changed();
}

void ChatTurns::show_turns() {
  const QSignalBlocker quiet(list_);
  list_->clear();
  for (int turn = 0; turn < static_cast<int>(turns_.size()); ++turn) {
    list_->addItem(QString());
    show_line(turn);
  }
  list_->setCurrentRow(current_);
  const QString role = QString::fromStdString(current().role);
  if (role_->findText(role) < 0) role_->addItem(role);
  role_->setCurrentText(role);
  remove_->setEnabled(turns_.size() > 1);
}

void ChatTurns::show_line(int turn) {
  const ChatTurn& said = turns_[static_cast<std::size_t>(turn)];
  const QString words = QString::fromStdString(said.text).left(most_of_line).simplified();
  list_->item(turn)->setText(QStringLiteral("%1: %2").arg(QString::fromStdString(said.role), words));
}

/// Enter goes on writing, Delete takes the turn away.
bool ChatTurns::eventFilter(QObject* watched, QEvent* event) {
  if (watched != list_ || event->type() != QEvent::KeyPress) return QWidget::eventFilter(watched, event);
  const int key = static_cast<QKeyEvent*>(event)->key();
  if (key == Qt::Key_Delete)
    remove();
  else if (key == Qt::Key_Return || key == Qt::Key_Enter)
    Q_EMIT left();
  else
    return false;
  return true;
}

}  // namespace statescope

// The turns of a chat, a line each: which one is being written, who says it, one more, one less.
#pragma once

#include <QComboBox>
#include <QListWidget>
#include <QPushButton>
#include <vector>

#include "engine/session/session.h"

namespace statescope {

/// A button's own shortcut clicks it a tenth of a second later: what is typed on meanwhile would go where the keyboard was before.
void click_at_once(QAbstractButton& button, const QKeySequence& keys);

/// There is always one.
class ChatTurns : public QWidget {
  Q_OBJECT

 public:
  explicit ChatTurns(QWidget* parent = nullptr);

  void set_turns(std::vector<ChatTurn> turns);
  const std::vector<ChatTurn>& turns() const { return turns_; }
  /// The one that is being written.
  const ChatTurn& current() const { return turns_[static_cast<std::size_t>(current_)]; }
  /// What it says by now.
  void write(std::string text, std::vector<TextSpan> spans);
  void fit();

 Q_SIGNALS:
  void leaving();  // another turn comes: what was written is asked for
  void chosen();   // another turn is being written
  void changed();  // a role, or there is one turn less
  void left();     // the keyboard is wanted where the turn is written

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void choose(int turn);
  void add();
  void remove();
  void set_role(const QString& role);
  void show_turns();
  void show_line(int turn);

  std::vector<ChatTurn> turns_{{"user", ""}};
  int current_ = 0;
  QListWidget* list_;
  QComboBox* role_;
  QPushButton *add_, *remove_;
};

}  // namespace statescope

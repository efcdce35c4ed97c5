// The reader's own prompt: its text with needle, question and answer marked in it, or token ids where the model has no text.
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTextCursor>
#include <QTimer>

#include "app/controls/typed_number.h"
#include "app/pages/chat_turns.h"
#include "app/pages/prompt_text.h"
#include "app/pages/random_needles.h"
#include "app/pages/word_completion.h"
#include "app/runs/navigator.h"

namespace statescope {

class PromptPage : public QWidget {
  Q_OBJECT

 public:
  explicit PromptPage(Navigator& navigator, QWidget* parent = nullptr);

  void set_frame(const Frame& frame);
  /// With the prompt of the run shown, all of it selected: what is typed takes its place. What was written and not read yet stays.
  void fill();
  /// As the page was filled, or, where the text is another one, that text with what is marked in it.
  PromptInput prompt() const;
  /// The selected words become the needle, the question or the answer; where they are that already, they are it no longer.
  void mark(SpanKind kind);
  /// Fills the page with these turns of a chat and reads them as soon as the model's template has made a text of them.
  void read_turns(std::vector<ChatTurn> turns);
  /// To stand where it is always in sight.
  QPushButton* read_button() { return read_; }

 Q_SIGNALS:
  void spoke(const QString& why);  // why a number is refused

 private:
  /// Moves with the text while it is edited.
  struct Mark {
    SpanKind kind = SpanKind::needle;
    QTextCursor words;
  };

  void make_marks();
  void make_form();
  void lay_out();
  void make_connections();
  void show_prompt(const PromptInput& prompt);
  void show_text(const std::string& text, const std::vector<TextSpan>& spans);
  void show_turns(std::vector<ChatTurn> turns);
  void show_choices();
  void choose(int index);
  void take_instead(PromptInput prompt);
  void show_words();
  void take_edit();
  void read();
  void count_soon();
  void count();
  void show_reading(const TextReading& reading);
  void show_marks();
  void select_marked(QTextCursor& cursor, SpanKind kind) const;
  std::vector<TextSpan> marked() const;
  void keep_turn();
  void want_reply();
  bool take_pasted(const QString& text);
  bool has_no_text() const;
  bool takes_ids() const;
  bool is_chat() const;
  bool is_formed() const;
  bool can_chat() const;
  void show_kind();
  void follow_run();
  PromptInput draft() const;

  Navigator& navigator_;
  Frame frame_;
  QComboBox* from_;         // prompts to begin with
  RandomNeedles* needles_;  // one of those; shown while it is chosen
  WordCompletion* completion_;
  QPlainTextEdit* text_;
  QPushButton *needle_, *question_, *answer_;
  QWidget* marks_row_;
  QCheckBox* chat_;   // the text is what is said to an instruct model,
  ChatTurns* turns_;  // in one turn of these
  QLabel* count_;
  QPlainTextEdit* ids_;  // of the text, to be looked at and copied
  QFormLayout* form_;
  QLineEdit* expected_;
  NumberBox* generate_;
  QPushButton* read_;
  QTimer count_delay_;
  int counted_ = 0;         // what is counted now; older answers are dropped
  PromptInput written_;     // what the page was filled with
  PromptInput before_;      // the one before the reader's own was read
  PromptInput shown_;       // of the run when the page was last filled
  bool edited_ = false;     // and not read yet
  bool read_here_ = false;  // what is on its way
  std::vector<Mark> marks_;
  TextReading reading_;
  bool read_soon_ = false;  // once it is known what the model would read
};

}  // namespace statescope

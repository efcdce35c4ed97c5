// The reader's own prompt: its text with needle, question and answer marked in it, or token ids where the model has no text.
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QTextCursor>
#include <QTimer>

#include "app/navigator.h"
#include "app/prompt_text.h"

namespace statescope {

class PromptPage : public QWidget {
  Q_OBJECT

 public:
  explicit PromptPage(Navigator& navigator, QWidget* parent = nullptr);

  void set_frame(const Frame& frame);
  /// With the prompt of the run shown, all of it selected: what is typed takes its place.
  void fill();
  /// As the page was filled, or, where the text is another one, that text with what is marked in it.
  PromptInput prompt() const;
  /// The selected words become the needle, the question or the answer; where they are that already, they are it no longer.
  void mark(SpanKind kind);

 private:
  /// Moves with the text while it is edited.
  struct Mark {
    SpanKind kind = SpanKind::needle;
    QTextCursor words;
  };

  QLayout* make_marks();
  void make_connections();
  void show_prompt(const PromptInput& prompt);
  void show_choices();
  void choose(int index);
  void take_edit();
  void read();
  void count_soon();
  void count();
  void show_reading(const TextReading& reading);
  void show_marks();
  void select_word(QTextCursor& cursor) const;
  bool has_no_text() const;
  bool takes_ids() const;
  bool is_chat() const;
  bool is_formed() const;
  void show_kind();

  Navigator& navigator_;
  Frame frame_;
  QComboBox* from_;  // prompts to begin with
  QPlainTextEdit* text_;
  QPushButton *needle_, *question_, *answer_;
  QWidget* marks_row_;
  QCheckBox* chat_;  // the text is what the user says to an instruct model
  QLabel* count_;
  QPlainTextEdit* ids_;  // of the text, to be looked at and copied
  QFormLayout* form_;
  QLineEdit* expected_;
  QSpinBox* generate_;
  QPushButton* read_;
  QTimer count_delay_;
  int counted_ = 0;      // what is counted now; older answers are dropped
  PromptInput written_;  // what the page was filled with
  PromptInput before_;   // the one before the reader's own was read
  PromptInput said_;     // what was last read in a chat, as it was written here,
  std::string formed_;   // and the template's text of it
  std::vector<Mark> marks_;
  TextReading reading_;
};

}  // namespace statescope

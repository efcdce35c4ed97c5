// The marks in the prompt: which words are the needle, the question and the answer, and how that is shown.
#include <QHBoxLayout>
#include <QSignalBlocker>
#include <algorithm>

#include "app/controls/theme.h"
#include "app/pages/prompt_page.h"
#include "views/parts.h"

namespace statescope {
namespace {

QPushButton* make_button(const QString& words, const QString& means, const char* keys, QWidget* parent) {
  auto* button = new QPushButton(words, parent);
  button->setFocusPolicy(Qt::StrongFocus);
  const QKeySequence sequence(QString::fromLatin1(keys));
  click_at_once(*button, sequence);
  button->setToolTip(QStringLiteral("%1 (%2)").arg(means, sequence.toString(QKeySequence::NativeText)));
  return button;
}

std::size_t byte_of(const QString& text, int position) { return static_cast<std::size_t>(text.left(position).toUtf8().size()); }

int position_of(const std::string& text, std::size_t byte) {
  return static_cast<int>(QString::fromUtf8(text.data(), static_cast<qsizetype>(std::min(byte, text.size()))).size());
}

}  // namespace

void PromptPage::make_marks() {
  marks_row_ = new QWidget(this);
  needle_ = make_button(tr("Needle"), tr("The selected words are what the model has to remember"), "Alt+N", marks_row_);
  question_ = make_button(tr("Question"), tr("The selected words ask for the needle"), "Alt+Q", marks_row_);
  answer_ = make_button(tr("Answer"), tr("The selected words answer the question"), "Alt+A", marks_row_);
  auto* row = new QHBoxLayout(marks_row_);
  row->setContentsMargins(0, 0, 0, 0);
  for (QPushButton* button : {needle_, question_, answer_}) row->addWidget(button);
}

void PromptPage::show_text(const std::string& text, const std::vector<TextSpan>& spans) {
  const QSignalBlocker quiet(text_);
  marks_.clear();
  text_->setPlainText(QString::fromStdString(text));
  for (const TextSpan& span : spans) {
    QTextCursor words(text_->document());
    words.setPosition(position_of(text, span.begin));
    words.setPosition(position_of(text, span.end), QTextCursor::KeepAnchor);
    marks_.push_back({span.kind, words});
  }
  text_->document()->setModified(false);
  show_marks();
  count_soon();
}

/// Without a selection: what is marked so where the cursor stands, else the word there.
void PromptPage::select_marked(QTextCursor& cursor, SpanKind kind) const {
  if (cursor.hasSelection()) return;
  const auto holds = [&](const Mark& mark) {
    return mark.kind == kind && mark.words.selectionStart() <= cursor.position() && cursor.position() <= mark.words.selectionEnd();
  };
  const auto mark = std::ranges::find_if(marks_, holds);
  if (mark != marks_.end())
    cursor = mark->words;
  else
    cursor.select(QTextCursor::WordUnderCursor);
}

void PromptPage::mark(SpanKind kind) {
  QTextCursor words = text_->textCursor();
  select_marked(words, kind);
  if (!words.hasSelection()) return;
  const int begin = words.selectionStart(), end = words.selectionEnd();
  const auto is_same = [&](const Mark& mark) {
    return mark.kind == kind && mark.words.selectionStart() == begin && mark.words.selectionEnd() == end;
  };
  const bool was_marked = std::ranges::any_of(marks_, is_same);
  std::erase_if(marks_, [&](const Mark& mark) {
    return mark.kind == kind && mark.words.selectionStart() < end && mark.words.selectionEnd() > begin;
  });
  if (!was_marked) marks_.push_back({kind, words});
  edited_ = true;
  text_->document()->setModified(true);
  words.setPosition(end);  // the mark is to be seen, which a selection would hide
  text_->setTextCursor(words);
  show_marks();
  if (is_chat()) count_soon();
  text_->setFocus();
}

/// The needle on gold, question and answer with their lines below; what the model does not know with a wave.
void PromptPage::show_marks() {
  QList<QTextEdit::ExtraSelection> shown;
  for (const Mark& mark : marks_) {
    QTextEdit::ExtraSelection selection;
    selection.cursor = mark.words;
    const QColor color = to_qcolor(span_style(mark.kind, frame_.theme).color);
    if (mark.kind == SpanKind::needle) {
      selection.format.setBackground(QColor(color.red(), color.green(), color.blue(), 90));
    } else {
      selection.format.setUnderlineColor(color);
      selection.format.setUnderlineStyle(mark.kind == SpanKind::question ? QTextCharFormat::DashUnderline
                                                                         : QTextCharFormat::SingleUnderline);
    }
    shown.push_back(selection);
  }
  const std::string text = text_->toPlainText().toStdString();
  for (const UnknownWord& word : reading_.unknown) {
    QTextEdit::ExtraSelection selection;
    selection.cursor = QTextCursor(text_->document());
    selection.cursor.setPosition(position_of(text, word.begin));
    selection.cursor.setPosition(position_of(text, word.end), QTextCursor::KeepAnchor);
    selection.format.setUnderlineColor(to_qcolor(frame_.theme.ink));
    selection.format.setUnderlineStyle(QTextCharFormat::WaveUnderline);
    shown.push_back(selection);
  }
  text_->setExtraSelections(shown);
}

std::vector<TextSpan> PromptPage::marked() const {
  const QString text = text_->toPlainText();
  std::vector<TextSpan> spans;
  for (const Mark& mark : marks_)
    spans.push_back({mark.kind, byte_of(text, mark.words.selectionStart()), byte_of(text, mark.words.selectionEnd())});
  std::ranges::sort(spans, {}, &TextSpan::begin);  // in whatever order they were marked
  return spans;
}

}  // namespace statescope

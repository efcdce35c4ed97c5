#include "app/prompt_page.h"

#include <QCoreApplication>
#include <QPointer>
#include <QSignalBlocker>
#include <QThreadPool>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "app/assets.h"
#include "app/cli_commands.h"
#include "app/theme.h"
#include "engine/unread.h"
#include "views/parts.h"

namespace statescope {
namespace {

constexpr int count_delay_ms = 150;
constexpr int lines_of_ids = 2, least_lines = 4;
constexpr int most_shown_ids = 4096;

enum Choice { as_it_is, one_before, shipped };  // what stands in the list of prompts, the last from there on

QPushButton* make_button(const QString& words, const char* keys, QWidget* parent) {
  auto* button = new QPushButton(words, parent);
  button->setFocusPolicy(Qt::StrongFocus);
  button->setShortcut(QKeySequence(QString::fromLatin1(keys)));
  button->setToolTip(PromptPage::tr("Marks the selected words (%1)").arg(button->shortcut().toString(QKeySequence::NativeText)));
  return button;
}

QString count_words(std::int64_t tokens) { return QString::fromStdString(tokens_text(tokens)); }

std::size_t byte_of(const QString& text, int position) { return static_cast<std::size_t>(text.left(position).toUtf8().size()); }
int position_of(const std::string& text, std::size_t byte) {
  return static_cast<int>(QString::fromUtf8(text.data(), static_cast<qsizetype>(std::min(byte, text.size()))).size());
}

/// As high as the page leaves room for, a few lines at least.
class TextBox : public QPlainTextEdit {
 public:
  using QPlainTextEdit::QPlainTextEdit;
  QSize sizeHint() const override { return minimumSizeHint(); }
};

}  // namespace

PromptPage::PromptPage(Navigator& navigator, QWidget* parent) : QWidget(parent), navigator_(navigator) {
  from_ = new QComboBox(this);
  from_->setObjectName("names");
  from_->setAccessibleName(tr("Prompt to begin with"));
  from_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  text_ = new TextBox(this);
  text_->setTabChangesFocus(true);
  QLayout* marks = make_marks();
  chat_ = new QCheckBox(tr("Said in a &chat"), this);
  chat_->setToolTip(tr("The model reads the text as what a user says to it, in the form of its chat template"));
  count_ = new QLabel(this);
  count_->setObjectName("faint");
  count_->setWordWrap(true);
  count_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  count_->setFocusPolicy(Qt::NoFocus);
  ids_ = new QPlainTextEdit(this);
  ids_->setReadOnly(true);
  ids_->setTabChangesFocus(true);
  ids_->setAccessibleName(tr("Token ids of the text"));
  expected_ = new QLineEdit(this);
  expected_->setAccessibleName(tr("Right answer"));
  expected_->setPlaceholderText(tr("What a right answer says"));
  generate_ = new QSpinBox(this);
  generate_->setRange(0, 4096);
  generate_->setAccessibleName(tr("Tokens to generate after the prompt"));
  form_ = new QFormLayout;
  form_->addRow(tr("Right answer"), expected_);
  form_->addRow(tr("Tokens to generate"), generate_);
  read_ = new QPushButton(tr("Read it"), this);
  read_->setDefault(true);
  read_->setShortcut(QKeySequence("Ctrl+Return"));
  read_->setToolTip(read_->shortcut().toString(QKeySequence::NativeText));
  setFocusProxy(text_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(from_);
  layout->addWidget(text_, 1);
  marks_row_->setLayout(marks);
  layout->addWidget(marks_row_);
  auto* counted = new QHBoxLayout;
  counted->addWidget(count_, 1);
  counted->addWidget(chat_);
  layout->addLayout(counted);
  layout->addWidget(ids_);
  layout->addLayout(form_);
  layout->addWidget(read_);
  count_delay_.setSingleShot(true);
  count_delay_.setInterval(count_delay_ms);
  make_connections();
  show_prompt({});
}

QLayout* PromptPage::make_marks() {
  marks_row_ = new QWidget(this);
  needle_ = make_button(tr("Needle"), "Alt+N", marks_row_);
  question_ = make_button(tr("Question"), "Alt+Q", marks_row_);
  answer_ = make_button(tr("Answer"), "Alt+A", marks_row_);
  auto* row = new QHBoxLayout;
  row->setContentsMargins(0, 0, 0, 0);
  for (QPushButton* button : {needle_, question_, answer_}) row->addWidget(button);
  return row;
}

void PromptPage::make_connections() {
  connect(needle_, &QPushButton::clicked, this, [this] { mark(SpanKind::needle); });
  connect(question_, &QPushButton::clicked, this, [this] { mark(SpanKind::question); });
  connect(answer_, &QPushButton::clicked, this, [this] { mark(SpanKind::answer); });
  connect(text_, &QPlainTextEdit::textChanged, this, &PromptPage::take_edit);
  connect(from_, &QComboBox::activated, this, &PromptPage::choose);
  connect(read_, &QPushButton::clicked, this, &PromptPage::read);
  connect(chat_, &QCheckBox::toggled, this, &PromptPage::show_kind);
  connect(&count_delay_, &QTimer::timeout, this, &PromptPage::count);
  connect(&navigator_, &Navigator::opened, this, [this] { show_kind(); });
}

void PromptPage::set_frame(const Frame& frame) {
  frame_ = frame;
  const int line = fontMetrics().lineSpacing();
  ids_->setFixedHeight(lines_of_ids * line + line);
  text_->setMinimumHeight(least_lines * line + line);
  show_marks();
}

bool PromptPage::has_no_text() const { return !navigator_.facts().no_text.isEmpty(); }

/// Also of a model that reads texts, where ids were read and ids stand there.
bool PromptPage::takes_ids() const { return has_no_text() || (!written_.ids.empty() && ids_in(text_->toPlainText().toStdString())); }

bool PromptPage::is_chat() const { return chat_->isChecked() && navigator_.facts().chat && !takes_ids() && !is_formed(); }

/// Whether a chat template's own text stands there, as long as it begins as that does.
bool PromptPage::is_formed() const {
  constexpr std::size_t beginning = 8;
  return written_.in_chat && text_->toPlainText().toStdString().starts_with(written_.text.substr(0, beginning));
}

void PromptPage::show_kind() {
  const bool text = !has_no_text();
  chat_->setVisible(text && navigator_.facts().chat && !takes_ids() && !is_formed());
  marks_row_->setVisible(text);
  if (isVisible()) count_soon();
}

void PromptPage::fill() {
  const PromptInput& shown = navigator_.prompt();
  show_prompt(shown.in_chat && shown.text == formed_ ? said_ : shown);
  const RunInfo* run = navigator_.run().get();
  const bool whole = run && unread(*run) == 0;
  const std::int64_t generated = whole ? navigator_.tokens() - run->prompt_length : written_.generate.value_or(0);
  generate_->setValue(static_cast<int>(generated));
  show_choices();
  text_->selectAll();
}

void PromptPage::show_prompt(const PromptInput& prompt) {
  const QSignalBlocker quiet(text_);
  written_ = prompt;
  marks_.clear();
  text_->setPlainText(QString::fromStdString(prompt.ids.empty() ? prompt.text : ids_text(prompt.ids)));
  for (const TextSpan& span : prompt.spans) {
    QTextCursor words(text_->document());
    words.setPosition(position_of(prompt.text, span.begin));
    words.setPosition(position_of(prompt.text, span.end), QTextCursor::KeepAnchor);
    marks_.push_back({span.kind, words});
  }
  expected_->setText(QString::fromStdString(prompt.expected));
  expected_->setModified(false);
  text_->document()->setModified(false);
  const bool ids = takes_ids();
  text_->setAccessibleName(ids ? tr("Token ids of the prompt") : tr("Text of the prompt"));
  text_->setPlaceholderText(ids ? tr("Token ids for the model to read, such as 12 7 99") : tr("A text for the model to read"));
  ids_->setVisible(!has_no_text());
  form_->setRowVisible(expected_, !has_no_text());
  show_kind();
  show_marks();
  count_soon();
}

/// What the reader's own text has replaced, and what ships.
void PromptPage::show_choices() {
  from_->clear();
  from_->addItem(tr("Your own, or begin with…"));
  from_->addItem(tr("The prompt of before"));
  for (const std::filesystem::path& path : shipped_prompts())
    from_->addItem(QString::fromStdString(path.stem().string()), QString::fromStdString(path.string()));
}

void PromptPage::choose(int index) {
  if (index == as_it_is) return;
  try {
    PromptInput chosen =
        index == one_before ? before_ : load_prompt({.text = {}, .ids = {}, .file = from_->itemData(index).toString().toStdString()});
    if (index == one_before && chosen.text.empty() && chosen.ids.empty()) chosen = navigator_.prompt();
    show_prompt(chosen);
    generate_->setValue(static_cast<int>(chosen.generate.value_or(generate_->value())));
    text_->setFocus();
  } catch (const std::exception& error) {
    count_->setText(QString::fromUtf8(error.what()));
  }
  from_->setCurrentIndex(as_it_is);
}

/// A mark whose words have gone goes; with the last of them the right answer to another text.
void PromptPage::take_edit() {
  if (text_->document()->isModified()) {
    std::erase_if(marks_, [](const Mark& mark) { return !mark.words.hasSelection(); });
    if (marks_.empty() && !expected_->isModified()) expected_->clear();
    chat_->setVisible(!has_no_text() && navigator_.facts().chat && !takes_ids() && !is_formed());
  }
  show_marks();
  count_soon();
}

void PromptPage::select_word(QTextCursor& cursor) const {
  if (!cursor.hasSelection()) cursor.select(QTextCursor::WordUnderCursor);
}

void PromptPage::mark(SpanKind kind) {
  QTextCursor words = text_->textCursor();
  select_word(words);
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
  text_->document()->setModified(true);
  show_marks();
  if (is_chat()) show_reading(TextReading(reading_));
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

PromptInput PromptPage::prompt() const {
  PromptInput input = written_;
  const QString text = text_->toPlainText();
  if (takes_ids()) {
    input = {
        .text = {}, .spans = {}, .ids = ids_in(text.toStdString()).value_or(std::vector<std::int32_t>()), .expected = {}, .generate = {}};
  } else if (text_->document()->isModified() || expected_->isModified()) {
    input = {.text = text.toStdString(),
             .spans = {},
             .ids = {},
             .expected = expected_->text().toStdString(),
             .generate = {},
             .in_chat = is_formed()};
    for (const Mark& mark : marks_)
      input.spans.push_back({mark.kind, byte_of(text, mark.words.selectionStart()), byte_of(text, mark.words.selectionEnd())});
  }
  input.generate = generate_->value();
  return input;
}

void PromptPage::read() {
  if (!read_->isEnabled()) return;
  PromptInput wanted = prompt();
  if (is_chat()) {
    if (reading_.ids.empty()) return;  // not counted yet, or refused
    said_ = wanted;
    formed_ = wanted.text = reading_.chat;
    wanted.in_chat = true;
    for (TextSpan& span : wanted.spans) span = moved(span, *reading_.said);
  }
  const PromptInput& shown = navigator_.prompt();
  if (wanted.text != shown.text || wanted.ids != shown.ids) before_ = shown;
  navigator_.read(std::move(wanted));
}

void PromptPage::count_soon() {
  ++counted_;
  reading_ = {};
  count_->clear();
  count_delay_.start();
}

/// Beside the interface; what was typed since then is counted anew.
void PromptPage::count() {
  const std::string text = text_->toPlainText().toStdString();
  if (takes_ids()) {
    const std::optional<std::vector<std::int32_t>> ids = ids_in(text);
    read_->setEnabled(ids && !ids->empty());
    count_->setText(ids ? count_words(std::ssize(*ids)) : tr("Token ids are whole numbers with spaces between them."));
    return;
  }
  read_->setEnabled(true);
  const std::shared_ptr<const Tokenizer>& tokenizer = navigator_.facts().tokenizer;
  if (!tokenizer) return;
  const std::shared_ptr<const chat::TemplateFolder> folder = is_chat() ? navigator_.facts().chat : nullptr;
  read_->setEnabled(!folder);  // in a chat, once it is known what the model would read
  QThreadPool::globalInstance()->start([self = QPointer<PromptPage>(this), tokenizer, folder, vocab = navigator_.facts().vocab, text,
                                        formed = is_formed(), ticket = counted_] {
    TextReading reading = folder ? read_chat(*tokenizer, *folder, text) : read_text(*tokenizer, vocab, text, formed);
    QMetaObject::invokeMethod(
        qApp,
        [self, reading = std::move(reading), ticket] {
          if (self && self->counted_ == ticket) self->show_reading(reading);
        },
        Qt::QueuedConnection);
  });
}

void PromptPage::show_reading(const TextReading& reading) {
  reading_ = reading;
  const bool lost_marks = is_chat() && !marks_.empty() && !reading.ids.empty() && !reading.said;
  if (is_chat()) read_->setEnabled(!reading.ids.empty() && !lost_marks);
  QStringList lines;
  if (lost_marks)
    lines += tr("The chat template changes the text, so nothing can be marked in it. Take the marks away, or read it outside a chat.");
  for (const UnknownWord& word : reading.unknown) {
    const std::string text = text_->toPlainText().toStdString().substr(word.begin, word.end - word.begin);
    const QString nearest = QString::fromStdString(joined(word.nearest, ", "));
    lines += nearest.isEmpty() ? tr("The model does not know “%1”.").arg(QString::fromStdString(text))
                               : tr("The model does not know “%1”. It knows: %2.").arg(QString::fromStdString(text), nearest);
  }
  if (!reading.refused.empty()) lines += QString::fromStdString(reading.refused);
  if (lines.isEmpty()) lines += count_words(std::ssize(reading.ids));
  count_->setText(lines.mid(0, 4).join('\n'));
  const auto shown = std::min<std::ptrdiff_t>(most_shown_ids, std::ssize(reading.ids));
  ids_->setPlainText(QString::fromStdString(ids_text({reading.ids.begin(), reading.ids.begin() + shown})));
  show_marks();
}

}  // namespace statescope

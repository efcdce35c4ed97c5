#include "app/pages/prompt_page.h"

#include <QCoreApplication>
#include <QMimeData>
#include <QMouseEvent>
#include <QPointer>
#include <QSignalBlocker>
#include <QThreadPool>
#include <QVBoxLayout>
#include <algorithm>
#include <functional>
#include <utility>

#include "app/assets.h"
#include "app/common/prompts.h"
#include "app/controls/theme.h"
#include "app/pages/conversation.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/unread.h"
#include "views/parts.h"

namespace statescope {
namespace {

constexpr int count_delay_ms = 150;
constexpr int lines_of_ids = 2, least_lines = 4;
constexpr int most_shown_ids = 4096;
constexpr int tokens_of_reply = 32;  // where nobody says how many

enum Choice { as_it_is, one_before, one_shown, drawn, shipped };  // what stands in the list of prompts, the last from there on

QString count_words(std::int64_t tokens) { return QString::fromStdString(tokens_text(tokens)); }

bool same_words(const PromptInput& a, const PromptInput& b) { return a.text == b.text && a.ids == b.ids; }

/// As high as the page leaves room for, a few lines at least. Words are selected in it to be marked: they are not dragged about, and what
/// is dropped on it is the window's.
class TextBox : public QPlainTextEdit {
 public:
  using QPlainTextEdit::QPlainTextEdit;
  std::function<bool(const QString&)> take;    // what is pasted, where it is more than a text
  const WordCompletion* completion = nullptr;  // which has some keys while it proposes words

  QSize sizeHint() const override { return minimumSizeHint(); }

 protected:
  /// In what is selected, too, another selection begins.
  void mousePressEvent(QMouseEvent* event) override {
    if (event->button() == Qt::LeftButton && !(event->modifiers() & Qt::ShiftModifier))
      setTextCursor(cursorForPosition(event->position().toPoint()));
    QPlainTextEdit::mousePressEvent(event);
  }
  void keyPressEvent(QKeyEvent* event) override {
    constexpr int of_completion[] = {Qt::Key_Return, Qt::Key_Enter, Qt::Key_Tab, Qt::Key_Escape};
    if (completion->is_shown() && std::ranges::count(of_completion, event->key()) > 0) return event->ignore();
    QPlainTextEdit::keyPressEvent(event);
  }
  void insertFromMimeData(const QMimeData* source) override {
    if (!source->hasText() || !take(source->text())) QPlainTextEdit::insertFromMimeData(source);
  }
};

}  // namespace

PromptPage::PromptPage(Navigator& navigator, QWidget* parent) : QWidget(parent), navigator_(navigator) {
  from_ = new QComboBox(this);
  from_->setObjectName("names");
  from_->setAccessibleName(tr("Prompt to begin with"));
  from_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  turns_ = new ChatTurns(this);
  auto* text = new TextBox(this);
  text->setAcceptDrops(false);
  text->take = [this](const QString& pasted) { return take_pasted(pasted); };
  text_ = text;
  text_->setTabChangesFocus(true);
  text->completion = completion_ = new WordCompletion(*text_);
  needles_ = new RandomNeedles(navigator_, this);
  needles_->hide();
  make_marks();
  chat_ = new QCheckBox(tr("Read as a &chat"), this);
  chat_->setToolTip(tr("The model reads what is said to it, in one turn or several, in the form of its chat template"));
  count_ = new QLabel(this);
  count_->setObjectName("faint");
  count_->setWordWrap(true);
  count_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  count_->setFocusPolicy(Qt::NoFocus);
  ids_ = new QPlainTextEdit(this);
  ids_->setReadOnly(true);
  ids_->setTabChangesFocus(true);
  ids_->setAccessibleName(tr("Token ids of the text"));
  make_form();
  read_ = new QPushButton(tr("Read it"), this);
  read_->setDefault(true);
  read_->setShortcut(QKeySequence("Ctrl+Return"));
  read_->setToolTip(read_->shortcut().toString(QKeySequence::NativeText));
  setFocusProxy(text_);
  lay_out();
  setTabOrder(generate_, ids_);
  count_delay_.setSingleShot(true);
  count_delay_.setInterval(count_delay_ms);
  make_connections();
  show_prompt({});
}

void PromptPage::make_form() {
  expected_ = new QLineEdit(this);
  expected_->setAccessibleName(tr("Right answer"));
  expected_->setPlaceholderText(tr("if it is known"));
  expected_->setToolTip(tr("What a right answer says: the model's own is compared with it"));
  generate_ = new NumberBox(this);
  generate_->setDecimals(0);
  generate_->setRange(0, 4096);
  generate_->setAccessibleName(tr("Tokens to generate after the prompt"));
  form_ = new QFormLayout;
  form_->addRow(tr("Right answer"), expected_);
  form_->addRow(tr("Tokens to generate"), generate_);
}

void PromptPage::lay_out() {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(from_);
  layout->addWidget(needles_);
  layout->addWidget(turns_);
  layout->addWidget(text_, 1);
  layout->addWidget(marks_row_);
  auto* counted = new QHBoxLayout;
  counted->addWidget(count_, 1);
  counted->addWidget(chat_);
  layout->addLayout(counted);
  layout->addLayout(form_);
  layout->addWidget(ids_);
}

void PromptPage::make_connections() {
  connect(needle_, &QPushButton::clicked, this, [this] { mark(SpanKind::needle); });
  connect(question_, &QPushButton::clicked, this, [this] { mark(SpanKind::question); });
  connect(answer_, &QPushButton::clicked, this, [this] { mark(SpanKind::answer); });
  connect(text_, &QPlainTextEdit::textChanged, this, &PromptPage::take_edit);
  connect(from_, &QComboBox::activated, this, &PromptPage::choose);
  connect(needles_, &RandomNeedles::drawn, this, &PromptPage::take_instead);
  connect(needles_, &RandomNeedles::refused, this, &PromptPage::spoke);
  connect(read_, &QPushButton::clicked, this, &PromptPage::read);
  connect(chat_, &QCheckBox::toggled, this, [this](bool checked) {
    text_->document()->setModified(true);
    edited_ = true;
    if (checked) want_reply();
    show_kind();
  });
  connect(turns_, &ChatTurns::leaving, this, &PromptPage::keep_turn);
  connect(turns_, &ChatTurns::chosen, this, [this] { show_text(turns_->current().text, turns_->current().spans); });
  connect(turns_, &ChatTurns::changed, this, [this] {
    edited_ = true;
    count_soon();
  });
  connect(turns_, &ChatTurns::left, text_, qOverload<>(&QWidget::setFocus));
  connect(&count_delay_, &QTimer::timeout, this, &PromptPage::count);
  connect(generate_, &NumberBox::refused, this, &PromptPage::spoke);
  connect(expected_, &QLineEdit::textEdited, this, [this] { edited_ = true; });
  connect(&navigator_, &Navigator::opened, this, &PromptPage::follow_run);
  connect(&navigator_, &Navigator::opening_ended, this, [this] { read_here_ = false; });
}

void PromptPage::set_frame(const Frame& frame) {
  frame_ = frame;
  const int line = fontMetrics().lineSpacing();
  ids_->setFixedHeight(lines_of_ids * line + line);
  turns_->fit();
  text_->setMinimumHeight(least_lines * line + line);
  show_marks();
}

bool PromptPage::has_no_text() const { return !navigator_.facts().no_text.isEmpty(); }

/// Also of a model that reads texts, where ids were read and ids stand there.
bool PromptPage::takes_ids() const { return has_no_text() || (!written_.ids.empty() && ids_in(text_->toPlainText().toStdString())); }

bool PromptPage::can_chat() const { return !has_no_text() && navigator_.facts().chat && !takes_ids() && !is_formed(); }
bool PromptPage::is_chat() const { return chat_->isChecked() && can_chat(); }

/// Whether a chat template's own text stands there, as long as it begins as that does.
bool PromptPage::is_formed() const {
  constexpr std::size_t beginning = 8;
  return written_.in_chat && written_.turns.empty() && text_->toPlainText().toStdString().starts_with(written_.text.substr(0, beginning));
}

void PromptPage::show_kind() {
  chat_->setVisible(can_chat());
  turns_->setVisible(is_chat());
  marks_row_->setVisible(!has_no_text());
  if (isVisible()) count_soon();
}

void PromptPage::fill() {
  read_soon_ = false;
  show_choices();
  show_words();
  if (edited_) return show_kind();
  shown_ = navigator_.prompt();
  {
    const QSignalBlocker quiet(chat_);
    chat_->setChecked(!navigator_.prompt().turns.empty());
  }
  show_prompt(navigator_.prompt());
  const RunInfo* run = navigator_.run().get();
  const bool whole = run && unread(*run) == 0;
  const std::int64_t wanted = written_.generate.value_or(run ? std::ssize(run->expected) : 0);
  const std::int64_t generated = whole ? navigator_.tokens() - run->prompt_length : wanted;
  generate_->setValue(static_cast<double>(generated));
  text_->selectAll();
}

/// What was written here stands, or another prompt does: then that of the page can be chosen again. Another model on the same prompt leaves
/// what is being written as it is.
void PromptPage::follow_run() {
  const PromptInput& now = navigator_.prompt();
  const bool was_read_here = std::exchange(read_here_, false), same = same_words(now, shown_);
  if (was_read_here) edited_ = false;
  if (!was_read_here && !same && std::exchange(edited_, false)) before_ = draft();
  shown_ = now;
  if (isVisible() && !was_read_here && !same) fill();
  show_kind();
}

/// What stands on the page, whatever the model of now would read of it.
PromptInput PromptPage::draft() const {
  const std::string text = text_->toPlainText().toStdString();
  PromptInput input{.text = text, .spans = marked(), .ids = {}, .expected = expected_->text().toStdString(), .generate = {}};
  if (chat_->isChecked() && turns_->turns().size() > 1) {
    turns_->write(text, input.spans);
    input.turns = turns_->turns();
  }
  return input;
}

void PromptPage::show_prompt(const PromptInput& prompt) {
  written_ = prompt;
  if (!navigator_.facts().chat) written_.turns.clear();
  if (written_.turns.empty()) {
    turns_->set_turns({{"user", prompt.text, prompt.spans}});
    show_text(prompt.ids.empty() ? prompt.text : ids_text(prompt.ids), prompt.spans);
  } else {
    show_turns(written_.turns);
  }
  expected_->setText(QString::fromStdString(prompt.expected));
  expected_->setModified(false);
  const bool ids = takes_ids();
  text_->setAccessibleName(ids ? tr("Token ids of the prompt") : tr("Text of the prompt"));
  text_->setPlaceholderText(ids ? tr("Token ids for the model to read, such as 12 7 99") : tr("A text for the model to read"));
  ids_->setVisible(!has_no_text());
  form_->setRowVisible(expected_, !has_no_text());
  show_kind();
}

void PromptPage::show_turns(std::vector<ChatTurn> turns) {
  const QSignalBlocker quiet(chat_);
  chat_->setChecked(true);
  turns_->set_turns(std::move(turns));
  show_text(turns_->current().text, turns_->current().spans);
  expected_->clear();
}

/// Who says something in a chat waits for an answer.
void PromptPage::want_reply() {
  if (generate_->value() == 0) generate_->setValue(tokens_of_reply);
}

/// What stands in the box is the turn's.
void PromptPage::keep_turn() { turns_->write(text_->toPlainText().toStdString(), marked()); }

void PromptPage::read_turns(std::vector<ChatTurn> turns) {
  written_ = {};
  edited_ = true;
  show_turns(std::move(turns));
  want_reply();
  show_kind();
  read_soon_ = true;
}

/// A conversation as JSON becomes turns where nothing else stands there.
bool PromptPage::take_pasted(const QString& text) {
  const bool nothing_else = text_->toPlainText().size() == text_->textCursor().selectedText().size();
  if (!navigator_.facts().chat || !nothing_else) return false;
  try {
    std::optional<std::vector<ChatTurn>> turns = turns_in(text.toStdString(), tr("What was pasted").toStdString());
    if (!turns) return false;
    written_ = {};
    edited_ = true;
    show_turns(std::move(*turns));
    show_kind();
  } catch (const std::exception& error) {
    count_delay_.stop();
    count_->setText(QString::fromUtf8(error.what()));
  }
  return true;
}

/// What the reader's own text has replaced, and what ships.
void PromptPage::show_choices() {
  from_->clear();
  from_->addItem(tr("Your own, or begin with…"));
  from_->addItem(tr("The previous prompt"));
  from_->addItem(tr("The prompt that is shown"));
  from_->addItem(tr("New random needles"));
  for (const std::filesystem::path& path : shipped_prompts())
    from_->addItem(QString::fromStdString(path.stem().string()), QString::fromStdString(path.string()));
}

void PromptPage::choose(int index) {
  if (index == as_it_is) return;
  needles_->setVisible(index == drawn);
  from_->setCurrentIndex(as_it_is);
  if (index == drawn) return needles_->draw();
  try {
    const bool shown = index == one_shown || (index == one_before && before_.text.empty() && before_.ids.empty());
    take_instead(shown                 ? navigator_.prompt()
                 : index == one_before ? before_
                                       : load_prompt({.text = {}, .ids = {}, .file = from_->itemData(index).toString().toStdString()}));
    edited_ = !shown;
    text_->setFocus();
  } catch (const std::exception& error) {
    count_->setText(QString::fromUtf8(error.what()));
  }
}

/// What was written here and not read becomes the previous prompt, which this may be.
void PromptPage::take_instead(PromptInput prompt) {
  if (edited_) before_ = draft();
  edited_ = true;
  show_prompt(prompt);
  if (prompt.generate) generate_->setValue(static_cast<double>(*prompt.generate));
}

/// Of a model that knows words of a list alone.
void PromptPage::show_words() {
  const std::shared_ptr<const Tokenizer>& tokenizer = navigator_.facts().tokenizer;
  QStringList words;
  if (tokenizer && tokenizer->info().kind == "words")
    for (std::int32_t id = 0; id < navigator_.facts().vocab; ++id) words += QString::fromStdString(tokenizer->text_of(id));
  completion_->set_words(words);
}

/// A mark whose words have gone goes; with the last of them the right answer to another text.
void PromptPage::take_edit() {
  if (text_->document()->isModified()) {
    edited_ = true;
    std::erase_if(marks_, [](const Mark& mark) { return !mark.words.hasSelection(); });
    const bool is_all = !is_chat() || turns_->turns().size() == 1;
    if (marks_.empty() && is_all && !expected_->isModified()) expected_->clear();
    chat_->setVisible(can_chat());
    turns_->setVisible(is_chat());
  }
  show_marks();
  count_soon();
}

PromptInput PromptPage::prompt() const {
  PromptInput input = written_;
  const QString text = text_->toPlainText();
  if (takes_ids()) {
    input = {
        .text = {}, .spans = {}, .ids = ids_in(text.toStdString()).value_or(std::vector<std::int32_t>()), .expected = {}, .generate = {}};
  } else if (is_chat() || text_->document()->isModified() || expected_->isModified()) {
    input = {.text = text.toStdString(),
             .spans = marked(),
             .ids = {},
             .expected = expected_->text().toStdString(),
             .generate = {},
             .in_chat = is_formed()};
  }
  input.generate = static_cast<std::int64_t>(generate_->value());
  return input;
}

void PromptPage::read() {
  if (!read_->isEnabled() || !generate_->take_typed()) return;
  PromptInput wanted = prompt();
  if (is_chat()) {
    read_soon_ = reading_.ids.empty() && reading_.refused.empty();  // not counted yet
    if (reading_.ids.empty()) return;
    wanted.text = reading_.chat;
    wanted.spans = reading_.spans;
    wanted.in_chat = true;
    wanted.turns = turns_->turns();
  }
  const PromptInput& shown = navigator_.prompt();
  if (!same_words(wanted, shown)) before_ = shown;
  read_here_ = true;
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
    const std::int64_t vocab = navigator_.facts().vocab;
    const bool good = ids && (vocab == 0 || std::ranges::all_of(*ids, [&](std::int32_t id) { return id < vocab; }));
    read_->setEnabled(good && !ids->empty());
    count_->setText(good         ? count_words(std::ssize(*ids))
                    : vocab == 0 ? tr("Token ids are whole numbers with spaces between them.")
                                 : tr("Token ids are whole numbers from 0 to %1 with spaces between them.").arg(vocab - 1));
    return;
  }
  read_->setEnabled(true);
  const std::shared_ptr<const Tokenizer>& tokenizer = navigator_.facts().tokenizer;
  if (!tokenizer && navigator_.facts().is_elsewhere)
    count_->setText(tr("The engine counts its tokens when it reads it. A chat is read with --chat: its template is with the engine."));
  if (!tokenizer) return;
  const std::shared_ptr<const chat::TemplateFolder> folder = is_chat() ? navigator_.facts().chat : nullptr;
  read_->setEnabled(!folder);  // in a chat, once it is known what the model would read
  if (folder) keep_turn();
  QThreadPool::globalInstance()->start([self = QPointer<PromptPage>(this), tokenizer, folder, vocab = navigator_.facts().vocab, text,
                                        turns = turns_->turns(), formed = is_formed(), ticket = counted_] {
    TextReading reading = folder ? read_chat(*tokenizer, *folder, turns) : read_text(*tokenizer, vocab, text, formed);
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
  if (is_chat()) read_->setEnabled(!reading.ids.empty() && !reading.lost_marks);
  QStringList lines;
  if (reading.lost_marks)
    lines += tr("The chat template changes the text, so nothing can be marked in it. Remove the marks, or read it outside a chat.");
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
  if (std::exchange(read_soon_, false)) read();
}

}  // namespace statescope

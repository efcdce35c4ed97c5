#include "app/lesson/lesson_page.h"

#include <QAccessible>
#include <QMenu>
#include <QResizeEvent>
#include <QScrollBar>
#include <QTextBlock>
#include <QTextDocument>
#include <QTextDocumentFragment>
#include <QTextList>
#include <QVBoxLayout>
#include <algorithm>

#include "app/controls/theme.h"
#include "engine/error.h"
#include "views/parts.h"

namespace statescope {
namespace {

QString to_qstring(const std::string& text) { return QString::fromStdString(text); }

QLabel* add_label(QVBoxLayout& layout, const char* name, Qt::TextFormat format = Qt::PlainText) {
  auto* label = new QLabel;
  label->setObjectName(name);
  label->setWordWrap(true);
  label->setTextFormat(format);
  layout.addWidget(label);
  return label;
}

/// Hidden where it has nothing to say.
void set_text(QLabel* label, const QString& text) {
  label->setText(text);
  label->setVisible(!text.isEmpty());
}

/// Paragraphs stand apart.
QString rich_text(QLabel& label, const QString& markdown) {
  label.ensurePolished();
  QTextDocument document;
  document.setDefaultFont(label.font());
  document.setMarkdown(markdown);
  for (QTextBlock block = document.begin(); block.isValid(); block = block.next()) {
    QTextBlockFormat format = block.blockFormat();
    format.setBottomMargin(label.fontMetrics().height() * (block.textList() ? 0.2 : 0.5));
    QTextCursor(block).setBlockFormat(format);
  }
  return document.toHtml();
}

void set_markdown(QLabel* label, const std::string& text) {
  const QString markdown = to_qstring(text).trimmed();
  set_text(label, markdown.isEmpty() ? QString() : rich_text(*label, markdown));
  label->setAccessibleName(QTextDocumentFragment::fromMarkdown(markdown).toPlainText());
}

/// The name of a command's key, in brackets behind the words.
QString with_key(const QString& words, const QAction* action) {
  const QString key = action->shortcut().toString(QKeySequence::NativeText);
  return key.isEmpty() ? words : QStringLiteral("%1 (%2)").arg(words, key);
}

/// In lines of at most `room`, broken at spaces.
QString in_lines(const QString& words, const QFontMetrics& metrics, int room) {
  QString lines, line;
  for (const QString& word : words.split(' ')) {
    const QString longer = line.isNull() ? word : line + ' ' + word;
    const bool fits = line.isNull() || metrics.horizontalAdvance(longer) <= room;
    if (!fits) lines += line + '\n';
    line = fits ? longer : word;
  }
  return lines + line;
}

/// What it says, in as many lines as it needs to be no wider than `room`.
void set_words(QPushButton& button, const QString& words, int room) {
  button.ensurePolished();
  button.setText(words);
  const int around = button.sizeHint().width() - button.fontMetrics().horizontalAdvance(words);
  button.setText(in_lines(words, button.fontMetrics(), room - around));
  button.setAccessibleName(words);
}

std::vector<LessonEntry> lesson_entries() {
  std::vector<LessonEntry> entries;
  for (const std::filesystem::path& file : shipped_lessons()) {
    try {
      const Lesson lesson = load_lesson(file);
      entries.push_back({file, to_qstring(lesson.title), LessonPage::tr("%1 (%2 min)").arg(to_qstring(lesson.about)).arg(lesson.minutes)});
    } catch (const Error& error) {
      entries.push_back({file, to_qstring(file.stem().string()), QString::fromUtf8(error.what())});
    }
  }
  return entries;
}

}  // namespace

LessonPage::LessonPage(LessonPlayer& player, const LessonProgress& progress, const FindAction& action, QWidget* parent)
    : QStackedWidget(parent), player_(player), progress_(progress), action_(action), entries_(lesson_entries()) {
  setObjectName("panel");
  setAccessibleName(tr("Lesson"));
  addWidget(make_list());
  addWidget(make_step());
  connect(&player_, &LessonPlayer::entered, this, &LessonPage::enter);
  connect(&player_, &LessonPlayer::changed, this, [this] {
    const bool was_open = verdict_->isHidden();
    show_step();
    if (was_open && !verdict_->isHidden()) QMetaObject::invokeMethod(this, &LessonPage::show_reveal, Qt::QueuedConnection);
  });
  connect(&player_, &LessonPlayer::moved, this, [this] { picture_->setVisible(!player_.is_at_picture()); });
  show_keys();
}

QWidget* LessonPage::make_list() {
  auto* page = new QWidget(this);
  auto* layout = new QVBoxLayout(page);
  auto* heading = new QLabel(tr("Lessons"), page);
  heading->setObjectName("question");
  list_ = new QListWidget(page);
  list_->setAccessibleName(tr("Lessons"));
  list_->setObjectName("lessons");
  list_->setWordWrap(true);
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  for (const LessonEntry& entry : entries_) {
    auto* item = new QListWidgetItem(list_);
    item->setData(Qt::UserRole, to_qstring(entry.file.string()));
  }
  show_progress();
  list_->setCurrentRow(0);
  connect(list_, &QListWidget::itemActivated, this,
          [this](const QListWidgetItem* item) { Q_EMIT chosen(item->data(Qt::UserRole).toString().toStdString()); });
  auto* hint = new QLabel(tr("Enter begins one. Your own: drop its file, a .md, on the window."), page);
  hint->setObjectName("faint");
  hint->setWordWrap(true);
  layout->addWidget(heading);
  layout->addWidget(list_, 1);
  layout->addWidget(hint);
  return page;
}

QWidget* LessonPage::make_step() {
  auto* page = new QWidget(this);
  auto* layout = new QVBoxLayout(page);
  top_ = new QHBoxLayout;
  title_ = new QLabel(page);
  title_->setObjectName("small");
  title_->setWordWrap(true);
  leave_ = new QToolButton(page);
  leave_->setDefaultAction(action_("lesson-leave"));
  leave_->setToolButtonStyle(Qt::ToolButtonIconOnly);
  leave_->setFocusPolicy(Qt::TabFocus);
  leave_->setAccessibleName(action_("lesson-leave")->text());
  top_->addWidget(title_, 1);
  top_->addWidget(leave_, 0, Qt::AlignTop);
  layout->addLayout(top_);

  auto* body = new QWidget;
  auto* text = new QVBoxLayout(body);
  text->setContentsMargins(0, 0, 0, 0);
  go_on_ = new QPushButton(body);
  go_on_->setObjectName("choice");
  connect(go_on_, &QPushButton::clicked, &player_, &LessonPlayer::go_on);
  text->addWidget(go_on_);
  heading_ = add_label(*text, "model");
  caption_ = add_label(*text, "caption");
  prose_ = add_label(*text, "prose", Qt::RichText);
  question_ = add_label(*text, "question");
  choices_ = new QWidget(body);
  (new QVBoxLayout(choices_))->setContentsMargins(0, 0, 0, 0);
  text->addWidget(choices_);
  verdict_ = add_label(*text, "question");
  reveal_ = add_label(*text, "prose", Qt::RichText);
  broken_ = add_label(*text, "faint");
  text->addStretch(1);
  scroll_ = new QScrollArea(page);
  scroll_->setWidget(body);
  scroll_->setWidgetResizable(true);
  scroll_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll_->setFocusPolicy(Qt::TabFocus);
  scroll_->setAccessibleName(tr("Text of the step"));
  layout->addWidget(scroll_, 1);

  const auto button = [&](const char* id) {
    auto* made = new QPushButton(page);
    connect(made, &QPushButton::clicked, action_(id), &QAction::trigger);
    return made;
  };
  picture_ = button("lesson-picture");
  back_ = button("lesson-previous");
  next_ = button("lesson-next");
  place_ = new QToolButton(page);
  place_->setObjectName("small");
  place_->setAccessibleName(tr("Steps of the lesson"));
  place_->setToolTip(tr("Steps of the lesson"));
  place_->setPopupMode(QToolButton::InstantPopup);
  place_->setFocusPolicy(Qt::TabFocus);
  place_->setMenu(new QMenu(place_));
  connect(place_->menu(), &QMenu::aboutToShow, this, &LessonPage::list_steps);
  buttons_below_ = new QWidget(page);
  auto* below = new QVBoxLayout(buttons_below_);
  below->setContentsMargins(0, 0, 0, 0);
  below->addWidget(picture_);
  bottom_ = new QHBoxLayout;
  bottom_->addWidget(back_);
  bottom_->addStretch(1);
  bottom_->addWidget(place_);
  bottom_->addStretch(1);
  bottom_->addWidget(next_);
  below->addLayout(bottom_);
  layout->addWidget(buttons_below_);
  return page;
}

void LessonPage::set_frame(const Frame& frame) {
  const auto px = [&frame](int length) { return static_cast<int>(static_cast<float>(length) * frame.scale); };
  for (int i = 0; i < count(); ++i) {
    widget(i)->layout()->setContentsMargins(px(14), px(10), px(12), px(10));
    widget(i)->layout()->setSpacing(px(8));
  }
  scroll_->widget()->layout()->setSpacing(px(8));
  choices_->layout()->setSpacing(px(6));
  buttons_below_->layout()->setSpacing(px(8));
  show_step();
  action_("lesson-leave")->setIcon(icon_of("close", frame.theme));
  leave_->setIconSize({px(12), px(12)});
}

void LessonPage::set_room(std::optional<int> width, bool low) {
  const bool changed = maximumWidth() != width.value_or(QWIDGETSIZE_MAX);
  setMinimumWidth(width.value_or(0));
  setMaximumWidth(width.value_or(QWIDGETSIZE_MAX));
  if (changed) fit_words();
  QWidget* const above_buttons = low ? scroll_->widget() : widget(1);
  if (buttons_below_->parentWidget() == above_buttons) return;
  QWidget* const focused = window()->focusWidget();
  const bool was_here = focused == leave_ || buttons_below_->isAncestorOf(focused);
  title_->setVisible(!low);
  above_buttons->layout()->addWidget(buttons_below_);
  low ? bottom_->addWidget(leave_) : top_->addWidget(leave_, 0, Qt::AlignTop);
  buttons_below_->show();
  leave_->show();
  if (was_here) focused->setFocus();  // a widget that changes its parent loses it
}

void LessonPage::resizeEvent(QResizeEvent* event) {
  QStackedWidget::resizeEvent(event);
  if (event->size().width() != event->oldSize().width()) fit_words();
}

/// Of a line of the page; of its text, beside which a bar scrolls.
int LessonPage::line_room() const {
  const QMargins margins = widget(1)->layout()->contentsMargins();
  constexpr int frame = 2;
  const int page = maximumWidth() < QWIDGETSIZE_MAX ? maximumWidth() : width();
  return page - margins.left() - margins.right() - frame;
}
int LessonPage::text_room() const { return line_room() - scroll_->verticalScrollBar()->sizeHint().width(); }

void LessonPage::fit_words() {
  if (player_.lesson()) show_step();
  show_keys();
}

void LessonPage::set_slides(bool slides) {
  if (slides == slides_) return;
  slides_ = slides;
  show_step();
}

void LessonPage::show_progress() {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const QString words = progress_.words(entries_[i].file);
    const QString about = words.isEmpty() ? entries_[i].about : QStringLiteral("%1 · %2").arg(entries_[i].about, words);
    list_->item(static_cast<int>(i))->setText(entries_[i].title + "\n" + about);
  }
}

/// With what is done; a step that takes numbers from one that has not been seen is grey.
void LessonPage::list_steps() {
  QMenu& menu = *place_->menu();
  menu.clear();
  const LessonMarks marks = player_.marks();
  for (std::size_t i = 0; i < marks.steps.size(); ++i) {
    const QString title = to_qstring(player_.lesson()->steps[i].title).replace('&', QLatin1String("&&"));
    QAction* const step = menu.addAction(QStringLiteral("%1  %2  %3").arg(marks.steps[i].done ? "✓" : " ").arg(i + 1).arg(title));
    step->setCheckable(true);
    step->setChecked(i == player_.index());
    step->setEnabled(player_.can_go_to(i));
    connect(step, &QAction::triggered, &player_, [this, i] { player_.go_to_step(i); });
  }
}

void LessonPage::show_list() {
  show_progress();
  setCurrentIndex(0);
  list_->setFocus(Qt::ShortcutFocusReason);
}

const LessonEntry* LessonPage::next_lesson() const {
  if (!player_.lesson()) return nullptr;
  const auto here = std::ranges::find(entries_, player_.lesson()->file, &LessonEntry::file);
  return here == entries_.end() || here + 1 == entries_.end() ? nullptr : &*(here + 1);
}

void LessonPage::show_keys() {
  set_words(*picture_, with_key(tr("Back to the lesson’s picture"), action_("lesson-picture")), line_room());
  show_next();
}

/// The end of a lesson leads to the next one. Where one line has no room for the buttons, the step's number stands above, then their keys
/// are left out.
void LessonPage::show_next() {
  const LessonEntry* const next = player_.lesson() && player_.is_at_end() ? next_lesson() : nullptr;
  const QString back_words = tr("Back"), next_words = next ? tr("Next lesson") : tr("Next");
  back_->setText(with_key(back_words, action_("lesson-previous")));
  next_->setText(with_key(next_words, action_("lesson-next")));
  next_->setToolTip(next ? next->title : QString());
  next_->setEnabled(!player_.lesson() || !player_.is_at_end() || next);
  const auto width_of = [this](std::initializer_list<QWidget*> widgets) {
    int width = -bottom_->spacing();
    for (QWidget* widget : widgets) widget->ensurePolished(), width += widget->sizeHint().width() + 2 * bottom_->spacing();
    return width;
  };
  put_place_above(!title_->isHidden() && width_of({back_, place_, next_}) > line_room());
  if (width_of({back_, next_}) <= line_room()) return;
  back_->setText(back_words);
  next_->setText(next_words);
}

void LessonPage::put_place_above(bool above) {
  if (above == (top_->indexOf(place_) >= 0)) return;
  const bool was_focused = place_->hasFocus();
  above ? top_->insertWidget(1, place_, 0, Qt::AlignTop) : bottom_->insertWidget(2, place_);
  place_->show();
  if (was_focused) place_->setFocus();  // a widget that changes its parent loses it
}

/// Also for a screen reader.
void LessonPage::enter() {
  setCurrentIndex(player_.lesson() ? 1 : 0);
  if (!player_.lesson()) return;
  make_choices();
  show_step();
  scroll_->ensureVisible(0, 0);
  heading_->setAccessibleName(to_qstring(player_.step().title));
  QAccessibleEvent alert(heading_, QAccessible::Alert);
  QAccessible::updateAccessibility(&alert);
}

void LessonPage::make_choices() {
  qDeleteAll(buttons_);
  buttons_.clear();
  if (!player_.step().question) return;
  for (std::size_t i = 0; i < player_.step().question->choices.size(); ++i) {
    auto* button = new QPushButton(choices_);
    button->setObjectName("choice");
    connect(button, &QPushButton::clicked, this, [this, i] { player_.predict(i); });
    choices_->layout()->addWidget(button);
    buttons_.push_back(button);
  }
}

void LessonPage::show_step() {
  if (!player_.lesson()) return;
  const Lesson& lesson = *player_.lesson();
  const LessonStep& step = player_.step();
  const std::string& caption = player_.picture().caption;
  const std::optional<std::size_t> left_at = player_.left_at();
  go_on_->setVisible(left_at.has_value());
  if (left_at) set_words(*go_on_, tr("Go on at step %1: %2").arg(*left_at + 1).arg(to_qstring(lesson.steps[*left_at].title)), text_room());
  title_->setText(to_qstring(lesson.title));
  heading_->setText(to_qstring(step.title));
  set_text(caption_, caption.empty() ? QString() : tr("Look at: %1").arg(to_qstring(caption)));
  set_markdown(prose_, slides_ ? std::string() : player_.filled(step.prose));
  show_question();
  const std::vector<std::string> broken = player_.broken_claims();
  set_text(broken_, broken.empty() ? QString() : broken_words(broken));
  place_->setText(tr("%1 of %2").arg(player_.index() + 1).arg(lesson.steps.size()));
  back_->setEnabled(player_.index() > 0);
  show_next();
}

/// What the run has answered comes into sight, its beginning in any case.
void LessonPage::show_reveal() {
  scroll_->ensureWidgetVisible(reveal_->isHidden() ? verdict_ : reveal_, 0, 0);
  scroll_->ensureWidgetVisible(verdict_, 0, 0);
}

void LessonPage::show_question() {
  const LessonStep& step = player_.step();
  const bool asks = step.question.has_value(), revealed = asks && player_.is_revealed();
  set_text(question_, asks ? to_qstring(step.question->words) : QString());
  choices_->setVisible(asks);
  const std::optional<std::size_t> right = player_.right_choice(), predicted = asks ? player_.predicted() : std::nullopt;
  for (std::size_t i = 0; asks && i < step.question->choices.size(); ++i) {
    QPushButton& button = *buttons_[static_cast<qsizetype>(i)];
    const QString words = to_qstring(step.question->choices[i].words),
                  key = action_("lesson-choice" + std::to_string(i + 1))->shortcut().toString(QKeySequence::NativeText);
    const bool is_right = revealed && right == i, is_wrong = revealed && right && predicted == i && right != i;
    const QString marked = is_right   ? QStringLiteral("✓  %1").arg(words)
                           : is_wrong ? QStringLiteral("✗  %1").arg(words)
                                      : QStringLiteral("%1   %2").arg(key, words);
    set_words(button, marked, text_room());
    button.setEnabled(!revealed);
    button.setDefault(is_right);
    button.setAccessibleName(is_right ? tr("%1, the run’s answer").arg(words) : is_wrong ? tr("%1, your prediction").arg(words) : words);
  }
  set_markdown(reveal_, revealed && !slides_ ? player_.filled(step.reveal) : std::string());
  if (!revealed) return set_text(verdict_, {});
  set_text(verdict_, verdict(to_qstring(player_.answer()), predicted, right));
}

QString LessonPage::broken_words(const std::vector<std::string>& broken) {
  return tr("This run does not show what the step says: %1").arg(to_qstring(joined(broken, "; ")));
}

QString LessonPage::verdict(const QString& answer, std::optional<std::size_t> predicted, std::optional<std::size_t> right) {
  const QString words = !predicted           ? tr("The run’s answer: %1.")
                        : predicted == right ? tr("As you predicted. The run’s answer: %1.")
                                             : tr("Not what you predicted. The run’s answer: %1.");
  return words.arg(answer);
}

}  // namespace statescope

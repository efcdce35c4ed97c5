#include "app/lesson/teacher_window.h"

#include <QAction>
#include <QHBoxLayout>
#include <QLocale>
#include <QTime>
#include <QVBoxLayout>

namespace statescope {
namespace {

constexpr int least_width = 480, least_height = 420;  // at 1×

QString shown_text(const std::string& text) { return QString::fromStdString(text); }

QString look_at(const std::string& caption) {
  return caption.empty() ? QString() : TeacherWindow::tr("Look at: %1").arg(shown_text(caption));
}

/// "12:05"
QString minutes_of(qint64 seconds) { return QStringLiteral("%1:%2").arg(seconds / 60).arg(seconds % 60, 2, 10, QLatin1Char('0')); }

}  // namespace

TeacherWindow::TeacherWindow(LessonPlayer& player, const LessonPage::FindAction& action, const QList<QAction*>& actions, QWidget* owner)
    : QWidget(owner, Qt::Window), player_(player) {
  setObjectName("window");
  setAttribute(Qt::WA_StyledBackground);
  setWindowTitle(tr("For the teacher – Statescope"));
  addActions(actions);
  place_ = new QLabel(this);
  place_->setObjectName("small");
  time_ = new QLabel(this);
  time_->setObjectName("value");
  time_->setAccessibleName(tr("Time"));
  auto* body = new QWidget;
  auto* text = new QVBoxLayout(body);
  const auto label = [text](const char* name, Qt::TextFormat format = Qt::PlainText) {
    auto* made = new QLabel;
    made->setObjectName(name);
    made->setWordWrap(true);
    made->setTextFormat(format);
    text->addWidget(made);
    return made;
  };
  heading_ = label("model");
  caption_ = label("caption");
  prose_ = label("prose", Qt::MarkdownText);
  question_ = label("question");
  answer_ = label("caption");
  reveal_ = label("prose", Qt::MarkdownText);
  next_heading_ = label("question");
  next_ = label("prose");
  text->addStretch(1);
  scroll_ = new QScrollArea(this);
  scroll_->setWidget(body);
  scroll_->setWidgetResizable(true);
  scroll_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll_->setAccessibleName(tr("Notes to the step"));
  const auto button = [&](const QString& words, const char* id) {
    auto* made = new QPushButton(words, this);
    connect(made, &QPushButton::clicked, action(id), &QAction::trigger);
    return made;
  };
  back_ = button(tr("Back"), "lesson-previous");
  forward_ = button(tr("Next"), "lesson-next");
  auto* top = new QHBoxLayout;
  top->addWidget(place_, 1);
  top->addWidget(time_);
  auto* bottom = new QHBoxLayout;
  bottom->addWidget(back_);
  bottom->addStretch(1);
  bottom->addWidget(forward_);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(top);
  layout->addWidget(scroll_, 1);
  layout->addLayout(bottom);
  second_.setInterval(1000);
  connect(&second_, &QTimer::timeout, this, &TeacherWindow::show_time);
  connect(&player_, &LessonPlayer::entered, this, &TeacherWindow::enter);
  connect(&player_, &LessonPlayer::changed, this, &TeacherWindow::show_step);
  enter();
}

void TeacherWindow::set_frame(const Frame& frame) {
  const auto px = [&frame](int length) { return static_cast<int>(static_cast<float>(length) * frame.scale); };
  layout()->setContentsMargins(px(14), px(10), px(14), px(10));
  layout()->setSpacing(px(8));
  scroll_->widget()->layout()->setSpacing(px(8));
  setMinimumSize(px(least_width), px(least_height));
}

/// The time begins with the lesson, not with its steps.
void TeacherWindow::enter() {
  const QString lesson = player_.lesson() ? shown_text(player_.lesson()->file.string()) : QString();
  if (lesson != lesson_ || lesson.isEmpty()) since_begin_.start();
  lesson_ = lesson;
  scroll_->ensureVisible(0, 0);
  show_step();
  show_time();
}

void TeacherWindow::show_step() {
  const Lesson* const lesson = player_.lesson();
  for (QWidget* widget : std::initializer_list<QWidget*>{back_, forward_}) widget->setEnabled(lesson);
  const auto set = [](QLabel* to, const QString& words) {
    to->setText(words);
    to->setVisible(!words.isEmpty());
  };
  for (QLabel* each : {caption_, prose_, question_, answer_, reveal_, next_heading_, next_}) set(each, {});
  place_->setText(lesson ? shown_text(lesson->title) : QString());
  if (!lesson) return heading_->setText(tr("No lesson has begun"));
  const std::size_t index = player_.index(), count = lesson->steps.size();
  const LessonStep& step = player_.step();
  heading_->setText(tr("%1 of %2: %3").arg(index + 1).arg(count).arg(shown_text(step.title)));
  set(caption_, look_at(player_.picture().caption));
  set(prose_, shown_text(player_.filled(step.prose)));
  if (step.question) {
    const std::optional<std::size_t> right = player_.right_choice();
    set(question_, shown_text(step.question->words));
    set(answer_, right ? tr("The run’s answer: %1").arg(shown_text(step.question->choices[*right].words))
                       : tr("The run’s answer is known when it has been asked for"));
    set(reveal_, player_.is_revealed() ? shown_text(player_.filled(step.reveal)) : QString());
  }
  if (index + 1 == count) return set(next_heading_, tr("This is the last step"));
  const LessonStep& next = lesson->steps[index + 1];
  set(next_heading_, tr("Next: %1").arg(shown_text(next.title)));
  set(next_, next.question ? shown_text(next.question->words) : look_at(next.picture.caption));
}

void TeacherWindow::show_time() {
  const QString now = QLocale().toString(QTime::currentTime(), QLocale::ShortFormat);
  time_->setText(player_.lesson() ? tr("%1   %2 in the lesson").arg(now, minutes_of(since_begin_.elapsed() / 1000)) : now);
}

void TeacherWindow::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  show_time();
  second_.start();
  Q_EMIT visible_changed();
}

void TeacherWindow::hideEvent(QHideEvent* event) {
  QWidget::hideEvent(event);
  second_.stop();
  Q_EMIT visible_changed();
}

}  // namespace statescope

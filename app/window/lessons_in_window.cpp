// What the window does about lessons: their place on the left, their menu, what a step changes.
#include <QFileDialog>
#include <QGuiApplication>
#include <QMenuBar>
#include <QScreen>
#include <algorithm>
#include <utility>

#include "app/lesson/lesson_page.h"
#include "app/lesson/teacher_window.h"
#include "app/window/main_window.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope {
namespace {

bool reads_any_text(const ModelFacts& facts) {
  return facts.no_text.isEmpty() && facts.tokenizer && facts.tokenizer->info().kind != "words";
}

}  // namespace

void MainWindow::make_lessons(QWidget& page) {
  const auto open = [this](const std::filesystem::path& checkpoint, PromptInput prompt) {
    error_->hide();
    navigator_->open(checkpoint, std::move(prompt));
  };
  lesson_ = new LessonPlayer(*navigator_, *stage_, *comparison_, open, this);
  lesson_page_ = new LessonPage(
      *lesson_, lesson_progress_, [this](std::string_view id) { return action(id); }, &page);
  connect(lesson_page_, &LessonPage::chosen, this, &MainWindow::open_lesson);
  connect(lesson_, &LessonPlayer::entered, this, &MainWindow::enter_step);
  connect(lesson_, &LessonPlayer::changed, this, &MainWindow::keep_lesson);
  connect(lesson_, &LessonPlayer::failed, this, &MainWindow::show_error);
  teacher_ = new TeacherWindow(
      *lesson_, [this](std::string_view id) { return action(id); }, QWidget::actions(), this);
  connect(teacher_, &TeacherWindow::visible_changed, this, [this] {
    actions_->update_ticks();
    fold();
  });
  connect(actions_, &Actions::keys_changed, lesson_page_, &LessonPage::show_keys);
}

/// First in their menu.
void MainWindow::fill_lessons() {
  QMenu* menu = new QMenu(tr("Begin"), menuBar());
  for (const LessonEntry& entry : lesson_page_->entries())
    connect(menu->addAction(entry.title), &QAction::triggered, this, [this, file = entry.file] { open_lesson(file); });
  for (QObject* place : action("lessons")->associatedObjects())
    if (auto* learn = qobject_cast<QMenu*>(place)) learn->insertMenu(action("lesson-open"), menu);
}

void MainWindow::choose_lesson_file() {
  const QString path = QFileDialog::getOpenFileName(this, tr("Open lesson"), {}, tr("Lessons (*.md)"));
  if (!path.isEmpty()) open_lesson(path.toStdString());
}

void MainWindow::open_lesson(const std::filesystem::path& path) {
  try {
    Lesson lesson = load_lesson(path);
    error_->hide();
    if (lesson.takes_open_model && reads_any_text(navigator_->facts()) && !is_elsewhere_) take_model(lesson, navigator_->checkpoint());
    const bool after_another = lesson_->lesson();
    if (!after_another) before_lesson_ = navigator_->run() ? std::optional(work()) : std::nullopt;
    lesson_->leave();
    side_wanted_before_lesson_ = side_wanted_;
    difference_wanted_before_lesson_ = rows_->is_difference_shown();
    rows_->set_difference_shown(false);  // a lesson shows its own views, no others
    std::optional<LessonMarks> marks = lesson_progress_.of(lesson);
    const bool was_chosen_there = lesson_page_->isAncestorOf(focusWidget());
    lesson_->start(std::move(lesson), std::move(marks));
    if (was_chosen_there) focused_->surface().setFocus();  // else Qt gives the keyboard to the button that leaves it
  } catch (const std::exception& error) {
    show_error(QString::fromUtf8(error.what()));
  }
}

/// Another step, or the end of the lesson: its text comes forward.
void MainWindow::enter_step() {
  show_work();
  keep_lesson();
  lessons_wanted_ = true;
  header_->set_answers_told(!lesson_->lesson());  // a lesson asks first
  if (!lesson_->lesson()) {
    side_wanted_ = side_wanted_before_lesson_;
    rows_->set_difference_shown(difference_wanted_before_lesson_);
  } else if (lesson_->index() == 0 && lesson_->hides(Hideable::inspector))
    side_wanted_ = false;
  fold();
}

/// Its first step is no progress.
void MainWindow::keep_lesson() {
  if (lesson_->lesson() && lesson_->index() > 0) lesson_progress_.keep(*lesson_->lesson(), lesson_->marks());
}

void MainWindow::toggle_lessons() {
  show_work();
  lessons_wanted_ = !lessons_wanted_;
  fold();
  if (lessons_wanted_ && !lesson_->lesson()) lesson_page_->show_list();
  if (!lessons_wanted_) focused_->surface().setFocus();
}

/// The teacher's goes where the desktop begins; presenting, this one goes to another screen, if there is one.
void MainWindow::toggle_teacher() {
  if (teacher_->isVisible()) return teacher_->hide();
  const QScreen* const first = QGuiApplication::primaryScreen();
  const QRect room = first->availableGeometry();
  teacher_->setGeometry(QRect(room.topLeft() + QPoint(room.width() / 8, room.height() / 8), room.size() * 3 / 4));
  teacher_->show();
  if (QGuiApplication::screens().size() == 1) say(tr("There is one screen alone: the class sees both windows"));
}

bool MainWindow::teacher_is_shown() const { return teacher_->isVisible(); }

/// For the class.
void MainWindow::go_to_second_screen() {
  const QList<QScreen*> screens = QGuiApplication::screens();
  if (!teacher_->isVisible() || screens.size() < 2) return;
  const auto other = std::ranges::find_if(screens, [](const QScreen* screen) { return screen != QGuiApplication::primaryScreen(); });
  setGeometry((*other)->availableGeometry());
}

void MainWindow::leave_lesson() {
  if (!lesson_->lesson()) return;
  lesson_->leave();
  lesson_page_->show_list();
  if (before_lesson_) take_up(*std::exchange(before_lesson_, std::nullopt));
  if (rows_->isVisible()) focused_->surface().setFocus();
}

MainWindow::Work MainWindow::work() const {
  const std::shared_ptr<const BranchTree>& branches = navigator_->branches();
  Work work{.checkpoint = navigator_->checkpoint(),
            .session = branches ? branches->session : std::filesystem::path(),
            .prompt = navigator_->prompt(),
            .cursor = navigator_->cursor(),
            .beside = {}};
  for (const auto& peer : comparison_->peers())
    if (!peer->checkpoint().empty()) work.beside.push_back(peer->checkpoint());
  return work;
}

void MainWindow::take_up(const Work& work) {
  for (const std::filesystem::path& checkpoint : work.beside) comparison_->add(checkpoint);
  const bool stands = navigator_->run() && !navigator_->is_opening() && navigator_->checkpoint() == work.checkpoint &&
                      navigator_->prompt().text == work.prompt.text && navigator_->prompt().ids == work.prompt.ids;
  if (stands) return go_to(work.cursor);
  if (!work.session.empty()) return navigator_->open_session(work.session);
  const auto go = [this, work] {
    if (navigator_->run() && navigator_->checkpoint() == work.checkpoint) go_to(work.cursor);
  };
  connect(navigator_.get(), &Navigator::opening_ended, this, go, Qt::SingleShotConnection);
  navigator_->open(work.checkpoint, work.prompt);
}

void MainWindow::next_step() {
  if (!lesson_->lesson() || !lesson_->is_at_end()) return lesson_->next();
  if (const LessonEntry* next = lesson_page_->next_lesson()) open_lesson(std::filesystem::path(next->file));
}

void MainWindow::turn_page(int direction) {
  if (!lesson_->lesson()) return navigator_->step(direction);
  direction > 0 ? lesson_->next() : lesson_->previous();
}

}  // namespace statescope

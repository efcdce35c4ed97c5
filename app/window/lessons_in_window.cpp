// What the window does about lessons: their place on the left, their menu, what a step changes.
#include <QFileDialog>
#include <QMenuBar>

#include "app/lesson/lesson_page.h"
#include "app/window/main_window.h"

namespace statescope {

void MainWindow::make_lessons(QWidget& page) {
  const auto open = [this](const std::filesystem::path& checkpoint, PromptInput prompt) {
    error_->hide();
    navigator_->open(checkpoint, std::move(prompt));
  };
  lesson_ = new LessonPlayer(*navigator_, *stage_, *comparison_, open, this);
  lesson_page_ = new LessonPage(
      *lesson_, [this](std::string_view id) { return action(id); }, &page);
  connect(lesson_page_, &LessonPage::chosen, this, &MainWindow::open_lesson);
  connect(lesson_, &LessonPlayer::entered, this, &MainWindow::enter_step);
  connect(lesson_, &LessonPlayer::failed, this, &MainWindow::show_error);
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
    leave_lesson();
    side_wanted_before_lesson_ = side_wanted_;
    difference_wanted_before_lesson_ = rows_->is_difference_shown();
    rows_->set_difference_shown(false);  // a lesson shows its own views, no others
    lesson_->start(std::move(lesson));
  } catch (const std::exception& error) {
    show_error(QString::fromUtf8(error.what()));
  }
}

/// Another step, or the end of the lesson: its text comes forward.
void MainWindow::enter_step() {
  pages_->setCurrentIndex(1);
  lessons_wanted_ = true;
  if (!lesson_->lesson()) {
    side_wanted_ = side_wanted_before_lesson_;
    rows_->set_difference_shown(difference_wanted_before_lesson_);
  } else if (lesson_->index() == 0 && lesson_->hides(Hideable::inspector))
    side_wanted_ = false;
  fold();
}

void MainWindow::toggle_lessons() {
  pages_->setCurrentIndex(1);
  lessons_wanted_ = !lessons_wanted_;
  fold();
  if (lessons_wanted_ && !lesson_->lesson()) lesson_page_->show_list();
  if (!lessons_wanted_) focused_->surface().setFocus();
}

void MainWindow::leave_lesson() {
  if (!lesson_->lesson()) return;
  lesson_->leave();
  lesson_page_->show_list();
  if (rows_->isVisible()) focused_->surface().setFocus();
}

void MainWindow::turn_page(int direction) {
  if (!lesson_->lesson()) return navigator_->step(direction);
  direction > 0 ? lesson_->next() : lesson_->previous();
}

}  // namespace statescope

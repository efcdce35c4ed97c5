// What the window opens: checkpoints, prompts, sessions, figures, lessons and trainings, by choice, by name or dropped on it; what it
// opened before; and the page to start from.
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QInputDialog>
#include <QMenu>
#include <QMimeData>
#include <algorithm>

#include "app/assets.h"
#include "app/common/plain_words.h"
#include "app/common/prompts.h"
#include "app/eval/needle_grid.h"
#include "app/pages/conversation.h"
#include "app/pages/training_page.h"
#include "app/start/start_page.h"
#include "app/window/branch_commands.h"
#include "app/window/figure_in_window.h"
#include "app/window/main_window.h"
#include "engine/checkpoint/file.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr int most_recent = 8;
constexpr std::size_t most_of_conversation = 16'000'000;  // bytes

QString path_text(const std::filesystem::path& path) { return QString::fromStdString(path.string()); }

/// Of a shipped checkpoint: the first part of its name.
std::string task_of(const std::string& name) { return name.substr(0, name.find('-')); }

bool is_prompt(const std::filesystem::path& path) { return path.extension() == ".json" || path.extension() == ".txt"; }

/// Of what is dragged: files of this machine.
std::vector<std::filesystem::path> files_in(const QMimeData& dragged) {
  std::vector<std::filesystem::path> files;
  for (const QUrl& url : dragged.urls())
    if (url.isLocalFile()) files.emplace_back(url.toLocalFile().toStdString());
  return files;
}

/// A text that is no address.
QString text_in(const QMimeData& dragged) { return dragged.hasUrls() ? QString() : dragged.text().trimmed(); }

}  // namespace

QWidget* MainWindow::make_start() {
  start_ = new StartPage({action("open-file"), action("open-folder"), action("lessons")}, this);
  connect(start_, &StartPage::chosen, this, [this](Shelf shelf, const std::filesystem::path& path) {
    remember("hints-seen", true);
    if (shelf == Shelf::models) return open_shipped(path);
    open_path(path);
  });
  return start_;
}

void MainWindow::show_start() {
  start_->show_hints(!(settings_ && settings_->value("hints-seen", false).toBool()));
  start_->fill(shelf_items(lesson_page_->entries(), recent_paths()));
  pages_->setCurrentIndex(0);
  fold();
  take_keyboard();
}

void MainWindow::show_work() {
  if (pages_->currentIndex() == 1) return;
  pages_->setCurrentIndex(1);
  fold();
  take_keyboard();
}

/// It goes to where the reader works.
void MainWindow::take_keyboard() {
  if (pages_->currentIndex() == 0)
    start_->begin();
  else
    focused_->surface().setFocus();
}

void MainWindow::show_title() {
  QStringList parts;
  const std::shared_ptr<const BranchTree>& branches = navigator_->branches();
  if (branches && !branches->session.empty()) parts.push_back(path_text(branches->session.filename()));
  if (navigator_->run()) parts.push_back(QString::fromStdString(navigator_->run()->model.name));
  parts.push_back(QStringLiteral("Statescope"));
  setWindowTitle(parts.join(QStringLiteral(" – ")));
}

void MainWindow::open_checkpoint(const std::filesystem::path& path, PromptInput prompt, std::function<PromptInput()> example) {
  error_->hide();
  departures_.clear();
  show_work();
  if (!is_elsewhere_) remember_recent(path_text(std::filesystem::absolute(path)));
  navigator_->open(path, std::move(prompt), std::move(example));
}

/// With the prompt that stands here, or, where that is in words that the checkpoint does not know, with an example of its own.
void MainWindow::open_on_prompt(const std::filesystem::path& path) {
  open_checkpoint(path, navigator_->prompt_for_another(), [path] { return first_prompt({}, path.string()); });
}

void MainWindow::open_shipped(const std::filesystem::path& path) {
  try {
    const bool same_task = navigator_->run() && task_of(navigator_->run()->model.name) == task_of(path.stem().string());
    if (same_task) return open_on_prompt(path);
    open_checkpoint(path, first_prompt({}, path.string()));
  } catch (const std::exception& error) {
    show_error(without_options(error.what()));
  }
}

void MainWindow::open_session(const std::filesystem::path& path, const std::filesystem::path& located) {
  error_->hide();
  if (!is_elsewhere_) remember_recent(path_text(std::filesystem::absolute(path)));
  navigator_->open_session(path, located);
  session_on_its_way_ = path;
}

void MainWindow::open_path(const std::filesystem::path& path) {
  if (path.extension() == ".scope") return open_session(path);
  if (path.extension() == ".zip") return open_shared_session(*this, path);
  if (is_figure(path)) return open_figure(path);
  if (path.extension() == ".md") return open_lesson(path);
  if (!is_prompt(path)) return open_on_prompt(path);
  try {
    if (open_conversation(path)) return show_work();
    PromptInput prompt = load_prompt({.text = {}, .ids = {}, .file = path.string()});
    const bool has_reader = navigator_->run() || navigator_->is_opening() || navigator_->waits_for_prompt();
    if (!has_reader) return open_checkpoint(reader_of(path), std::move(prompt));
    show_work();
    navigator_->read(std::move(prompt));
  } catch (const std::exception& error) {
    show_error(without_options(error.what()));
  }
}

bool MainWindow::open_conversation(const std::filesystem::path& path) {
  if (path.extension() != ".json" || !std::filesystem::exists(path)) return false;
  std::optional<std::vector<ChatTurn>> turns = turns_in(read_file(path, most_of_conversation), path.filename().string());
  if (!turns) return false;
  const QString file = path_text(path.filename());
  if (!navigator_->run()) throw Error(tr("%1 is a chat: open the model that reads it first.").arg(file).toStdString());
  if (navigator_->facts().is_elsewhere)
    throw Error(tr("%1 is a chat: an engine on another machine reads none in the window yet.").arg(file).toStdString());
  if (!navigator_->facts().chat)
    throw Error(tr("%1 is a chat, and %2 has no chat template to read it with.")
                    .arg(file, QString::fromStdString(navigator_->run()->model.name))
                    .toStdString());
  if (!side_->isVisible() || side_->page() != SidePage::prompt) show_page(SidePage::prompt);
  side_->prompt().read_turns(std::move(*turns));
  return true;
}

void MainWindow::compare_with(const std::filesystem::path& checkpoint) {
  if (comparison_->is_full()) return say(tr("Four models are compared already. Close one of them first."));
  if (!is_elsewhere_) remember_recent(path_text(std::filesystem::absolute(checkpoint)));
  comparison_->add(checkpoint);
}

void MainWindow::choose_to_compare() {
  const QString path = QFileDialog::getOpenFileName(this, tr("Compare with"), {}, tr("Checkpoints (*.h5);;All files (*)"));
  if (!path.isEmpty()) compare_with(path.toStdString());
}

/// The first wrong token of the answer is generated after the right ones.
void MainWindow::open_example(const NeedleExample& example) {
  if (navigator_->facts().is_elsewhere)
    return show_error(tr("A prompt of the grid is made by the model's tokenizer, which is with the engine on another machine."));
  try {
    PromptInput prompt = prompt_of(example, navigator_->checkpoint(), navigator_->facts().tokenizer, assets_folder());
    const PromptInput left = navigator_->prompt();
    const std::int64_t token = navigator_->cursor().token;
    navigator_->read_to_answer(std::move(prompt), example.place);
    departures_.push_back({left, token});
    // The way there is no place to go back to.
    connect(
        navigator_.get(), &Navigator::opening_ended, this, [this] { places_.clear(); }, Qt::SingleShotConnection);
    say(tr("Opens a prompt of the needle grid. Z leads back."));
  } catch (const std::exception& error) {
    show_error(without_options(error.what()));
  }
}

void MainWindow::choose_checkpoint_file() {
  if (is_elsewhere_) {
    const QString name = QInputDialog::getText(this, tr("Open checkpoint"), tr("Its path in the engine's folder:")).trimmed();
    if (!name.isEmpty()) open_path(name.toStdString());
    return;
  }
  const QString path = QFileDialog::getOpenFileName(
      this, tr("Open checkpoint"), {}, tr("Checkpoints, sessions, figures (*.h5 *.scope *.scope.zip *.pdf *.svg *.png);;All files (*)"));
  if (!path.isEmpty()) open_path(path.toStdString());
}

void MainWindow::choose_checkpoint_folder() {
  if (is_elsewhere_) return choose_checkpoint_file();
  const QString path = QFileDialog::getExistingDirectory(this, tr("Open model folder"));
  if (!path.isEmpty()) open_path(path.toStdString());
}

void MainWindow::choose_prompt_file() {
  const QString path = QFileDialog::getOpenFileName(this, tr("Open prompt"), {}, tr("Prompts (*.json *.txt)"));
  if (!path.isEmpty()) open_path(path.toStdString());
}

void MainWindow::follow_training() {
  connect(training_, &TrainingPage::folder_wanted, this, [this] {
    const QString folder = QFileDialog::getExistingDirectory(this, tr("Folder of a training's checkpoints"));
    if (!folder.isEmpty()) watch_training(folder.toStdString());
  });
  connect(training_, &TrainingPage::step_chosen, this, &MainWindow::open_step);
  connect(training_, &TrainingPage::spoke, this, &MainWindow::say);
}

void MainWindow::show_training() {
  const bool any = !training_->watch().folder().empty();
  show_page(SidePage::training);
  if (!any && side_->page() == SidePage::training) Q_EMIT training_->folder_wanted();
}

void MainWindow::watch_training(const std::filesystem::path& folder) {
  if (std::error_code error; !std::filesystem::is_directory(folder, error))
    return show_error(tr("%1 is not a folder").arg(path_text(folder)));
  if (side_->page() != SidePage::training || !side_->isVisible()) show_page(SidePage::training);
  training_->watch().start(folder);
}

/// On the prompt that stands here where that was of another step, so that steps are compared; at the layer of what ails it.
void MainWindow::open_step(const TrainingStep& step) {
  try {
    const auto& steps = training_->watch().steps();
    const bool from_step =
        navigator_->run() && std::ranges::find(steps, navigator_->checkpoint().string(), &TrainingStep::path) != steps.end();
    open_checkpoint(step.path, from_step ? navigator_->prompt() : first_prompt({}, step.path));
    if (!step.layer) return;
    const auto go = [this, step] {
      if (navigator_->run() && navigator_->checkpoint() == step.path) navigator_->move({.layer = step.layer});
    };
    connect(navigator_.get(), &Navigator::opening_ended, this, go, Qt::SingleShotConnection);
  } catch (const std::exception& error) {
    show_error(without_options(error.what()));
  }
}

QStringList MainWindow::recent_paths() const { return settings_ ? settings_->value("recent").toStringList() : QStringList(); }

void MainWindow::remember_recent(const QString& path) {
  if (!settings_) return;
  QStringList paths = recent_paths();
  paths.removeAll(path);
  paths.prepend(path);
  settings_->setValue("recent", QStringList(paths.mid(0, most_recent)));
  fill_recent();
}

void MainWindow::fill_recent() {
  const QStringList paths = recent_paths();
  recent_->clear();
  recent_->setEnabled(!paths.isEmpty());
  for (const QString& path : paths)
    connect(recent_->addAction(QString(path).replace('&', QLatin1String("&&"))), &QAction::triggered, this,
            [this, path] { open_path(path.toStdString()); });
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  const bool files = !files_in(*event->mimeData()).empty();
  if (!files && text_in(*event->mimeData()).isEmpty()) return;
  event->acceptProposedAction();
  dropping_->setGeometry(centralWidget()->rect());
  dropping_->show();
  dropping_->raise();
  say(files ? tr("Drop it here to open it; with Shift, a model opens beside this one") : tr("Drop it here to read it as a prompt"));
}

void MainWindow::dragLeaveEvent(QDragLeaveEvent*) { end_drag(); }

void MainWindow::end_drag() {
  dropping_->hide();
  say({});
}

void MainWindow::dropEvent(QDropEvent* event) {
  end_drag();
  event->acceptProposedAction();
  const bool beside = event->modifiers() & (Qt::ShiftModifier | Qt::ControlModifier);
  const std::vector<std::filesystem::path> files = files_in(*event->mimeData());
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (is_prompt(files[i]) || (!beside && i == 0))
      open_path(files[i]);
    else
      compare_with(files[i]);
  }
  if (const QString text = text_in(*event->mimeData()); files.empty() && !text.isEmpty())
    navigator_->read({.text = text.toStdString(), .spans = {}, .ids = {}, .expected = {}, .generate = {}});
}

}  // namespace statescope

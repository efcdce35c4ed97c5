#include "app/window/branch_commands.h"

#include <QCoreApplication>
#include <QFileDialog>
#include <QFileInfo>
#include <QInputDialog>
#include <QPointer>
#include <QThreadPool>
#include <functional>

#include "app/common/session_archive.h"
#include "app/window/main_window.h"

namespace statescope {
namespace {

QString lines_of(const RunInfo& run) {
  QStringList lines;
  for (const std::string& line : run.branch.interventions) lines.push_back(QString::fromStdString(line));
  return lines.join(", ");
}

/// In the folder of the session that is open, else at home; a name that is free there.
QString proposed_session(const Navigator& navigator) {
  const std::filesystem::path& session = navigator.branches() ? navigator.branches()->session : std::filesystem::path();
  const QDir folder(session.empty() ? QDir::homePath() : QString::fromStdString(session.parent_path().string()));
  return free_session(folder, QString::fromStdString(navigator.run()->model.name));
}

/// Beside the interface; `done` in it again. Errors come into the window.
template <class Work, class Done>
void beside_the_window(MainWindow& window, Work work, Done done) {
  QThreadPool::globalInstance()->start([self = QPointer<MainWindow>(&window), work = std::move(work), done = std::move(done)] {
    std::function<void(MainWindow&)> tell;
    try {
      tell = [done, result = work()](MainWindow& there) { done(there, result); };
    } catch (const std::exception& error) {
      tell = [message = QString::fromUtf8(error.what())](MainWindow& there) { there.show_error(message); };
    }
    QMetaObject::invokeMethod(QCoreApplication::instance(), [self, tell] {
      if (self) tell(*self);
    });
  });
}

constexpr const char* session_files = QT_TRANSLATE_NOOP("statescope::MainWindow", "Sessions (*.scope)");

bool is_elsewhere(const MainWindow& window) { return window.navigator().facts().is_elsewhere; }

/// In the folder of an engine on another machine, which no dialogue here can look into.
QString name_there(MainWindow& window, const QString& title, const QString& proposal) {
  return QInputDialog::getText(&window, title, MainWindow::tr("Its path in the engine's folder:"), QLineEdit::Normal, proposal).trimmed();
}

}  // namespace

QString free_session(const QDir& folder, const QString& model) {
  const QString name = QFileInfo(model).fileName();
  QString path = folder.filePath(name + ".scope");
  for (int number = 2; QFileInfo::exists(path); ++number) path = folder.filePath(QStringLiteral("%1-%2.scope").arg(name).arg(number));
  return path;
}

void intervene_here(MainWindow& window, InterventionKind kind) {
  Navigator& navigator = window.navigator();
  const LayerInfo* layer = navigator.layer_info();
  if (!layer) return window.say(MainWindow::tr("Open a checkpoint first"));
  if (kind == InterventionKind::zero_row && navigator.cursor().row < 0)
    return window.say(MainWindow::tr("Choose a row of the state first"));
  const Intervention intervention = intervention_here(kind, *layer, navigator.cursor(), 0);
  window.say(QString::fromStdString(to_text(intervention)));
  navigator.intervene({intervention});
}

void undo_intervention(MainWindow& window) {
  Navigator& navigator = window.navigator();
  if (!navigator.run() || navigator.run()->branch.number == 0)
    return window.say(MainWindow::tr("No intervention to undo; Z goes back to the place before"));
  if (navigator.is_opening()) return window.say(MainWindow::tr("Something is being read: Esc ends it"));
  window.say(MainWindow::tr("Undone: %1").arg(lines_of(*navigator.run())));
  navigator.undo_intervention();
}

void redo_intervention(MainWindow& window) {
  Navigator& navigator = window.navigator();
  const std::shared_ptr<const BranchTree>& branches = navigator.branches();
  if (!branches || branches->redo < 0) return window.say(MainWindow::tr("No intervention to redo; Shift+Z goes forward again"));
  if (navigator.is_opening()) return window.say(MainWindow::tr("Something is being read: Esc ends it"));
  window.say(MainWindow::tr("Again: %1").arg(lines_of(*branches->runs[static_cast<std::size_t>(branches->redo)])));
  navigator.redo_intervention();
}

void toggle_parent_beside(MainWindow& window) {
  Comparison& comparison = window.comparison();
  if (comparison.shows_parent()) return comparison.remove_branch();
  if (!window.navigator().parent())
    window.say(MainWindow::tr("This is the model's own run. Intervene first, or choose a branch."));
  else if (!comparison.add_parent())
    window.say(MainWindow::tr("Four models are compared already. Close one of them first."));
}

void choose_session_to_open(MainWindow& window) {
  const QString title = MainWindow::tr("Open session");
  const QString path = is_elsewhere(window)
                           ? name_there(window, title, {})
                           : QFileDialog::getOpenFileName(&window, title, {}, MainWindow::tr("Sessions (*.scope *.scope.zip)"));
  if (!path.isEmpty()) window.open_path(path.toStdString());
}

void save_session(MainWindow& window) {
  const std::shared_ptr<const BranchTree>& branches = window.navigator().branches();
  if (!branches || branches->session.empty()) return save_session_as(window);
  window.navigator().save_session(branches->session);
}

void save_session_as(MainWindow& window) {
  if (!window.navigator().run()) return window.say(MainWindow::tr("Open a checkpoint first"));
  const QString title = MainWindow::tr("Save session"), proposal = proposed_session(window.navigator());
  QString path = is_elsewhere(window)
                     ? name_there(window, title, proposal.section('/', -1))
                     : QFileDialog::getSaveFileName(&window, title, proposal, MainWindow::tr(session_files), nullptr,
                                                    QFileDialog::DontConfirmOverwrite);  // a session never takes another file's place
  if (path.isEmpty()) return;
  if (!path.endsWith(".scope")) path += ".scope";
  window.navigator().save_session(path.toStdString());
}

bool has_session(const MainWindow& window) {
  const std::shared_ptr<const BranchTree>& branches = window.navigator().branches();
  return branches && !branches->session.empty();
}

void share_session(MainWindow& window) {
  if (!has_session(window)) return window.say(MainWindow::tr("Save the session first: Ctrl+S"));
  if (is_elsewhere(window)) return window.say(MainWindow::tr("The session lies in the engine's folder: it is to be copied from there"));
  const QString ending = QString::fromLatin1(session_archive_ending);
  QString path = QString::fromStdString(window.navigator().branches()->session.string());
  path = QFileDialog::getSaveFileName(&window, MainWindow::tr("Session in one file"), path.chopped(6) + ending,
                                      MainWindow::tr("Sessions in one file (*.scope.zip)"), nullptr, QFileDialog::DontConfirmOverwrite);
  if (path.isEmpty()) return;
  if (!path.endsWith(ending)) path += ending;
  share_session(window, path.toStdString());
}

void share_session(MainWindow& window, const std::filesystem::path& archive) {
  const std::filesystem::path session = window.navigator().branches()->session, checkpoint = window.navigator().checkpoint();
  window.say(MainWindow::tr("Writing %1").arg(QString::fromStdString(archive.string())));
  beside_the_window(
      window, [session, checkpoint, archive] { return pack_session(session, checkpoint, archive); },
      [archive](MainWindow& there, const PackedSession& packed) {
        const QString what = packed.has_checkpoint
                                 ? MainWindow::tr("Session, recording and checkpoint are in %1 (%2 MB)")
                                 : MainWindow::tr("Session and recording are in %1 (%2 MB); the checkpoint is too large for that");
        there.say(what.arg(QString::fromStdString(archive.string())).arg(static_cast<double>(packed.bytes) / 1e6, 0, 'f', 1));
      });
}

void open_shared_session(MainWindow& window, const std::filesystem::path& archive) {
  const QString name = QString::fromStdString(std::filesystem::absolute(archive).string());
  const QString wanted = name.endsWith(QLatin1String(session_archive_ending)) ? name.chopped(10) : name.chopped(4);
  QString folder = wanted;
  for (int number = 2; QFileInfo::exists(folder); ++number) folder = QStringLiteral("%1-%2").arg(wanted).arg(number);
  window.say(MainWindow::tr("Unpacking into %1").arg(folder));
  beside_the_window(
      window, [archive, folder = folder.toStdString()] { return unpack_session(archive, folder); },
      [](MainWindow& there, const std::filesystem::path& session) { there.open_path(session); });
}

void offer_to_locate(MainWindow& window, const std::filesystem::path& session) {
  std::filesystem::path checkpoint;
  try {
    checkpoint = checkpoint_of(session);
  } catch (const std::exception&) {
    return;  // the session itself cannot be read
  }
  if (!window.error_bar().message().contains(QString::fromStdString(checkpoint.string()))) return;
  window.error_bar().offer(MainWindow::tr("Locate…"), [&window, session, checkpoint] {
    const QString name = QString::fromStdString(checkpoint.filename().string()), title = MainWindow::tr("Where is %1?").arg(name);
    const bool is_file = checkpoint.has_extension();  // else a model's folder
    const QString path = is_file ? QFileDialog::getOpenFileName(&window, title, {}, MainWindow::tr("Checkpoints (*.h5);;All files (*)"))
                                 : QFileDialog::getExistingDirectory(&window, title);
    if (!path.isEmpty()) window.open_session(session, path.toStdString());
  });
}

}  // namespace statescope

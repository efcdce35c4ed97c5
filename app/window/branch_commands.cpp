#include "app/window/branch_commands.h"

#include <QFileDialog>
#include <QFileInfo>

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

constexpr const char* session_files = QT_TRANSLATE_NOOP("statescope::MainWindow", "Sessions (*.scope)");

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
  const QString path = QFileDialog::getOpenFileName(&window, MainWindow::tr("Open session"), {}, MainWindow::tr(session_files));
  if (!path.isEmpty()) window.open_path(path.toStdString());
}

void save_session(MainWindow& window) {
  const std::shared_ptr<const BranchTree>& branches = window.navigator().branches();
  if (!branches || branches->session.empty()) return save_session_as(window);
  window.navigator().save_session(branches->session);
}

void save_session_as(MainWindow& window) {
  if (!window.navigator().run()) return window.say(MainWindow::tr("Open a checkpoint first"));
  QString path = QFileDialog::getSaveFileName(&window, MainWindow::tr("Save session"), proposed_session(window.navigator()),
                                              MainWindow::tr(session_files), nullptr,
                                              QFileDialog::DontConfirmOverwrite);  // a session never takes another file's place
  if (path.isEmpty()) return;
  if (!path.endsWith(".scope")) path += ".scope";
  window.navigator().save_session(path.toStdString());
}

}  // namespace statescope

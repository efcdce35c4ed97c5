// Commands on interventions, branches and session files.
#pragma once

#include <QDir>

#include "app/runs/interventions.h"

namespace statescope {

class MainWindow;

/// Where the cursor is; says so in the status bar.
void intervene_here(MainWindow& window, InterventionKind kind);
void undo_intervention(MainWindow& window);
void redo_intervention(MainWindow& window);
/// The branch that the run shown has left, as another model under the same cursor, or away with it.
void toggle_parent_beside(MainWindow& window);

void choose_session_to_open(MainWindow& window);
/// In the file that it is kept in, or in one that the reader names.
void save_session(MainWindow& window);
void save_session_as(MainWindow& window);
/// It has been saved: there is a file that is kept up to date.
bool has_session(const MainWindow& window);
/// With its recording and, where that is small, its checkpoint, as one file.
void share_session(MainWindow& window);
void share_session(MainWindow& window, const std::filesystem::path& archive);
/// Unpacked beside itself, into a folder of its name, and opened there.
void open_shared_session(MainWindow& window, const std::filesystem::path& archive);
/// Opening the session has failed: where that was its checkpoint's fault, the reader may say where that is.
void offer_to_locate(MainWindow& window, const std::filesystem::path& session);
/// A file in `folder`, called like the model, that is not there yet.
QString free_session(const QDir& folder, const QString& model);

}  // namespace statescope

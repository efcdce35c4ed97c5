// Messages of the engine, and names of checkpoints, as the window says them.
#pragma once

#include <QStringList>
#include <filesystem>
#include <string>
#include <vector>

namespace statescope {

/// Without advice that names an option of the command line ("…; give token ids with --ids instead").
QString without_options(const std::string& message);
/// Each of them likewise.
QStringList without_options(const std::vector<std::string>& messages);

/// What a checkpoint is called: the whole name of a folder, a file's without its ending.
QString checkpoint_name(const std::filesystem::path& checkpoint);

}  // namespace statescope

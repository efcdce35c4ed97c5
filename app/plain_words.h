// Messages of the engine as the window says them.
#pragma once

#include <QStringList>
#include <string>
#include <vector>

namespace statescope {

/// Without advice that names an option of the command line ("…; give token ids with --ids instead").
QString without_options(const std::string& message);
/// Each of them likewise.
QStringList without_options(const std::vector<std::string>& messages);

}  // namespace statescope

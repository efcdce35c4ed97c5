#pragma once

#include <string>

namespace statescope {

/// The whole path of a file or folder of the project's source: from_source("assets/tasks").
std::string from_source(const std::string& path);

}  // namespace statescope

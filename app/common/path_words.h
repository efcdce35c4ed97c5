// Paths in messages, as whoever reads them knows them.
#pragma once

#include <filesystem>
#include <string>

namespace statescope {

/// Whether `text` says `path`, or a path below that.
bool says_path(const std::string& text, const std::filesystem::path& path);
/// `text` with `name` instead.
std::string with_path_called(const std::string& text, const std::filesystem::path& path, const std::string& name);

}  // namespace statescope

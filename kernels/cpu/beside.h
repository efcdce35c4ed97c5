// Where a file lies that comes with the program.
#pragma once

#include <filesystem>
#include <string_view>

namespace statescope {

/// Beside the program, as it was built, else in ../lib/statescope, as it is installed. A path beside the program where it is in neither.
inline std::filesystem::path beside_program(std::string_view name) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  const fs::path installed = folder.parent_path() / "lib" / "statescope" / name;
  return !fs::exists(folder / name, error) && fs::exists(installed, error) ? installed : folder / name;
}

}  // namespace statescope

// The folder for sockets that Qt asks for at its start.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace statescope {

/// Where there is none (a cron job, a container), Qt says so and makes one that stays. While this lives there is a private one, which goes
/// with it.
class RuntimeFolder {
 public:
  RuntimeFolder() {
    if (is_suitable(std::getenv("XDG_RUNTIME_DIR"))) return;
    std::error_code ignored;
    std::string pattern = (std::filesystem::temp_directory_path(ignored) / "statescope-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) return;
    made_ = pattern;
    ::setenv("XDG_RUNTIME_DIR", made_.c_str(), 1);
  }
  ~RuntimeFolder() {
    std::error_code ignored;
    if (!made_.empty()) std::filesystem::remove_all(made_, ignored);
  }
  RuntimeFolder(const RuntimeFolder&) = delete;
  RuntimeFolder& operator=(const RuntimeFolder&) = delete;

 private:
  /// A folder of one's own that nobody else may look into, as the XDG specification has it.
  static bool is_suitable(const char* path) {
    struct stat status {};
    return path && ::lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
           (status.st_mode & 0777) == 0700;
  }

  std::string made_;
};

}  // namespace statescope

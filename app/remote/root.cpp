#include "app/remote/root.h"

#include <algorithm>

#include "app/assets.h"
#include "app/common/session_archive.h"
#include "engine/checkpoint/file.h"
#include "engine/error.h"

namespace statescope {
namespace fs = std::filesystem;
namespace {

bool is_below(const fs::path& path, const fs::path& folder) { return std::ranges::mismatch(folder, path).in1 == folder.end(); }

bool is_shipped(const fs::path& path) {
  std::error_code error;
  return std::ranges::any_of(checkpoint_places(),
                             [&](const fs::path& place) { return is_below(path, fs::weakly_canonical(place, error)); });
}

[[noreturn]] void refuse(const std::string& name) { throw Error(in_quotes(name) + " lies outside of the folder that the engine shows"); }

[[noreturn]] void refuse_length(const std::string& name) { throw Error(in_quotes(name) + ": that name is too long for a file"); }

}  // namespace

ServedRoot::ServedRoot(const fs::path& folder) {
  std::error_code error;
  folder_ = fs::canonical(folder, error);
  if (error || !fs::is_directory(folder_, error)) throw Error(folder.string() + ": is not a folder (--root)");
}

bool ServedRoot::holds(const fs::path& path) const { return is_below(path, folder_) || is_shipped(path); }

fs::path ServedRoot::existing(const std::string& name) const {
  if (name.empty()) throw Error("no file is named");
  if (name.find('\0') != name.npos) refuse(name);
  std::error_code error;
  const fs::path path = fs::canonical(folder_ / name, error);
  if (error == std::errc::filename_too_long) refuse_length(name);
  if (error) {
    const fs::path shipped = shipped_checkpoint(name);
    if (!shipped.empty()) return shipped;
    if (!is_below(fs::weakly_canonical(folder_ / name, error), folder_)) refuse(name);
    throw Error(in_quotes(name) + " is neither in the folder that the engine shows nor a shipped model");
  }
  if (!holds(path)) refuse(name);
  if (!fs::is_directory(path, error)) return path;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    const fs::path file = fs::weakly_canonical(entry.path(), error);
    if (error || !holds(file)) refuse((fs::path(name) / entry.path().filename()).string());
  }
  return path;
}

fs::path ServedRoot::writable(const std::string& name) const {
  const fs::path wanted = folder_ / name;
  std::error_code error;
  const fs::path folder = fs::canonical(wanted.parent_path(), error);
  if (error == std::errc::filename_too_long) refuse_length(name);
  if (error && is_below(fs::weakly_canonical(wanted.parent_path(), error), folder_))
    throw Error(in_quotes(name) + ": there is no such folder in the one that the engine shows");
  const std::string file = wanted.filename().string();
  if (error || !is_below(folder, folder_) || name.find('\0') != name.npos || file.empty() || file == "." || file == ".." ||
      fs::is_symlink(folder / file, error))
    refuse(name);
  if (error == std::errc::filename_too_long) refuse_length(name);
  return folder / file;
}

fs::path ServedRoot::session(const std::string& name) const {
  const fs::path path = existing(name);
  std::error_code error;
  const fs::path checkpoint = fs::weakly_canonical(checkpoint_of(path), error);
  // One that is not there any more is looked for by its name in places that may be seen.
  if (fs::exists(checkpoint, error) && !holds(checkpoint))
    throw Error(in_quotes(name) + " is of a checkpoint outside of the folder that the engine shows");
  return path;
}

std::string ServedRoot::name_of(const fs::path& path) const {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(path, error);
  if (is_below(whole, folder_)) return whole.lexically_relative(folder_).string();
  return whole.filename().string();
}

}  // namespace statescope

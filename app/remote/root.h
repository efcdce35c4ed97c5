// The part of an engine's disk that its clients may see.
#pragma once

#include <filesystem>
#include <string>

#include "app/common/path_words.h"

namespace statescope {

/// Files below one folder, by their paths from there, and the shipped models, by name.
class ServedRoot {
 public:
  /// Throws Error where that is no folder.
  explicit ServedRoot(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }

  /// What a client calls `name`. Throws Error for what lies outside, also by way of a symbolic link, and for what is not there.
  std::filesystem::path existing(const std::string& name) const;
  /// Where a new file of that name goes: its folder is there. Throws Error.
  std::filesystem::path writable(const std::string& name) const;
  /// A session whose checkpoint may be seen, too. Throws Error.
  std::filesystem::path session(const std::string& name) const;
  /// A text for a client, which sees what lies in the folder as it would from there.
  std::string as_called(const std::string& text) const { return with_path_called(text, folder_, "."); }
  /// What a client calls this.
  std::string name_of(const std::filesystem::path& path) const;

 private:
  bool holds(const std::filesystem::path& path) const;

  std::filesystem::path folder_;  // canonical
};

}  // namespace statescope

// A file's own pages, and what becomes of them when another program shortens the file meanwhile.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/checkpoint/descriptor.h"

namespace statescope {

struct MappedRange;

/// A regular file's own pages, read only. Where the file is shortened while it is mapped, what is gone reads as zeros, which ends nothing;
/// where it is written to, some pages are the old ones and some the new: whoever has read from it asks require_whole() before the numbers
/// are used.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  /// Of an open file; `path` is what errors call it.
  MappedFile(const std::filesystem::path& path, int descriptor);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  /// Throws Error where the file became shorter or was written to since it was mapped, or a part of it could not be read.
  void require_whole() const;

 private:
  MappedFile(const std::filesystem::path& path, Descriptor file);

  std::filesystem::path path_;
  Descriptor file_;
  std::chrono::nanoseconds written_{};  // when the file was last, as it was mapped
  std::span<const std::byte> bytes_;
  MappedRange* range_;
};

using MappedFiles = std::vector<std::shared_ptr<const MappedFile>>;

}  // namespace statescope

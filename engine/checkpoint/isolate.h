// Work on a hostile file in a program of its own: what crashes, loops or devours memory there ends there.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/checkpoint/descriptor.h"
#include "engine/checkpoint/mapped_file.h"

namespace statescope {

/// Memory that one process fills and another then maps: no copy is made.
class SharedMemory {
 public:
  /// New memory. `path` is what errors name.
  explicit SharedMemory(const std::filesystem::path& path);
  /// Of another process, which handed over its descriptor.
  SharedMemory(const std::filesystem::path& path, int descriptor);

  /// Appends `size` bytes that `fill` writes; gives their offset, a multiple of the page size.
  std::size_t append(std::size_t size, const std::function<void(std::byte*)>& fill);
  std::shared_ptr<const MappedFile> map() const;
  int descriptor() const { return file_.get(); }

 private:
  std::filesystem::path path_;
  Descriptor file_;
  std::size_t size_ = 0;
};

struct IsolatedResult {
  nlohmann::json catalogue;                  // what the work returned
  std::shared_ptr<const MappedFile> memory;  // what it appended
};

/// The program that reads hostile files (reader_main.cpp): it lies beside the one that runs. Throws Error where it does not.
std::filesystem::path reader_program();

/// Starts `command` and waits for it, as long as a sound file of `file_bytes` takes. It has the shared memory as its descriptor
/// kMemoryDescriptor and does its work with answer_in_isolation. An Error thrown there is thrown here; if no answer comes, that is an Error
/// too. `path` is the file at fault.
IsolatedResult run_isolated(const std::filesystem::path& path, std::size_t file_bytes, const std::vector<std::string>& command);

inline constexpr int kMemoryDescriptor = 3;

/// In that program: does the work, with a limit on memory that grows with `file_bytes`, and hands over what it returns, or why it failed.
/// Gives the exit status.
int answer_in_isolation(const std::filesystem::path& path, std::size_t file_bytes,
                        const std::function<nlohmann::json(SharedMemory&)>& work);

}  // namespace statescope

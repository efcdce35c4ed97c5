// Work on a hostile file in a process of its own: what crashes, loops or devours memory there ends there.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "engine/checkpoint/mapped_file.h"

namespace statescope {

/// Memory that the child fills and the parent then maps: no copy is made.
class SharedMemory {
 public:
  explicit SharedMemory(const std::filesystem::path& path);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// Appends `size` bytes that `fill` writes; gives their offset, a multiple of the page size.
  std::size_t append(std::size_t size, const std::function<void(std::byte*)>& fill);
  std::shared_ptr<const MappedFile> map() const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::size_t size_ = 0;
};

struct IsolatedResult {
  nlohmann::json catalogue;                  // what `work` returned
  std::shared_ptr<const MappedFile> memory;  // what it appended
};

/// Runs `work` in a child process with limits on time and memory that grow with `file_bytes`. An Error that it throws is thrown here; if it
/// does not come back, that is an Error too. `path` is the file at fault.
IsolatedResult run_isolated(const std::filesystem::path& path, std::size_t file_bytes,
                            const std::function<nlohmann::json(SharedMemory&)>& work);

}  // namespace statescope

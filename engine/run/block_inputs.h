// What entered each block, token by token: all that is needed to bring a layer's memory forward again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace statescope {

/// `streams` sequences of rows [D] float32. The newest rows are in memory; older ones in a temporary HDF5 file once all together exceed a
/// budget. The file has no name that outlives its owner, so nothing is left behind, whatever happens.
class BlockInputs {
 public:
  BlockInputs(std::int64_t streams, std::int64_t D);
  ~BlockInputs();
  BlockInputs(const BlockInputs&) = delete;
  BlockInputs& operator=(const BlockInputs&) = delete;

  /// One or more rows behind those that a stream has.
  void append(std::int64_t stream, std::span<const float> rows);
  /// Moves the oldest complete blocks of rows to the file until no more than `budget` bytes are in memory, or none is complete. Throws
  /// Error where the file cannot be written; nothing is lost then.
  void keep_within(std::size_t budget);
  /// Rows [from, to) of a stream. Throws Error where the file cannot be read.
  void read(float* to_rows, std::int64_t stream, std::int64_t from, std::int64_t to) const;

  std::size_t bytes_in_memory() const { return bytes_in_memory_; }
  std::size_t bytes_in_file() const;

  static constexpr std::int64_t kBlock = 256;  // rows

 private:
  class File;
  std::int64_t D_;
  /// [streams] of blocks of kBlock rows, the last one perhaps not yet full; empty: in the file.
  std::vector<std::vector<std::vector<float>>> blocks_;
  std::int64_t spilled_ = 0;  // blocks of every stream that are in the file
  std::size_t bytes_in_memory_ = 0;
  std::unique_ptr<File> file_;
};

/// Bytes that a program may take now without others being pushed out, as the system says; 4 GiB where it says nothing.
std::size_t available_memory();

}  // namespace statescope

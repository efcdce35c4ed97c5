// What entered each block, token by token: all that is needed to bring a layer's memory forward again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "engine/run/piece.h"

namespace statescope {

/// `streams` sequences of rows [D] float32 that grow together. The newest rows are on the device, older ones on the host, the oldest in a
/// temporary HDF5 file, as budgets demand. The file has no name that outlives its owner, so nothing is left behind, whatever happens.
class BlockInputs {
 public:
  BlockInputs(Backend& backend, std::int64_t streams, std::int64_t D)
      : BlockInputs(backend, std::vector<Backend*>(static_cast<std::size_t>(streams), &backend), D) {}
  /// Each stream is kept on a device of its own; rows come from and go to any device of `backend`.
  BlockInputs(Backend& backend, const std::vector<Backend*>& of_streams, std::int64_t D);
  ~BlockInputs();
  BlockInputs(const BlockInputs&) = delete;
  BlockInputs& operator=(const BlockInputs&) = delete;

  /// One or more rows [n, D] on the device, behind those that a stream has. Throws std::bad_alloc.
  void append(std::int64_t stream, ConstTensor rows);
  /// Makes room for `coming` rows of every stream: moves the oldest complete blocks until, with those rows, no more than `on_device` bytes
  /// are there and `on_host` on the host, or none is complete. Some are always on their way before that, so that nobody waits for them.
  /// Throws Error where the file cannot be written; nothing is lost then.
  void keep_within(std::size_t on_device, std::size_t on_host, std::int64_t coming = 0);
  /// Rows [from, from + n) of a stream go to `rows` [n, D] on the device. Throws Error where the file cannot be read.
  void read(Tensor rows, std::int64_t stream, std::int64_t from) const;

  std::size_t bytes_on_device() const;
  std::size_t bytes_on_host() const;
  std::size_t bytes_in_file() const { return static_cast<std::size_t>(in_file_) * block_bytes(); }
  /// Whether the device had no room for a block; it is not asked again.
  bool device_was_full() const { return device_was_full_; }

  static constexpr std::int64_t kBlock = 256;  // rows

 private:
  class File;
  std::size_t block_bytes() const { return static_cast<std::size_t>(streams() * kBlock * D_) * sizeof(float); }
  std::int64_t streams() const { return static_cast<std::int64_t>(rows_.size()); }
  /// Blocks in memory that all streams have filled.
  std::size_t complete() const;
  void move_to_host(std::size_t on_device);

  Backend& backend_;
  std::vector<Piece::Part> parts_;  // of a block
  std::int64_t D_;
  std::vector<std::int64_t> rows_;  // [streams]: how many each has
  std::deque<Piece> blocks_;        // of all streams [streams, kBlock, D], the oldest first
  std::int64_t in_file_ = 0;        // blocks before them
  bool device_was_full_ = false;
  std::unique_ptr<File> file_;
};

}  // namespace statescope

// Tensors as bytes to be written: block by block, rounded on the way if another type was asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

#include "engine/checkpoint/checkpoint.h"

namespace statescope {

/// The type in which a tensor is written.
DType written_dtype(const StoredTensor& tensor, const WriteOptions& options);

/// `count` numbers of type `from` as type `to`: to nearest, ties to even; what is too large becomes infinite, NaN stays NaN.
void convert(const std::byte* source, DType from, std::byte* target, DType to, std::size_t count);

/// Hands out a checkpoint's tensors for writing and reports the progress of it.
class BlockWriter {
 public:
  BlockWriter(const Checkpoint& checkpoint, const WriteOptions& options);

  /// Rows [first, first + count) of axis 0, contiguous; valid during the call. A scalar is one row.
  using Write = std::function<void(std::int64_t first, std::int64_t count, std::span<const std::byte> bytes)>;
  /// Calls `write` for successive blocks of rows. Throws Error if the progress function cancels.
  void write_tensor(const StoredTensor& tensor, DType dtype, const Write& write);

 private:
  std::span<const std::byte> widened(const StoredTensor& tensor, std::int64_t first, std::int64_t count);

  const Checkpoint& checkpoint_;
  const WriteOptions& options_;
  std::int64_t done_ = 0;  // bytes, as stored
  std::vector<std::byte> rounded_;
  std::vector<float> widened_;
};

}  // namespace statescope

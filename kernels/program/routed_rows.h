// Which rows memories read that see only the tokens routed to them (program.h: Dispatch).
#pragma once

#include <vector>

#include "kernels/backend.h"

namespace statescope::program {

struct RoutedRows {
  std::vector<std::int32_t> token;        // [rows] which token a row is of
  std::vector<std::int32_t> gate;         // [rows] t · memories + m: where the row's gate lies; of the shared memory's rows: not used
  std::vector<std::int32_t> cu_seqlens;   // [runs + 1] a run: the rows of one slot, in the order of the tokens
  std::vector<std::int32_t> slot;         // [runs]
  std::int64_t memories = 1, shared = 0;  // shared: how many rows are the shared memory's, the first ones

  RoutedRows() = default;
  /// ids [T, W] on the device: the memories that each token goes to; cu_seqlens_of_tokens {0, T}.
  RoutedRows(Backend& backend, ConstTensor ids, std::span<const std::int32_t> cu_seqlens_of_tokens, std::int64_t memories_,
             bool has_shared);

  std::int64_t rows() const { return static_cast<std::int64_t>(token.size()); }
  Segments segments() const { return {cu_seqlens, slot}; }
  /// [rows] t · slots + slot, `slots` all of them.
  std::vector<std::int32_t> places(std::int64_t slots) const;
};

}  // namespace statescope::program

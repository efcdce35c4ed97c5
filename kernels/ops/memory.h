// What the memories share: segments (which rows follow each other, and whose state they change).
#pragma once

#include <cstdint>
#include <span>

#include "kernels/tensor.h"

namespace statescope {

/// S runs of consecutive rows, each with a state of its own: segment s is the rows [cu_seqlens[s], cu_seqlens[s + 1])
/// and starts from, and ends in, state `slot[s]`. No two segments share a slot. A segment may be empty; its state is then
/// carried over unchanged. Slots that no segment names are not touched at all.
struct Segments {
  std::span<const std::int32_t> cu_seqlens;  // [S + 1], ascending from 0
  std::span<const std::int32_t> slot;        // [S]; empty: segment s owns slot s

  std::int64_t count() const { return cu_seqlens.empty() ? 0 : static_cast<std::int64_t>(cu_seqlens.size()) - 1; }
  std::int64_t slot_of(std::int64_t s) const { return slot.empty() ? s : slot[static_cast<std::size_t>(s)]; }
};

/// The head of an operand with `heads` heads that head `h` of `all_heads` uses: repeat-interleave, floor(h / (all / heads)).
constexpr std::int64_t producer_head(std::int64_t h, std::int64_t heads, std::int64_t all_heads) { return h * heads / all_heads; }

}  // namespace statescope

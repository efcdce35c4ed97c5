// Copies within the host's memory.
#pragma once

#include <algorithm>
#include <cstring>

#include "kernels/cpu/parallel.h"

namespace statescope::cuda {

/// On every core: pages that the host has not used yet cost more than the copy.
inline void copy_in_pieces(char* to, const char* from, std::size_t bytes) {
  constexpr std::size_t piece = std::size_t{1} << 19;
  parallel_for(static_cast<std::int64_t>((bytes + piece - 1) / piece), [&](std::int64_t i) {
    const std::size_t at = static_cast<std::size_t>(i) * piece;
    std::memcpy(to + at, from + at, std::min(piece, bytes - at));
  });
}

}  // namespace statescope::cuda

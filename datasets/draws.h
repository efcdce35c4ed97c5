// Orders drawn at random.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "datasets/philox.h"

namespace statescope {

/// 0 … n − 1, sorted by what `priority` says of each, and where that is equal, by themselves.
template <class Priority>
std::vector<std::uint32_t> ordered(std::size_t n, Priority priority) {
  std::vector<std::pair<decltype(priority(0U)), std::uint32_t>> keys(n);
  for (std::uint32_t i = 0; i < n; ++i) keys[i] = {priority(i), i};
  std::sort(keys.begin(), keys.end());
  std::vector<std::uint32_t> order(n);
  std::transform(keys.begin(), keys.end(), order.begin(), [](const auto& key) { return key.second; });
  return order;
}

/// 0 … n − 1 in the order of the stream's bits.
inline std::vector<std::uint32_t> shuffled(std::size_t n, const Draws& draws, std::uint32_t stream) {
  return ordered(n, [&](std::uint32_t i) { return draws.bits(stream, i); });
}

}  // namespace statescope

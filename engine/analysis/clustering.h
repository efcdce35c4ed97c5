// An order in which like things are neighbours.
#pragma once

#include <cstdint>
#include <vector>

namespace statescope {

/// The leaves of the tree that average linkage makes of n things, so that those of a branch stand together; of the two ends of each branch
/// the ones most alike meet. distance [n, n], symmetric, without NaN. O(n²) by the nearest-neighbour chain (Murtagh 1983).
std::vector<std::int64_t> average_linkage_order(std::vector<float> distance, std::int64_t n);

}  // namespace statescope

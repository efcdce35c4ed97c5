// Parts of a layer's states.
#pragma once

#include <vector>

#include "engine/snapshot.h"

namespace statescope {

/// [slots, K, V] of one head.
inline std::vector<float> one_head(const LayerState& state, std::int64_t head) {
  std::vector<float> values;
  for (std::int64_t slot = 0; slot < state.slots; ++slot)
    values.insert(values.end(), state.matrix(slot, head), state.matrix(slot, head) + state.rows * state.columns);
  return values;
}

}  // namespace statescope

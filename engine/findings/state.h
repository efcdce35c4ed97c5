#pragma once

#include <cstdint>

#include "engine/snapshot.h"

namespace statescope {

/// The states of a head after another token than the cursor's, to compare with.
struct StateQuestion {
  std::int64_t layer = 0, head = 0, token = 0;
  using Answer = HeadState;
  bool operator==(const StateQuestion&) const = default;
};

/// Those of all heads: what another model's are compared with.
struct LayerStateQuestion {
  std::int64_t layer = 0, token = 0;
  using Answer = LayerState;
  bool operator==(const LayerStateQuestion&) const = default;
};

}  // namespace statescope

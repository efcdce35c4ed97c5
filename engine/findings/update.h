#pragma once

#include <cstdint>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {

/// One token's update of a head, split: S_t = S_{t−1} + decayed + erased + written, per slot (spec §12.2, §12.9). What an intervention
/// did after the token is in it: scaling as decay, an imported state as decay of all there was and a write.
struct Update {
  static constexpr Accuracy accuracy = kRecomputed;
  std::int64_t slots = 0, rows = 0, columns = 0;
  std::vector<float> decayed, erased, written;  // [slots, K, V]; zeros where the token did not come
  std::vector<float> write_weight;  // [slots, K] ω, the token's own coefficients of v (delta rule: of v − π); of several steps the largest
};

struct UpdateQuestion {
  std::int64_t layer = 0, head = 0, token = 0;
  using Answer = Update;
  bool operator==(const UpdateQuestion&) const = default;
};

}  // namespace statescope

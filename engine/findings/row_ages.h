#pragma once

#include <cstdint>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {

/// How long ago the rows of a head's states were written, and how long half of a write has lasted (spec §12.2, §12.3).
struct RowAges {
  static constexpr Accuracy accuracy = kRecomputed;
  std::int64_t slots = 0, rows = 0;
  std::vector<std::int32_t> written;  // [slots, K] tokens since one counted as a write of the row (ρ's threshold); −1: none yet
  std::vector<std::int32_t> halved;  // [slots, K] least n so that decay left no more than half of what stood there n tokens ago; −1: none
};

struct RowAgesQuestion {
  std::int64_t layer = 0, head = 0, token = 0;
  using Answer = RowAges;
  bool operator==(const RowAgesQuestion&) const = default;
};

}  // namespace statescope

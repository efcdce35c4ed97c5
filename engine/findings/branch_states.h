#pragma once

#include <cstdint>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {

/// States of all layers after a token, on a branch and on the one that it left: Frobenius norms over all slots and heads.
struct BranchStates {
  static constexpr Accuracy accuracy = kReplayed;
  std::vector<double> left, here, difference;  // [layers]; zeros for layers without a state
};

struct BranchStatesQuestion {
  std::int64_t token = 0;
  using Answer = BranchStates;
  bool operator==(const BranchStatesQuestion&) const = default;
};

}  // namespace statescope

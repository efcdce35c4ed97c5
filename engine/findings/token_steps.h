#pragma once

#include <cstdint>

namespace statescope {

/// The tokens from, from + step, …: `count` of them.
struct TokenSteps {
  std::int64_t from = 0, step = 1, count = 0;
  bool operator==(const TokenSteps&) const = default;
};

}  // namespace statescope

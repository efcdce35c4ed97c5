#pragma once

#include <cstdint>
#include <vector>

#include "engine/accuracy.h"
#include "engine/findings/token_steps.h"

namespace statescope {

/// Likeness of one slot's state after different tokens: a tile of the map of all of them, cosines of the states as vectors.
struct TokenSimilarity {
  static constexpr Accuracy accuracy = accurate_to(1e-5);
  static constexpr std::int64_t kMostTokens = 128;  // along a side
  std::vector<float> cosine;                        // [rows, columns]; NaN where a state is zero
};

struct TokenSimilarityQuestion {
  std::int64_t layer = 0, slot = 0, head = 0;
  TokenSteps rows, columns;
  using Answer = TokenSimilarity;
  bool operator==(const TokenSimilarityQuestion&) const = default;
};

}  // namespace statescope

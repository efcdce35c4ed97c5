#pragma once

#include <cstdint>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {

/// What a branch predicts that the branch which it left does not, after each token from the first that they may not share.
struct BranchPredictions {
  static constexpr Accuracy accuracy = kRecomputed;
  std::int64_t from = 0;
  std::vector<float> kl;      // [n] KL(left ‖ this) of the next token, nat, as far as both read the same
  std::vector<float> logits;  // [n] the largest change of a logit
  std::int64_t changed = -1;  // the first token after which another next token is the most probable; −1: none
  std::int64_t parted = -1;   // the first token from which on they read different texts; −1: none
};

struct BranchPredictionsQuestion {
  using Answer = BranchPredictions;
  bool operator==(const BranchPredictionsQuestion&) const = default;
};

}  // namespace statescope

#pragma once

#include <cstdint>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {

/// Which experts the tokens in [from, to), at most 512, go to in a layer that has experts (spec §8.1). Empty for any other layer.
struct Experts {
  static constexpr Accuracy accuracy = kRecomputed;
  std::int64_t experts = 0;          // E
  std::int64_t chosen = 0;           // k of them by each token
  std::vector<std::int32_t> expert;  // [n, k], the largest weight first
  std::vector<float> weight;         // [n, k] w_e, by which the expert's output is multiplied
  std::vector<std::int64_t> load;    // [E] how many tokens before `from` went to each
};

struct ExpertsQuestion {
  std::int64_t layer = 0, from = 0, to = 0;
  using Answer = Experts;
  bool operator==(const ExpertsQuestion&) const = default;
};

}  // namespace statescope

#pragma once

#include <cstdint>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {

/// What the tokens in [from, to), at most 512, choose to attend to in a layer that chooses: blocks (MoBA, NSA; spec §18.3, §18.4) or single
/// tokens (DeepSeek's indexer; spec §18.2). Empty for any other layer.
struct Choices {
  static constexpr Accuracy accuracy = kRecomputed;
  std::int64_t heads = 0;            // that choose for themselves; 1: all heads attend to the same
  std::int64_t head = 0;             // whose choices these are; 0 where all heads have the same
  std::int64_t size = 1;             // tokens of a block; 1: single tokens are chosen
  std::vector<std::int64_t> begin;   // [n + 1] where in `chosen` those of each token begin
  std::vector<std::int32_t> chosen;  // blocks or tokens, ascending, each token's own block among them
  std::vector<float> score;          // as many: importance (NSA), I_ts (the indexer); empty: the layer tells none (MoBA)
};

struct ChoicesQuestion {
  std::int64_t layer = 0, head = 0, from = 0, to = 0;
  using Answer = Choices;
  bool operator==(const ChoicesQuestion&) const = default;
};

}  // namespace statescope

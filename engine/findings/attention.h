#pragma once

#include <cstdint>
#include <vector>

#include "engine/accuracy.h"
#include "engine/findings/token_steps.h"

namespace statescope {

/// A_{t,s} with o_t = Σ_s A_{t,s} v_s, of some tokens t (spec §12.8); of softmax layers, and of attention beside a memory, the weights.
struct AttentionMap {
  static constexpr Accuracy accuracy = kRecomputed;
  static constexpr std::int64_t kMostRows = 128;
  std::int64_t heads = 0;     // H, of softmax attention where that is what is asked for
  std::vector<float> weight;  // [rows, columns] the A_{t,s} farthest from 0 of the tokens s that a column stands for; 0 for s > t
  std::vector<float>
      before;  // [rows] Σ |A_{t,s}| over the tokens s before the columns', slot by slot; with those memory tokens that attention sees
  std::vector<float> all;  // [rows] the same over all tokens
};

/// A column stands for the `step` tokens from its own on. All rows' tokens are among those that columns stand for.
struct AttentionQuestion {
  std::int64_t layer = 0, head = 0;
  TokenSteps rows, columns;
  static constexpr std::int64_t kAllSlots = -1, kBeside = -2;
  std::int64_t slot = kAllSlots;  // kBeside: the softmax attention that the layer has beside its memory
  using Answer = AttentionMap;
  bool operator==(const AttentionQuestion&) const = default;
};

}  // namespace statescope

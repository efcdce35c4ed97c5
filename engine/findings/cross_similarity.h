#pragma once

#include <cstdint>
#include <memory>

#include "engine/accuracy.h"
#include "engine/findings/cosine_block.h"
#include "engine/findings/similarity.h"
#include "engine/findings/state.h"

#include "engine/snapshot.h"

namespace statescope {

/// Likeness of a layer's states after a token to those that another model has (spec §12.5): rows stand for the other's, columns for this
/// model's. What cannot be compared because its shape differs is empty.
struct CrossSimilarity {
  static constexpr Accuracy accuracy = accurate_to(1e-5);
  CosineBlock of_rows;   // [P'·K', P·K] of the rows of the heads asked for, V = V'; empty also where there are more than
                         // Similarity::kMostRows of both together
  CosineBlock of_heads;  // [H', H] of the slots' states of each head as vectors, K = K' and V = V'
};

struct CrossSimilarityQuestion {
  std::int64_t layer = 0, slot = 0, head = 0, token = 0;
  std::shared_ptr<const LayerState> other;  // what the other model answers to a LayerStateQuestion
  std::int64_t other_slot = 0, other_head = 0;
  using Answer = CrossSimilarity;
  bool operator==(const CrossSimilarityQuestion&) const = default;
};

}  // namespace statescope

#pragma once

#include <cstdint>
#include <vector>

#include "engine/accuracy.h"

#include "engine/snapshot.h"

namespace statescope {

/// What the model predicts after each token in [from, to), at most 512 of them.
struct Predictions {
  static constexpr Accuracy accuracy = kRecomputed;
  std::int64_t from = 0, to = 0;             // as asked, within the run
  std::vector<std::vector<Prediction>> top;  // [n] the most probable next tokens, at most 5
  std::vector<float> next_probability;       // [n] of the token that follows in the run; NaN after the last
  std::vector<std::int32_t> next_rank;       // [n] how many are more probable; −1 after the last
  std::vector<float> entropy;                // [n] nat
  std::vector<float> logits;                 // [n, ids] of the ids asked for
  std::vector<float> probabilities;          // [n, ids]
};

struct PredictionsQuestion {
  std::int64_t from = 0, to = 0;
  std::vector<std::int32_t> ids;  // whose logits are wanted
  using Answer = Predictions;
  bool operator==(const PredictionsQuestion&) const = default;
};

}  // namespace statescope

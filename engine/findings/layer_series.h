#pragma once

#include <cstdint>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {

/// A layer's numbers of every token in [from, to), in their order (spec §12.1, §12.7, §12.10).
struct LayerSeries {
  static constexpr Accuracy accuracy = kReplayed;
  std::int64_t from = 0, to = 0, slots = 0;
  std::vector<float> residual_norm;                        // [n] ‖x_t‖ as it enters the block
  std::vector<float> state_norm;                           // [slots, n] ‖S_t‖_F over all heads
  std::vector<float> update_norm;                          // [slots, n] ‖S_t − S_{t−1}‖_F
  std::vector<float> routing_entropy;                      // [n] in [0, 1]; empty without routing
  std::vector<float> gate_entropy_q, gate_entropy_k;       // [n] in [0, 1], of the head gates; empty without
  std::vector<std::int32_t> gate_winner_q, gate_winner_k;  // [n]
};

struct LayerSeriesQuestion {
  std::int64_t layer = 0, from = 0, to = 0;
  using Answer = LayerSeries;
  bool operator==(const LayerSeriesQuestion&) const = default;
};

}  // namespace statescope

#pragma once

#include <cstdint>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {

/// To how many rows of each slot the tokens in [from, to), at most 512, write (spec §12.2); NaN where a token does not come.
struct WriteSpreads {
  static constexpr Accuracy accuracy = kRecomputed;
  std::int64_t slots = 0, rows = 0;
  std::vector<float> effective;  // [slots, n] (Σ|ω|)² / Σω²: K for equal weights, 1 for a single row
  std::vector<float> counted;    // [slots, n] K ρ: rows with |ω_r| ≥ τ Σ|ω|
};

struct WriteSpreadQuestion {
  std::int64_t layer = 0, head = 0, from = 0, to = 0;
  using Answer = WriteSpreads;
  bool operator==(const WriteSpreadQuestion&) const = default;
};

}  // namespace statescope

#pragma once

#include <cstdint>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {

/// The delta rule at every token that visited a slot (spec §12.9), π = k S̄ its prediction. Nothing where the memory follows another rule.
struct DeltaRule {
  static constexpr Accuracy accuracy = kRecomputed;
  std::vector<std::int32_t> token;                                    // [n]
  std::vector<float> prediction, value, error, erase, write, update;  // [n] ‖π‖, ‖v‖, ‖v − π‖; Frobenius norms of what is taken, put, both
  std::vector<float> cosine;                                          // [n] of π and v
  std::vector<float> beta, alpha;  // [n]; α along k where each row decays by itself: k̂ diag(α) k̂ᵀ
  std::vector<float> mended;  // [n] β ‖k‖²: the part of the error that is corrected, for k S becomes π + β ‖k‖² (v − π)
  std::vector<float> along_key;  // [n] α (1 − β ‖k‖²), what the old state is multiplied with along k; where rows decay alike an eigenvalue
};

struct DeltaRuleQuestion {
  std::int64_t layer = 0, slot = 0, head = 0;
  using Answer = DeltaRule;
  bool operator==(const DeltaRuleQuestion&) const = default;
};

}  // namespace statescope

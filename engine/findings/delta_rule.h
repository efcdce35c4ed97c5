#pragma once

#include <cstdint>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {

/// The delta rule at every step of every token that visited a slot (spec §12.9), π = k S̄ its prediction; of a memory with two keys
/// (RWKV-7) π = p S, what the erase key p reads, of which e π is taken away along e. Nothing where the memory follows another rule.
struct DeltaRule {
  static constexpr Accuracy accuracy = kRecomputed;
  bool two_keys = false;                                              // p and e are not the key that is written with
  std::int64_t steps = 1;                                             // of each token, one after the other
  std::vector<std::int32_t> token;                                    // [n]
  std::vector<float> prediction, value, error, erase, write, update;  // [n] ‖π‖, ‖v‖, ‖v − π‖; Frobenius norms of what is taken, put, both
  std::vector<float> cosine;                                          // [n] of π and v
  std::vector<float> beta, alpha;  // [n]; α along k where each row decays by itself: k̂ diag(α) k̂ᵀ
  std::vector<float> mended;  // [n] β ‖k‖²: the part of the error that is corrected, for k S becomes π + β ‖k‖² (v − π); of two keys
                              // β = p·e: the part of π that is taken away
  std::vector<float> put;  // [n] of two keys p·k: without decay p S becomes (1 − p·e) π + (p·k) v; else empty
  std::vector<float> along_key;  // [n] α (1 − β ‖k‖²), what the old state is multiplied with along k; where rows decay alike an eigenvalue.
                                 // Of two keys along p: α − p·e
};

struct DeltaRuleQuestion {
  std::int64_t layer = 0, slot = 0, head = 0;
  using Answer = DeltaRule;
  bool operator==(const DeltaRuleQuestion&) const = default;
};

}  // namespace statescope

#pragma once

#include <cstdint>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {

/// Competition of the heads at every token of the run (spec §12.7, A13).
struct HeadContest {
  static constexpr Accuracy accuracy = kRecomputed;
  std::int64_t heads = 0;                        // 0: the layer has no head gates
  std::vector<float> gate_q, gate_k;             // [T, H] G^Q, G^K: probability
  std::vector<float> entropy_q, entropy_k;       // [T] in [0, 1]
  std::vector<std::int32_t> winner_q, winner_k;  // [T]
  std::vector<float> margin_q, margin_k;         // [T] the largest less the next
  std::vector<float> flow;                       // [T] C_{t,t} = Σ_h G^Q_t G^K_t
  std::vector<float> read_gate_effective;        // [T]; empty where the model has no such channel
};

struct HeadGatesQuestion {
  std::int64_t layer = 0;
  using Answer = HeadContest;
  bool operator==(const HeadGatesQuestion&) const = default;
};

/// What the gates of the tokens in [from, to), at most 512, would be with their logits times λ: a probe, which changes nothing in the run
/// (SLA Thm 4.2, 4.3).
struct SharpenedGates {
  static constexpr Accuracy accuracy = kRecomputed;
  std::vector<float> gate_q, gate_k;                // [n, H]
  std::vector<float> entropy_q, entropy_k;          // [n]
  std::vector<float> flow;                          // [n, n] C_{t,s} = Σ_h G^Q_t G^K_s, row t; also where s > t
  std::vector<float> lambda;                        // [m] of the curves
  std::vector<float> curve_q, curve_k, curve_flow;  // [n, m] entropies and C_{t,t} at those λ
};

struct SharpenedGatesQuestion {
  std::int64_t layer = 0, from = 0, to = 0;
  double lambda = 1;
  using Answer = SharpenedGates;
  bool operator==(const SharpenedGatesQuestion&) const = default;
};

}  // namespace statescope

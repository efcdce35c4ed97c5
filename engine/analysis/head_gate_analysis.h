// Competition between heads in softmax linear attention: how decided the gates are and what passes through them (spec §6, §12.7).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {
// All functions throw std::invalid_argument if sizes do not fit. Gates are rows G_t [H] of the channels head_gate_q and head_gate_k,
// softmax over heads (SLA eq. 4); grouped heads: of the H heads that have a gate.

/// One gate G_t [H].
struct HeadGate {
  static constexpr Accuracy accuracy = kRecomputed;
  double entropy = 0;       // −Σ_h G_h log G_h / log H, in [0, 1]; 0 for one head
  std::int64_t winner = 0;  // argmax_h G_h; ties: the lowest head
  double margin = 0;        // the largest G_h less the next, probability; NaN for one head
};
/// gates [T, H]
std::vector<HeadGate> head_gates(std::span<const float> gates, std::int64_t heads);

/// C_{t,s} = Σ_h G^Q_{h,t} G^K_{h,s} ∈ (0, 1] for every row t of gate_q [A, H] and s of gate_k [B, H]: [A, B]     (SLA Thm 4.3). The rows
/// may be any window of the run; s > t says nothing about the run, which is causal.
std::vector<float> information_flow(std::span<const float> gate_q, std::span<const float> gate_k, std::int64_t heads);

/// C_{t,t} of gates [T, H]: [T]
std::vector<float> own_information_flow(std::span<const float> gate_q, std::span<const float> gate_k, std::int64_t heads);

/// softmax(λ log G): what the gate would be with its logits times λ. For G = softmax(z) this is softmax(λ z), since log G is z less a
/// constant. A gate that is 0 in float32 stays 0. λ > 0 multiplies whatever sla.temperature the run has. gate [H].
std::vector<double> sharpened(std::span<const float> gate, double lambda);

/// The λ of the curves; they are a probe and change nothing in the run.
constexpr std::array<double, 7> kSharpness{0.25, 0.5, 1, 2, 4, 8, 16};
using SharpnessCurve = std::array<double, kSharpness.size()>;

/// Entropy of the sharpened gate, as in HeadGate, which never grows with λ     (SLA eq. 8)
SharpnessCurve entropy_curve(std::span<const float> gate);

/// C(λ) = Σ_h G^Q_h(λ) G^K_h(λ), which tends to δ(argmax G^Q, argmax G^K)     (SLA eq. 9); gate_q, gate_k [H]
SharpnessCurve flow_curve(std::span<const float> gate_q, std::span<const float> gate_k);

}  // namespace statescope

// The gated delta rule: the memory of DeltaNet, Gated DeltaNet, MoM, SSE-GDN, SLA on GDN and KDA.
//
//   S̄_t = diag(α_t) S_{t-1}      u_t = β_t (v_t − k_t S̄_t)      S_t = S̄_t + k_tᵀ u_t      o_t = scale · q_t S_t      (GDN eq. 10; SLA eq.
//   14–16)
//
// β is a scalar per head, α too or one number a key channel (KDA, spec §17.3); k is expected L2-normalised, which is the caller's business.
#pragma once

#include "kernels/ops/memory.h"

namespace statescope {

/// Operands may have fewer heads than the state (grouped heads): see producer_head. All float32.
struct GatedDeltaRule {
  ConstTensor q, k;       // [rows, ≤H, K]
  ConstTensor v;          // [rows, ≤H, V]
  ConstTensor log_decay;  // ln α, ≤ 0: [rows, ≤H, K], [rows, ≤H], or absent (α = 1)
  ConstTensor beta;       // [rows, ≤H], or absent (β = 1)
  float scale = 1;        // multiplies o only
  Segments segments;
  ConstTensor initial_state;  // [slots, H, K, V]
  Tensor final_state;         // [slots, H, K, V]; may be the same memory as initial_state
  Tensor o;                   // [rows, H, V], every row of every segment is written
};

/// One row per segment (or none): the recurrence as it stands. Throws std::invalid_argument if shapes do not fit.
void gated_delta_rule_step(const GatedDeltaRule& op);

/// Any number of rows per segment, `chunk_size` ≥ 1 at a time, in WY form: one unit triangular solve a chunk (spec §9.4, 9.5; decays per
/// channel with the sub-chunks of §9.3). Equal to repeated steps up to rounding, for any chunk size, β ∈ [0, 2] and any decay strength.
void gated_delta_rule_chunk(const GatedDeltaRule& op, std::int64_t chunk_size);

}  // namespace statescope

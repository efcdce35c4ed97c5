// The decayed outer product: the memory of linear attention, RetNet, GLA, Mamba-2, GSA (twice), SSE-GLA, SLA on RetNet and GLA.
//
//   S_t = diag(a_t) S_{t-1} + k_tᵀ v_t        o_t = scale · q_t S_t              (GLA eq. 3; SSE eq. 9; state rows are keys)
//
// with a_t per key channel, per head, or absent (a = 1). DecayAxis::columns decays the value axis instead (GSA, first pass):
//   S_t = S_{t-1} diag(a_t) + k_tᵀ v_t
#pragma once

#include "kernels/ops/memory.h"

namespace statescope {

enum class DecayAxis { rows, columns };

/// Operands may have fewer heads than the state (grouped heads): see producer_head. All float32.
struct DecayedOuterProduct {
  ConstTensor q, k;       // [rows, ≤H, K]
  ConstTensor v;          // [rows, ≤H, V]
  ConstTensor log_decay;  // natural log, ≤ 0: [rows, ≤H, K] (columns: [rows, ≤H, V]), [rows, ≤H], or absent
  DecayAxis decay_axis = DecayAxis::rows;
  float scale = 1;  // multiplies o only
  Segments segments;
  ConstTensor initial_state;  // [slots, H, K, V]
  Tensor final_state;         // [slots, H, K, V]; may be the same memory as initial_state
  Tensor o;                   // [rows, H, V], every row of every segment is written
};

/// One row per segment (or none): the recurrence as it stands. Throws std::invalid_argument if shapes do not fit.
void decayed_outer_product_step(const DecayedOuterProduct& op);

/// Any number of rows per segment, `chunk_size` ≥ 1 at a time, parallel inside a chunk (spec §9.1–9.3, 9.6: log space, sub-chunks of
/// 16 whose exponents are all ≤ 0). Equal to repeated steps up to rounding, for any chunk size and any decay strength.
void decayed_outer_product_chunk(const DecayedOuterProduct& op, std::int64_t chunk_size);

}  // namespace statescope

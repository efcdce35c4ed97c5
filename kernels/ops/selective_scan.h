// The selective scan (S6): the memory of Mamba, Falcon-Mamba, Jamba and Zamba.
//
//   S_t[n,c] = exp(Δ_{t,c} A[n,c]) S_{t-1}[n,c] + B_{t,n} Δ_{t,c} x_{t,c}        o_{t,c} = Σ_n C_{t,n} S_t[n,c]        (Mamba eq. 2, 4;
//   spec §17.1)
//
// with a decay for every pair of a state n and a channel c: no products of matrices as in the other memories' chunks, but every channel is
// a scan of its own, and what is left of a state after some rows is exp(A Σ Δ).
#pragma once

#include "kernels/ops/memory.h"

namespace statescope {

/// State rows are the N states of a channel, columns the P channels of a head. B and C may have fewer heads than the state (grouped heads):
/// see producer_head. All float32; a device may take x and o in the type of activations.
struct SelectiveScan {
  ConstTensor x, dt;       // [rows, H, P]; dt = Δ ≥ 0
  ConstTensor A;           // [H, N, P], ≤ 0
  ConstTensor B, C;        // [rows, ≤H, N]
  float decay_factor = 1;  // multiplies Δ A, but not what is written
  Segments segments;
  ConstTensor initial_state;  // [slots, H, N, P]
  Tensor final_state;         // [slots, H, N, P]; may be the same memory as initial_state
  Tensor o;                   // [rows, H, P], every row of every segment is written
};

/// Throws std::invalid_argument if shapes do not fit. `activations`: the type of x and o.
void check_selective_scan(const SelectiveScan& op, DType activations = DType::f32);

/// Any number of rows a segment. Throws std::invalid_argument if shapes do not fit.
void selective_scan(const SelectiveScan& op);

}  // namespace statescope

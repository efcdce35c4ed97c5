// The memory of RWKV-6 and RWKV-7, which their papers call WKV.
//
//   S_t = diag(α_t) S_{t-1} − e_tᵀ (p_t S_{t-1}) + k_tᵀ v_t
//   o_t = scale · q_t S_t,   or of a memory that is read first scale · q_t S_{t-1}        (RWKV-7 eq. 17; RWKV-6 eq. 19; spec §17.10)
//
// What the key p reads, of the state before its decay, is taken away along e; what is written has a key of its own. RWKV-6 takes nothing
// away, and reads first.
#pragma once

#include "kernels/ops/memory.h"

namespace statescope {

/// Operands may have fewer heads than the state (grouped heads): see producer_head. All float32.
struct Wkv {
  ConstTensor q, k;         // [rows, ≤H, K]
  ConstTensor v;            // [rows, ≤H, V]
  ConstTensor log_decay;    // ln α, ≤ 0: [rows, ≤H, K]
  ConstTensor erase_key;    // p: [rows, ≤H, K], or absent: nothing is taken away
  ConstTensor erase_along;  // e: the same
  bool reads_first = false;
  float scale = 1;  // multiplies o only
  Segments segments;
  ConstTensor initial_state;  // [slots, H, K, V]
  Tensor final_state;         // [slots, H, K, V]; may be the same memory as initial_state
  Tensor o;                   // [rows, H, V], every row of every segment is written
};

/// Throws std::invalid_argument if shapes do not fit.
void check_wkv(const Wkv& op);

/// Any number of rows a segment, one after the other. Throws std::invalid_argument if shapes do not fit.
void wkv(const Wkv& op);

}  // namespace statescope

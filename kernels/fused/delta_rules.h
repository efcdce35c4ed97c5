// Forms of the gated delta rule that are the ordinary one with other operands.
#pragma once

#include "kernels/backend.h"

namespace statescope {

/// Comba's erase, of the state that has not decayed yet, with c times the key:
///   u_t = β_t (v_t − c_t k_t S_{t−1}),   S_t = α_t S_{t−1} + k_tᵀ u_t                         (spec §17.13)
/// With S̄_t = α_t S_{t−1} it is the ordinary rule of β' = β c/α and v' = (α/c) v, which this returns; β' and v' lie in the workspace.
/// α counts as at least 2^−24, which is nothing beside what is written. c [rows, H] > 0; log_decay and beta are there.
GatedDeltaRule with_undecayed_erase(const GatedDeltaRule& op, ConstTensor c, Backend& device, Workspace& workspace);

/// Several steps a token, of one sequence: S ← α_t S_{t−1}, then S ← S + k_jᵀ β_j (v_j − k_j S) for j = 1 … n, o_t = scale · q_t S
/// (spec §17.12). k, v and beta have n times as many heads, those of one step side by side. Each step is a row of the ordinary rule: the
/// first one decays, the last one reads.
void gated_delta_rule_steps(const GatedDeltaRule& op, std::int64_t steps, std::int64_t chunk_size, Backend& device, Workspace& workspace);

}  // namespace statescope

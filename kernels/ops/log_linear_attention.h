// Log-linear attention: the memory of log-linear Mamba-2, a hierarchy of states in place of one.
//
//   o_t = Σ_ℓ λ_{t,ℓ} q_t S^ℓ_t,   S^ℓ_t = Σ_{s in level ℓ} (Π_{j=s+1..t} α_j) k_sᵀ v_s        (Guo et al. 2025, "Log-linear attention";
//   spec §17.14)
//
// The levels of token t share out the tokens up to it (a Fenwick tree): level 0 is t itself; level ℓ ≥ 1 has tokens iff bit ℓ − 1 of t is
// set, then the 2^{ℓ−1} before t − (t mod 2^{ℓ−1}). From one token to the next, levels 0 … m − 1 become level m, which was empty.
#pragma once

#include "kernels/ops/memory.h"

namespace statescope {

/// Rows of one sequence, one after the other. Operands may have fewer heads than the state (grouped heads): see producer_head. All float32.
struct LogLinearAttention {
  ConstTensor q, k;           // [rows, ≤H, K]
  ConstTensor v;              // [rows, ≤H, V]
  ConstTensor log_decay;      // ln α, ≤ 0: [rows, ≤H]
  ConstTensor level_scale;    // λ: [rows, ≤H, levels]
  std::int64_t position = 0;  // of the first row in its sequence, which has at most 2^{levels−1} tokens
  ConstTensor initial_state;  // [levels, H, K, V], as the token before has read it; empty levels are 0
  Tensor final_state;         // [levels, H, K, V]; may be the same memory as initial_state
  Tensor o;                   // [rows, H, V]
};

/// The level that all lower ones became on the way to token `position` > 0: 1 + its trailing zeros.
constexpr std::int64_t merged_level(std::int64_t position) { return 1 + __builtin_ctzll(static_cast<unsigned long long>(position)); }
/// Whether a level above 0 has tokens.
constexpr bool has_tokens(std::int64_t level, std::int64_t position) { return (position >> (level - 1) & 1) != 0; }

/// Throws std::invalid_argument if shapes do not fit.
void check_log_linear_attention(const LogLinearAttention& op);

/// Throws std::invalid_argument if shapes do not fit.
void log_linear_attention(const LogLinearAttention& op);

}  // namespace statescope

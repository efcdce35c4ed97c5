// Which tokens a query attends to, as the lightning indexer of DeepSeek sparse attention chooses them (DeepSeek-V3.2 eq. 1, 2; spec §18.2).
//
//   I_ts = Σ_h w_th relu(scale · q_th·k_s)   over s ≤ t        chosen: the tokens of the n largest, ties to the earlier one; or all
#pragma once

#include "kernels/ops/memory.h"

namespace statescope {

/// Segments as in softmax_attention.h. All float32.
struct TokenChoice {
  ConstTensor q;       // [queries, H, d] of the indexer's heads
  ConstTensor k;       // [keys, d], one for all heads
  ConstTensor weight;  // [queries, H]
  float scale = 1;
  Segments segments;                           // of the queries; slots are not used
  std::span<const std::int32_t> cu_seqlens_k;  // [S + 1]
  Tensor selected;                             // [queries, n] i32: ascending positions in the segment, −1 behind the last one
  Tensor scores;                               // [queries, n]: I of those tokens, 0 of none; absent: not wanted
};

/// Throws std::invalid_argument if shapes do not fit.
void check_token_choice(const TokenChoice& op);

/// Any number of queries per segment. Throws std::invalid_argument if shapes do not fit.
void choose_tokens(const TokenChoice& op);

}  // namespace statescope

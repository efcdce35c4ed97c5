// Attention to the means of blocks, and the blocks that follow from it: a branch of native sparse attention, and the choice of another one
// (NSA eq. 7 to 12 as flash-linear-attention has it; spec §18.3).
//
//   k̄_b, v̄_b = the means of k and v over block b        blocks of `block_size` keys from the segment's first one on
//   p_t = softmax_b(scale · q_t·k̄_b) over the blocks that end at t or before        o_t = Σ_b p_tb v̄_b; 0 where there is none
//   importance of block b = the mean of p_tb over the query heads that read a key head
//   chosen: the first block, t's own and the one before it; then the most important that end at t or before, ties to the earlier one
#pragma once

#include "kernels/ops/memory.h"

namespace statescope {

/// Segments as in softmax_attention.h. All float32.
struct CompressedAttention {
  ConstTensor q;  // [queries, H, d]
  ConstTensor k;  // [keys, Hkv, d], Hkv divides H
  ConstTensor v;  // [keys, Hkv, V]
  float scale = 1;
  std::int64_t block_size = 1;
  Segments segments;                           // of the queries; slots are not used
  std::span<const std::int32_t> cu_seqlens_k;  // [S + 1]
  Tensor o;                                    // [queries, H, V]
  Tensor selected;                             // [queries, Hkv, n] i32, n ≥ 3: ascending, −1 behind the last one
  Tensor importance;  // [queries, Hkv, n] of those blocks, 0 of one that ends behind t and of none; absent: not wanted
};

/// Throws std::invalid_argument if shapes do not fit.
void check_compressed_attention(const CompressedAttention& op);

/// Any number of queries per segment. Throws std::invalid_argument if shapes do not fit.
void compressed_attention(const CompressedAttention& op);

}  // namespace statescope

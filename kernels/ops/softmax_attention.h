// Softmax attention: the memory of the Transformer and of every hybrid (-H) layer; full, sliding window, or block top-k (MoBA).
//
//   o_t = Σ_s softmax_s(scale · q_t·k_s) v_s    over the allowed s ≤ t
//
// Its state is the list of keys and values itself, which the caller keeps and appends to before the call.
#pragma once

#include "kernels/ops/memory.h"

namespace statescope {

/// MoBA (spec §4.8): a token at a position below `until` sees its own block causally and, of the complete blocks before it, the
/// `topk` − 1 whose mean key has the largest product with q (float32; ties: the earlier block). Off when `block_size` is 0;
/// with `topk` ≤ 1 attention is plainly causal.
struct BlockTopK {
  std::int64_t block_size = 0;
  std::int64_t topk = 0;
  std::int64_t until = 0;
};

/// Segment s holds the queries [cu_seqlens[s], cu_seqlens[s+1]) and the keys [cu_seqlens_k[s], cu_seqlens_k[s+1]); its queries are the
/// last ones of its keys (query i of n has position keys − n + i). All float32; with the precision bfloat16 a device may be given bf16
/// where no blocks are chosen and a segment has at least 32 queries.
struct SoftmaxAttention {
  ConstTensor q;            // [queries, H, d]
  ConstTensor k;            // [keys, Hkv, d], Hkv divides H: head h reads producer_head(h, Hkv, H)
  ConstTensor v;            // [keys, Hkv, V]
  float scale = 1;          // multiplies the scores
  std::int64_t window = 0;  // 0: all earlier tokens; else the last `window` tokens, the token itself included
  BlockTopK blocks;
  Segments segments;                           // of the queries; slots are not used
  std::span<const std::int32_t> cu_seqlens_k;  // [S + 1]
  Tensor o;                                    // [queries, H, V]
  Tensor selected_blocks;                      // [queries, H, topk − 1] i32, −1 where fewer exist; absent: not wanted
};

/// One query per segment (or none). Throws std::invalid_argument if shapes do not fit.
void softmax_attention_step(const SoftmaxAttention& op);

/// Any number of queries per segment, `chunk_size` ≥ 1 of them against one block of keys at a time, with a running maximum.
void softmax_attention_chunk(const SoftmaxAttention& op, std::int64_t chunk_size);

}  // namespace statescope

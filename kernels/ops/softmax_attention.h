// Softmax attention: the memory of the Transformer and of every hybrid (-H) layer; full, sliding window, block top-k (MoBA), a fixed
// pattern, or over keys that something else has chosen.
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

/// Keys that positions alone let a query see (spec §18.5), in blocks of `block_size` keys from the segment's first one on: of a query in
/// block a of head h block b ≤ a if (a − b) mod dilation = 0 and (a − b) / dilation < window, or if (b + h · head_step + 1) mod stride = 0,
/// or a or b is one of the `leading` first or global, or b is listed for a. Off when `block_size` is 0. Lists lie on the device that runs
/// it.
struct FixedPattern {
  std::int64_t block_size = 0, window = 1;  // window: at least 1
  std::int64_t leading = 0;
  std::int64_t stride = 0, head_step = 0;  // stride 0: none
  const std::int32_t* dilation = nullptr;  // [H]; null: 1
  const std::int32_t* global = nullptr;    // [globals]
  const std::int32_t* listed = nullptr;    // [H, listed_rows, listed_width], −1 where fewer; blocks behind the last row have none
  std::int64_t globals = 0, listed_rows = 0, listed_width = 0;

  constexpr bool sees(std::int64_t h, std::int64_t a, std::int64_t b) const {
    // Positions fit 32 bits, whose division costs a GPU a fraction of that of 64.
    const auto distance = static_cast<std::uint32_t>(a - b), apart = static_cast<std::uint32_t>(dilation ? dilation[h] : 1);
    if (distance % apart == 0 && distance / apart < window) return true;
    if (a < leading || b < leading) return true;
    if (stride > 0 && static_cast<std::uint32_t>(b + h * head_step + 1) % static_cast<std::uint32_t>(stride) == 0) return true;
    for (std::int64_t i = 0; i < globals; ++i) {
      if (global[i] == a || global[i] == b) return true;
    }
    for (std::int64_t i = 0; a < listed_rows && i < listed_width; ++i) {
      if (listed[(h * listed_rows + a) * listed_width + i] == b) return true;
    }
    return false;
  }
  bool operator==(const FixedPattern&) const = default;
};

/// Blocks of `block_size` keys that each query sees up to itself, from the segment's first key on: what another operation has chosen.
struct ChosenBlocks {
  ConstTensor ids;  // [queries, heads, n] or [queries, n] i32, heads divides H: ascending, −1 behind the last one; absent: off
  std::int64_t block_size = 1;
};

/// Segment s holds the queries [cu_seqlens[s], cu_seqlens[s+1]) and the keys [cu_seqlens_k[s], cu_seqlens_k[s+1]); its queries are the
/// last ones of its keys (query i of n has position keys − n + i). At most one of `window`, `blocks`, `pattern` and `chosen` is given. All
/// float32; with the precision bfloat16 a device may be given bf16 where all keys or a window are seen and a segment has at least 32
/// queries.
struct SoftmaxAttention {
  ConstTensor q;            // [queries, H, d]
  ConstTensor k;            // [keys, Hkv, d], Hkv divides H: head h reads producer_head(h, Hkv, H)
  ConstTensor v;            // [keys, Hkv, V]
  float scale = 1;          // multiplies the scores
  std::int64_t window = 0;  // 0: all earlier tokens; else the last `window` tokens, the token itself included
  BlockTopK blocks;
  FixedPattern pattern;
  ChosenBlocks chosen;
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

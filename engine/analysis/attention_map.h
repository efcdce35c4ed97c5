// A_{t,s}: how much of what token t reads is the value of token s, o_t = Σ_s A_{t,s} v_s (spec §12.8), of many tokens t at once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/accuracy.h"
#include "engine/analysis/memory_trace.h"
#include "engine/findings/findings.h"
#include "kernels/ops/softmax_attention.h"

namespace statescope {

/// Which A_{t,s}: of the tokens t of `rows`, all of them in [from, to), and every token s in [from, to).
struct AttentionPart {
  TokenSteps rows;
  std::int64_t from = 0, to = 0;

  std::int64_t width() const { return to - from; }
  std::int64_t token(std::int64_t row) const { return rows.from + row * rows.step; }
};

struct AttentionRows {
  static constexpr Accuracy accuracy = kRecomputed;
  std::vector<double> weight;  // [to − from, rows] A_{t,s} at s, t; 0 for s > t and where t did not read
  std::vector<double> before;  // [rows] Σ |A_{t,s}| over s < from
};

/// Called now and then with what is done, 0 … 1; may throw.
using Done = std::function<void(double)>;

/// One slot and head of a matrix memory: row by row what implicit_attention says, but all rows are swept together, O(rows K) a visit. What
/// has decayed to 10⁻²⁰ of a query counts as nothing. `value_gate` [T]: what a token's value was multiplied with before it was written;
/// A is then of values without it (empty: 1). Throws std::invalid_argument for a memory whose columns decay.
AttentionRows memory_attention(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, const AttentionPart& part,
                               const Done& done = {}, std::span<const float> value_gate = {});

/// Of a selective scan: the mean over its channels c of |A^c_{t,s}|, y^c_t = Σ_s A^c_{t,s} x^c_s, with Δ and D in A (spec §17.1). `dt` [T,
/// H, V], `D` [H, V].
AttentionRows scan_attention(const MemoryTrace& trace, std::int64_t head, const AttentionPart& part, std::span<const float> dt,
                             std::span<const float> D, const Done& done = {});

/// One head of softmax attention.
struct SoftmaxOperands {
  std::span<const float> q;  // [T, H, d]
  std::span<const float> k;  // [T, Hkv, d], Hkv divides H
  std::int64_t heads = 0, kv_heads = 0, d = 0;
  std::int64_t window = 0;  // 0: all earlier tokens; else the last `window`, the token itself included
  BlockTopK blocks;
  FixedPattern pattern;
  // What each token has chosen: blocks of `chosen_size` tokens, of which it sees those up to itself.
  std::span<const float> chosen;  // [T, chosen_heads, n], −1 where fewer; empty: nothing is chosen so
  std::int64_t chosen_heads = 1, chosen_size = 1;
};
/// softmax_s(d^{−1/2} q_t·k_s) over the keys that t sees.
AttentionRows softmax_weights(const SoftmaxOperands& operands, std::int64_t head, const AttentionPart& part, const Done& done = {});
/// softmax_b(d^{−1/2} q_t·k̄_b) / size over the blocks of `size` tokens that end at t or before, of each of their tokens (k̄: their mean
/// key).
AttentionRows compressed_weights(const SoftmaxOperands& operands, std::int64_t size, std::int64_t head, const AttentionPart& part,
                                 const Done& done = {});

}  // namespace statescope

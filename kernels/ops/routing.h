// Which partition a token goes to, and in which order the memories see the tokens then (spec §4.3, §10).
#pragma once

#include <vector>

#include "kernels/ops/memory.h"

namespace statescope {

/// ids[t, :] = the indices of the W largest of scores[t, :], largest first; ties go to the lowest index.
/// ids [T, W] i32, scores [T, N] float32, 1 ≤ W ≤ N. NaN counts as smallest.
void top_k(Tensor ids, ConstTensor scores);

/// y[t, n] = gate[t, n] / Σ_{m ∈ ids[t]} gate[t, m] for n ∈ ids[t], else 0: the weights of the chosen alone (MoM, spec §3.8; SSE v1, [A9]).
/// y, gate [T, N] float32 (y may be gate), ids [T, W] i32.
void renormalise(Tensor y, ConstTensor gate, ConstTensor ids);

/// The row-sparse write (SSE eq. 7, 8; spec §5): per token and head, with R the `topk` largest of z (ties: the lowest row),
/// k_r = exp(z_r) / Σ_{j∈R} exp(z_j) for r ∈ R, else 0; where `skip_decay`, log_decay of the other rows becomes 0 ([A10]).
/// k, z, log_decay [T, H, K]; k may be z.
void row_sparse(Tensor k, Tensor log_decay, ConstTensor z, std::int64_t topk, bool skip_decay);

/// Tokens sorted by (sequence, partition, position): one item per token and selected partition.
struct PartitionOrder {
  std::vector<std::int32_t> token;       // [items] the token (packed row) of an item
  std::vector<std::int32_t> rank;        // [items] which of the token's W choices it is
  std::vector<std::int32_t> partition;   // [items] 0 … N − 1
  std::vector<std::int32_t> cu_seqlens;  // [non-empty runs + 1]
  std::vector<std::int32_t> run;         // [non-empty runs] sequence · N + partition
};

/// Counting sort of ids [T, W] over sequences given by cu_seqlens [S + 1]; empty (sequence, partition) pairs have no run (spec §10, steps
/// 1–4). `order` is filled anew; its vectors keep their capacity, so a repeated call of the same size allocates nothing.
void order_by_partition(PartitionOrder& order, ConstTensor ids, std::span<const std::int32_t> cu_seqlens, std::int64_t partitions);

}  // namespace statescope

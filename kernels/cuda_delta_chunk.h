// The gated delta rule in chunks of 64 rows on tensor cores (spec §9.5). With b_i = Σ_{m≤i} log α_m inside a chunk, Γ_ij = e^{b_i − b_j}:
//
//   T = (I + tril(diag(β) (K Kᵀ ⊙ Γ), −1))⁻¹ diag(β)
//   u = T (V − diag(e^b) K S₀)      o = scale (diag(e^b) Q S₀ + tril(Q Kᵀ ⊙ Γ) u)      S = e^{b_C} S₀ + Kᵀ diag(e^{b_C − b}) u
//
// Four kernels; a span is a run of chunks:
//   prepare: T of all chunks at once (gated_delta_rule_prepare.cu)
//   carry:   each span but a segment's last: its state S_local from zero, and its transition M, the state from I with V = 0
//   combine: the state each span begins with, in order: S_{j+1} = M_j S_j + S_local,j
//   read:    o of each span from the state it begins with, and the last state
// Segments of one span need only prepare and read. Products take bf16 and sum in float32; decays and sums of products are float32.
#pragma once

#include "kernels/cuda_chunk.h"
#include "kernels/cuda_recurrence.h"

namespace statescope::cuda::delta {

constexpr int lanes = 32;
constexpr int row_blocks = chunk_rows / 16;                      // of a chunk
constexpr int lower_blocks = row_blocks * (row_blocks + 1) / 2;  // of a lower triangular matrix [64, 64], those of row block i from …
__device__ constexpr int first_block(int i) { return i * (i + 1) / 2; }

/// q, k or v.
struct Source {
  const void* data;
  std::int64_t stride, heads, width;
  bool by_fours;  // four numbers may be loaded at once
};

/// q, k or v as bf16; rows, heads and widths in pieces of 16 bytes.
struct Bf16Rows {
  Bf16* data;
  std::int64_t stride, heads, width;
  __device__ Bf16* at(std::int64_t row, std::int64_t h, std::int64_t H) const {
    return data + row * stride + producer_head(h, heads, H) * width;
  }
};

/// o [rows, H, V].
struct Output {
  void* data;
  std::int64_t stride;
  bool bf16, by_twos;  // two bf16 numbers may be stored at once
};

/// What prepare leaves of a head of a chunk.
struct alignas(16) Chunk {
  uint4 T[lower_blocks * lanes];                                    // B of Tᵀ: k runs along T's columns, n along its rows
  float b[chunk_rows], from_start[chunk_rows], to_end[chunk_rows];  // b, e^b, e^{b_C − b}
  float total, unused[3];                                           // e^{b_C}
};

struct Problem {
  Source given_q, given_k, given_v;
  Bf16Rows q, k, v;  // the same or, if `copied`, made by prepare: rows 64 n … of chunk n
  bool copied;
  Operand log_decay, beta;
  Rows<const float> initial;  // [slots, H, K, V]
  Rows<float> final;          // [slots, H, K, V]
  Output o;
  std::int64_t H, K, V, value_blocks;
  float scale;
  DeviceSegments segments;
  std::int64_t span;   // rows
  int stages;          // of Passage
  Chunk* chunks;       // [chunks, H]
  float4* states;      // [spans, H, value_blocks, channel blocks, 2, lanes]: 16 columns of a state (Columns)
  uint4* transitions;  // [spans, H, channel blocks, channel blocks, lanes]: B of (M − e^{Σ b_C} I)ᵀ
  float* totals;       // [spans, H]: e^{Σ b_C}
};

void prepare(const Problem& p, bool bf16, std::int64_t chunks, cudaStream_t stream);

// ---------------------------------------------------------------------------------------------------------------------------------------
// blocks of 16 × 16 numbers

__device__ inline int lane() { return static_cast<int>(threadIdx.x) % lanes; }
__device__ inline int warp() { return static_cast<int>(threadIdx.x) / lanes; }
/// Where a lane's numbers of a fragment begin (cuda_chunk.h).
__device__ inline int g() { return lane() / 4; }
__device__ inline int t() { return lane() % 4 * 2; }

/// C: its left and its right half.
struct Block {
  float half[2][4] = {};

  /// visit(row, column, number)
  template <class Visit>
  __device__ void each(const Visit& visit) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) visit(g() + e / 2 * 8, 8 * i + t() + e % 2, half[i][e]);
    }
  }
};

/// A.
__device__ inline uint4 as_a(const Block& x) {
  const auto& [left, right] = x.half;
  return {packed(left[0], left[1]), packed(left[2], left[3]), packed(right[0], right[1]), packed(right[2], right[3])};
}
/// What packing lost.
__device__ inline uint4 rest_of_a(const Block& x, const uint4& a) {
  const auto& [left, right] = x.half;
  return {packed_rest(left[0], left[1], a.x), packed_rest(left[2], left[3], a.y), packed_rest(right[0], right[1], a.z),
          packed_rest(right[2], right[3], a.w)};
}
/// B of the transpose: A with its two middle parts exchanged.
__device__ inline uint4 as_b_transposed(const uint4& a) { return {a.x, a.z, a.y, a.w}; }
/// B.
__device__ inline uint4 as_b(const Block& x) {
  const uint4 a = as_a(x);
  return {transposed(a.x), transposed(a.y), transposed(a.z), transposed(a.w)};
}

/// C ← C + A B
__device__ inline void multiply(Block& c, const uint4& a, const uint4& b) {
  cuda::multiply(c.half[0], a, b.x, b.y);
  cuda::multiply(c.half[1], a, b.z, b.w);
}

// Of a matrix x [rows, stride] in shared memory, from (row, column) on:

/// A.
__device__ inline uint4 a_block(const Bf16* x, int stride, int row, int column) {
  return load_matrices(x + (row + lane() % 16) * stride + column + lane() / 16 * 8);
}
/// A of xᵀ.
__device__ inline uint4 a_block_transposed(const Bf16* x, int stride, int row, int column) {
  return load_matrices_transposed(x + (row + lane() / 16 * 8 + lane() % 8) * stride + column + lane() / 8 % 2 * 8);
}
/// B of xᵀ.
__device__ inline uint4 b_block_transposed(const Bf16* x, int stride, int row, int column) {
  return load_matrices(x + (row + lane() / 16 * 8 + lane() % 8) * stride + column + lane() / 8 % 2 * 8);
}
/// B.
__device__ inline uint4 b_block(const Bf16* x, int stride, int row, int column) {
  return load_matrices_transposed(x + (row + lane() % 16) * stride + column + lane() / 16 * 8);
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// copies

/// Starts to copy the first `wanted` columns of n rows to 64 rows in shared memory, by all threads of the block; zeros for columns from
/// `given` on and for the rows behind. A row has room for 8 · pieces numbers; pieces: a power of two, at most 32.
template <int pieces, int to_stride>
__device__ void copy_rows(Bf16* to, const Bf16* from, std::int64_t stride, int n, int wanted, std::int64_t given) {
  const int c = static_cast<int>(threadIdx.x) % pieces * 8, step = static_cast<int>(blockDim.x) / pieces;
  if (c >= wanted) return;
  int r = static_cast<int>(threadIdx.x) / pieces;
  const int rows = c < given ? n : 0;
  const Bf16* row = from + r * stride + c;
  for (; r < chunk_rows; r += step, row += step * stride) {
    __pipeline_memcpy_async(to + r * to_stride + c, r < rows ? row : from, sizeof(uint4), r < rows ? 0 : sizeof(uint4));
  }
}

}  // namespace statescope::cuda::delta

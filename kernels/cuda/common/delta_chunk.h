// The gated delta rule in chunks of 64 rows on tensor cores (spec §9.5). With b_i = Σ_{m≤i} log α_m inside a chunk, Γ_ij = e^{b_i − b_j}:
//
//  T = (I + tril(diag(β) (K Kᵀ ⊙ Γ), −1))⁻¹ diag(β)
//  u = T (V − diag(e^b) K S₀)      o = scale (diag(e^b) Q S₀ + tril(Q Kᵀ ⊙ Γ) u)      S = e^{b_C} S₀ + Kᵀ diag(e^{b_C − b}) u
//
// Where q and k are normalised to length 1, each row gets a factor f: K above is diag(f^k) K, Q is diag(f^q) Q. Sparse states
// (sparse_state.h) have factors likewise, a gate and the L2 norm; their segments come after those of the operation's own rows, and their
// items read rows at arbitrary positions.
//
// Where each channel decays by itself (KDA, spec §17.3), b_i is a row: e^b and e^{b_C − b} are factors of the numbers of K and Q, which
// prepare leaves as rows of their own, and the scores come with T.
//
// Four kernels; a span is a run of chunks:
//  prepare: T of all chunks at once (gated_delta_rule_prepare.cu, gated_delta_rule_prepare_channels.cu)
//  carry:   each span but a segment's last: its state S_local from zero, and its transition M, the state from I with V = 0
//  combine: the state each span begins with, in order: S_{j+1} = M_j S_j + S_local,j
//  read:    o of each span from the state it begins with, and the last state
// Segments of one span need only prepare and read. Products take bf16 and sum in float32; decays and sums of products are float32.
#pragma once

#include <array>
#include <type_traits>

#include "kernels/cuda/common/chunk.h"
#include "kernels/cuda/common/recurrence.h"

namespace statescope::cuda::delta {

constexpr int lanes = 32;
constexpr int row_blocks = chunk_rows / 16;                      // of a chunk
constexpr int lower_blocks = row_blocks * (row_blocks + 1) / 2;  // of a lower triangular matrix [64, 64], those of row block i from …
__device__ constexpr int first_block(int i) { return i * (i + 1) / 2; }

/// Decays are those of a head; the same, and rows have factors f; those of a head's channels.
enum class Form { heads, factors, channels };

/// q, k or v as given, in float32 or bf16.
struct RawOperand {
  const void* data;
  std::int64_t stride, heads, width;
  bool by_fours;  // four numbers may be loaded at once
};

/// o [rows, H, V].
struct OutputRows {
  void* data;
  std::int64_t stride;
  bool bf16, by_twos;  // two bf16 numbers may be stored at once
};

/// What prepare computes for a head of a chunk.
struct alignas(16) Chunk {
  uint4 T[lower_blocks * lanes];                                     // B of Tᵀ: k runs along T's columns, n along its rows
  float b[chunk_rows], from_start[chunk_rows];                       // b, e^b
  float predict[chunk_rows], to_end[chunk_rows], write[chunk_rows];  // f^k e^b, f^k e^{b_C − b}, f^k
  float read[chunk_rows];                                            // scale f^q
  float total;                                                       // e^{b_C}
};

/// The same where channels decay by themselves.
template <int KP>
struct alignas(16) ChannelChunk {
  uint4 T[lower_blocks * lanes];
  float total[KP];                     // e^{b_C}
  uint4 scores[lower_blocks * lanes];  // tril(Q Kᵀ ⊙ Γ), B of its transpose
};
template <int KP, Form form>
using ChunkOf = std::conditional_t<form == Form::channels, ChannelChunk<KP>, Chunk>;

/// The same for wgmma, laid out as in shared memory.
struct alignas(1024) TileChunk {
  Tile T, scores;                                 // [i, j]; scale diag(f^q) tril(Q Kᵀ ⊙ Γ) diag(f^k)
  float predict[chunk_rows], to_end[chunk_rows];  // f^k e^b, f^k e^{b_C − b}
  float read[chunk_rows];                         // scale f^q e^b
  float total;                                    // e^{b_C}
};

/// Operands of which own rows and gathered ones have their own.
struct DeltaOperands {
  Bf16Rows q, k;
  F32Rows log_decay, beta;
  OutputRows o;  // of gathered ones [rows · choices, H, V]
};

/// The row that an item reads, and which of the row's choices it is.
struct ItemRow {
  std::int32_t row, choice;
};

struct Problem {
  RawOperand given_q, given_k, given_v;
  std::array<DeltaOperands, 2>
      operands;       // of own rows, of gathered ones; q and k as given or, if `copied`, rounded by prepare: rows 64 n … of chunk n
  Bf16Rows v;         // likewise, if `copied_v`
  Bf16Rows k_at_end;  // e^{b_C − b} k; where channels decay, q and k are e^b q and e^b k
  bool copied, copied_v;
  Rows<const float> initial;  // [slots, H, K, V]
  Rows<float> final;          // [slots, H, K, V]
  const SparseItem* items;    // null: nothing is gathered
  bool unit;                  // q and k are normalised to length 1; always where rows are gathered
  std::int64_t own_rows, own_segments, choices, writers, readers;
  bool gate_before_l2;
  std::int64_t H, K, V, value_blocks;
  float scale;
  DeviceSegments segments;
  std::int64_t span;        // rows
  std::int64_t first_span;  // of a launch
  int stages;               // of ChunkPipeline
  Chunk* chunks;            // [chunks, H], or ChannelChunk
  TileChunk* tiles;         // [chunks, H]; one of both is null
  float4* states;           // [spans, H, value_blocks, channel blocks, 2, lanes]: 16 columns of a state (Columns)
  uint4* transitions;       // [spans, H, channel blocks, channel blocks, lanes]: B of (M − diag(e^{Σ b_C}))ᵀ
  float* totals;            // [spans, H], where channels decay [spans, H, KP]: e^{Σ b_C}

  __device__ bool gathers(const Piece& piece) const { return items && piece.segment >= own_segments; }
};

void prepare(const Problem& p, bool bf16, std::int64_t chunks, cudaStream_t stream);
void prepare_channels(const Problem& p, bool bf16, std::int64_t chunks, cudaStream_t stream);

// hopper/gated_delta_rule.cu: carry and read of heads of 65 to 256 channels, bf16 in 16-byte vectors, on a device of compute capability
// 9.0; KP: 128 or 256
bool hopper_supported(const GatedDeltaRule& op);
/// Whether its read can apply this norm of heads of at most 512 columns, and silu of a gate, to o, and is faster so; `spans`: of all heads.
bool hopper_reads_out(const GatedDeltaRule& op, const InputNorm& readout, std::int64_t spans);
template <int KP>
void carry_hopper(const Problem& p, std::int64_t spans, cudaStream_t stream);
template <int KP>
void read_hopper(const Problem& p, std::int64_t spans, const InputNorm& readout, cudaStream_t stream);

template <int KP>
__device__ float4* state_of(const Problem& p, std::int64_t span, std::int64_t h, std::int64_t block) {
  return p.states + ((span * p.H + h) * p.value_blocks + block) * (KP / 8 * lanes);
}
template <int KP>
__device__ uint4* transition_of(const Problem& p, std::int64_t span, std::int64_t h) {
  return p.transitions + (span * p.H + h) * (KP / 16 * KP / 16 * lanes);
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// blocks of 16 × 16 numbers

__device__ inline int lane() { return static_cast<int>(threadIdx.x) % lanes; }
__device__ inline int warp() { return static_cast<int>(threadIdx.x) / lanes; }
/// The position of a lane's values in a fragment (chunk.h).
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
/// B of the transpose: A with its two middle registers exchanged.
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
  return ldmatrix(x + (row + lane() % 16) * stride + column + lane() / 16 * 8);
}
/// A of xᵀ.
__device__ inline uint4 a_block_transposed(const Bf16* x, int stride, int row, int column) {
  return ldmatrix_trans(x + (row + lane() / 16 * 8 + lane() % 8) * stride + column + lane() / 8 % 2 * 8);
}
/// B of xᵀ.
__device__ inline uint4 b_block_transposed(const Bf16* x, int stride, int row, int column) {
  return ldmatrix(x + (row + lane() / 16 * 8 + lane() % 8) * stride + column + lane() / 8 % 2 * 8);
}
/// B.
__device__ inline uint4 b_block(const Bf16* x, int stride, int row, int column) {
  return ldmatrix_trans(x + (row + lane() % 16) * stride + column + lane() / 16 * 8);
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// copies

/// Starts to copy the first `wanted` columns of n rows, row_of(0) … counted from `from`, to 64 rows in shared memory, by all threads of the
/// block; zeros for columns from `given` on and for the rows after the n-th. A row has room for 8 · pieces values; pieces: a power of two,
/// at most 32.
template <int pieces, int to_stride, class RowOf>
__device__ void copy_rows(Bf16* to, const Bf16* from, std::int64_t stride, int n, int wanted, std::int64_t given, const RowOf& row_of) {
  const int c = static_cast<int>(threadIdx.x) % pieces * 8, step = static_cast<int>(blockDim.x) / pieces;
  if (c >= wanted) return;
  const int rows = c < given ? n : 0;
  for (int r = static_cast<int>(threadIdx.x) / pieces; r < chunk_rows; r += step) {
    const Bf16* const row = r < rows ? from + row_of(r) * stride + c : from;
    __pipeline_memcpy_async(to + r * to_stride + c, row, sizeof(uint4), r < rows ? 0 : sizeof(uint4));
  }
}

}  // namespace statescope::cuda::delta

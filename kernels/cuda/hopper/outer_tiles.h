// The decayed outer product on a device of compute capability 9.0, 64 rows at a time. With A(s, t) the decay of the rows after s, up to t,
// of a chunk whose last row is e, a the row before its first one:
//
//  x_t = scale q_t A(a, t)      y_s = k_s A(s, e)      score(t, s) = scale Σ_channels q_t A(s, t) k_s where s ≤ t
//  o_t = x_t S + Σ_s score(t, s) v_s      S ← A(a, e) S + yᵀ v
//
// `prepare` computes x, y, the scores and A(a, e) of every chunk once for all columns of v (decayed_outer_product_prepare.cu).
// decayed_outer_product.cu goes through the chunks in order; long segments are cut into spans as in any/decayed_outer_product_chunks.cu.
// Gathered segments (sparse states) read rows at arbitrary positions, q and k times the factors of their items; their contributions to a
// row of o are summed by the segments that own the rows, which run later. A value that is not finite reaches earlier rows of its chunk, but
// no other segment.
#pragma once

#include <array>

#include "kernels/cuda/common/recurrence.h"
#include "kernels/cuda/hopper/hopper.h"

namespace statescope::cuda::outer_tiles {

// `channels`: of k, padded to 128 or 256.

/// What prepare computes for a head of a chunk, laid out as in shared memory. Rows after the last one of the chunk are 0.
template <int channels>
struct alignas(1024) Chunk {
  static constexpr int blocks = channels / swizzle_columns;  // of columns
  Tile y[blocks];
  float decay[channels];           // A(a, e)
  std::int32_t o_row[chunk_rows];  // of a gathered row: the row of o that it adds to; −1: it does not read
  alignas(1024) Tile x[blocks];
  Tile scores;  // [t, s]
};

constexpr int gate_features = 16;
/// Decays that prepare computes itself: max(logσ(weight_c · features_t + bias_c) · scale, clamp_min) of channel c of row t.
struct Gate {
  Rows<const float> features;  // [rows, 16]; absent: decays are there
  const Bf16* weight;          // [≤H · K, 16]
  const float* bias;           // [≤H · K] or null
  float scale, clamp_min;
  Rows<float> log_decay;  // memory for the decays of strongly decayed chunks
};

/// Operands that differ between segments that own their rows and gathered ones.
struct OuterTileOperands {
  Bf16Rows q, k;
  F32Rows log_decay;  // of a gate: its memory
  Gate gate;
  Bf16* o;  // [rows, H, V], or of gathered ones [rows · choices, H, V]
  std::int64_t o_stride;
};

template <int channels>
struct Problem {
  std::array<OuterTileOperands, 2> operands;  // of own rows, of gathered ones
  Bf16Rows v;
  Rows<const float> initial;  // [slots, H, K, V]
  Rows<float> final;          // [slots, H, K, V]
  int H, K, V;
  float scale;
  DeviceSegments segments;
  const SparseItem* items;           // null: nothing is gathered
  const std::int32_t* while_sorted;  // as in GatheredSegments
  int own_rows, own_segments, choices, writers, readers;
  std::int64_t span;        // rows
  Chunk<channels>* chunks;  // [chunks, H]
  float* states;            // as in Spans
  float* decays;

  __host__ __device__ int decay_width() const { return max(static_cast<int>(operands[0].log_decay.width), 1); }
  /// The item of row i of a gathered piece.
  __device__ const SparseItem& item(const Piece& piece, int i) const { return items[piece.first_row - own_rows + i]; }
};

/// `queries`, `keys`: boxes of 64 of the own rows. For 128 and 256 channels; with 128 alone rows may be gathered.
template <int channels>
void prepare(const Problem<channels>& p, std::int64_t chunks, const CUtensorMap& queries, const CUtensorMap& keys, cudaStream_t stream);

}  // namespace statescope::cuda::outer_tiles

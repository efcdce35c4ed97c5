// What the chunk forms of the matrix memories share: bf16 fragments of the tensor cores, segments cut into pieces, gathered rows. Fragments
// lie as the PTX manual says for mma.m16n8k16; with g = lane / 4 and t = 2 (lane % 4) a lane holds
//  of A [16, 16]: (g, t), (g + 8, t), (g, t + 8), (g + 8, t + 8), two values each, the second one column further on
//  of B [16, 8]:  (t, g), (t + 8, g), two values each, the second one row further on
//  of C [16, 8]:  (g, t), (g, t + 1), (g + 8, t), (g + 8, t + 1)
// So two tiles of C side by side are an A, and the halves of a 16-row C, rows read as columns, are two Bs.
#pragma once

#include <cuda_bf16.h>
#include <cuda_pipeline.h>

#include "kernels/cuda/common/numbers.h"
#include "kernels/cuda/common/operations.h"

namespace statescope::cuda {

// ---------------------------------------------------------------------------------------------------------------------------------------
// fragments

using Bf16 = __nv_bfloat16;

/// Two numbers as bf16, the first in the lower half.
__device__ inline unsigned packed(float first, float second) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
  return *reinterpret_cast<const unsigned*>(&pair);
}

/// What `packed` lost of two numbers, as bf16.
__device__ inline unsigned packed_rest(float first, float second, unsigned pair) {
  return packed(first - first_of(pair), second - second_of(pair));
}

/// C ← C + A B
__device__ inline void multiply(float (&c)[4], const uint4& a, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

/// Four 8 × 8 matrices of 16-bit numbers in shared memory: lane l names row l % 8 (16 bytes, aligned) of matrix l / 8. Of each a lane gets
/// (g, t) and (g, t + 1).
__device__ inline uint4 ldmatrix(const void* row) {
  uint4 x;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
  return x;
}
/// The same of the transposed matrices: (t, g) and (t + 1, g) of what lies in memory.
__device__ inline uint4 ldmatrix_trans(const void* row) {
  uint4 x;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
  return x;
}
/// An 8 × 8 matrix that the lanes hold as load_matrices gives it, transposed.
__device__ inline unsigned transposed(unsigned matrix_descriptor) {
  unsigned result;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(matrix_descriptor));
  return result;
}

/// Two float32 values, each split into three bf16 terms whose sum it is (bf16x3).
struct Bf16x3 {
  unsigned terms[3];  // each of both values
  __device__ explicit Bf16x3(float2 x) {
#pragma unroll
    for (unsigned& term : terms) {
      term = packed(x.x, x.y);
      x = {x.x - first_of(term), x.y - second_of(term)};
    }
  }
};

/// A of two tiles of C side by side.
__device__ inline uint4 pack_a(const float (&first)[4], const float (&second)[4]) {
  return {packed(first[0], first[1]), packed(first[2], first[3]), packed(second[0], second[1]), packed(second[2], second[3])};
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// rows

constexpr int chunk_rows = 64;

constexpr int swizzle_columns = 64;  // columns of a tile in shared memory: rows of 128 bytes with the 128-byte swizzle of TMA and wgmma
/// 64 rows of 64 columns as wgmma reads them.
using Tile = Bf16[chunk_rows][swizzle_columns];

/// The index of value (row, column) in a swizzled tile: the 16-byte vectors of a row are permuted by the row's number. (Unsigned, so that
/// the compiler sees that the indices of rows eight apart differ by a constant.)
__device__ inline int swizzle(unsigned row, unsigned column) {
  return static_cast<int>(row * swizzle_columns + ((column / 8) ^ (row % 8)) * 8 + column % 8);
}
__device__ inline Bf16* swizzle(Tile* tiles, int row, int column) {
  return &tiles[column / swizzle_columns][0][0] + swizzle(row, column % swizzle_columns);
}

/// bf16 rows of `heads` heads.
struct Bf16Rows {
  Bf16* data;
  std::int64_t stride, heads, width;
  __device__ Bf16* at(std::int64_t row, std::int64_t h, std::int64_t H) const {
    return data + row * stride + producer_head(h, heads, H) * width;
  }
};

/// Segments that come after those of an operation's own rows and whose items read rows at arbitrary positions: sparse states
/// (sparse_state.h). Their contributions to o are summed, in the order of the choices, where the own segments write o.
struct GatheredSegments {
  ConstTensor q, k, log_decay, beta;  // read by the items; v is that of the operation
  Tensor o;                           // of the type of o: scratch
  const Projection* gate =
      nullptr;  // what log_decay is computed from where it is not there yet; then that of the operation itself is not there either
  const SparseItem* items = nullptr;  // on the device; null: there are none
  std::int64_t count = 0, first_segment = 0;
  std::int64_t choices = 1, writers = 1, readers = 1;  // the first choices of a row write, its first ones read
  bool gate_before_l2 = false;                         // of the gated delta rule, which takes q and k of all rows as of length 1
  // cu_seqlens of the own rows, where the launch before this operation sorts the items and lets this one start early
  const std::int32_t* while_sorted = nullptr;
};

/// Segments are cut into pieces (chunks or spans) of `length` rows, the last one shorter; a segment without rows has none. Pieces have
/// numbers below most_pieces, in the order of their rows; some numbers stay unused, so that the first number of a segment needs no sum over
/// those before it.
struct Piece {
  std::int64_t segment, index, count;  // among the pieces of the segment
  std::int64_t first_number;           // of the first piece of the segment
  std::int64_t first_row, rows;
};

__host__ __device__ inline std::int64_t most_pieces(std::int64_t rows, std::int64_t segments, std::int64_t length) {
  return rows / length + segments;
}

__device__ inline std::int64_t first_piece(const DeviceSegments& segments, std::int64_t s, std::int64_t length) {
  return most_pieces(segments.cu_seqlens[s], s, length);
}

/// The piece with this number; `index` is not below `count` if the number is unused. The number of a segment without rows has index 0.
__device__ inline Piece piece_of(const DeviceSegments& segments, std::int64_t number, std::int64_t length) {
  std::int64_t low = 0, high = segments.count;
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (first_piece(segments, middle, length) <= number ? low : high) = middle;
  }
  const std::int64_t begin = segments.cu_seqlens[low], end = segments.cu_seqlens[low + 1];
  const std::int64_t first = most_pieces(begin, low, length), index = number - first;
  const std::int64_t first_row = begin + index * length;
  return {low, index, (end - begin + length - 1) / length, first, first_row, max(std::int64_t{0}, min(length, end - first_row))};
}

/// The states of spans (long pieces of segments), which the kernel of a span leaves and reads here.
struct Spans {
  DeviceSegments segments;
  Rows<const float> initial;  // [slots, H, K, V]
  int H, K, V, decay_width;   // K or 1
  std::int64_t length;        // rows
  float* states;              // [spans, H, K, V]: what a span adds to a state of 0, then the state it begins with
  const float* decays;        // [spans, H, decay_width]
};
/// decayed_outer_product_chunks.cu: S ← A S + what the span adds, span after span.
void combine_spans(const Spans& spans, cudaStream_t stream);

// ---------------------------------------------------------------------------------------------------------------------------------------
// devices

/// Whether wgmma and TMA can be used (hopper.h).
bool has_warpgroup_products();

// ---------------------------------------------------------------------------------------------------------------------------------------
// the operations: bf16 products, everything else float32

/// Blocks that a launch should have: the multiprocessors of the largest devices. A constant, so that results do not depend on the device.
constexpr std::int64_t wanted_blocks = 132;

// decayed_outer_product_chunks.cu: q, k, v and o of one type, float32 or bf16; at most so many channels of k
constexpr std::int64_t most_channels_in_chunks = 128;
bool decayed_outer_product_chunks_supported(const DecayedOuterProduct& op);
/// Scratch that a call needs, in bytes; for segments of at most `longest` rows.
std::size_t decayed_outer_product_chunks_scratch(const DecayedOuterProduct& op, std::int64_t segments, std::int64_t longest,
                                                 const GatheredSegments& gathered = {});
/// `scratch` on the device, 16-byte aligned. A `longest` larger than needed costs time, not correctness.
void decayed_outer_product_chunks(const DecayedOuterProduct& op, const DeviceSegments& segments, void* scratch, cudaStream_t stream,
                                  const GatheredSegments& gathered = {});

// hopper/decayed_outer_product.cu: q, k, v and o of bf16, with rows and heads of 16-byte vectors; more than 64 channels of k, at most 256,
// or 128 where rows are gathered
bool decayed_outer_product_hopper_supported(const DecayedOuterProduct& op, const GatheredSegments& gathered = {});
/// Whether it computes decays [rows, ≤H, K] itself from this forget gate: of 16 float32 features with bf16 weights.
bool decayed_outer_product_hopper_makes(const Projection& gate, ConstTensor log_decay);
/// Scratch that a call needs, in bytes.
std::size_t decayed_outer_product_hopper_scratch(const DecayedOuterProduct& op, const DeviceSegments& segments,
                                                 const GatheredSegments& gathered = {});
/// `scratch` on the device, 16-byte aligned; `gate`: what op.log_decay is computed from where it is not there yet.
void decayed_outer_product_hopper(const DecayedOuterProduct& op, const DeviceSegments& segments, void* scratch, cudaStream_t stream,
                                  const GatheredSegments& gathered = {}, const Projection* gate = nullptr);

// gated_delta_rule_chunks.cu: q, k and v of one type, float32 or bf16, o of either; at most 256 channels of k, which decay together or each
// by itself
bool gated_delta_rule_chunks_supported(const GatedDeltaRule& op);
/// Whether rows of x are bf16 in 16-byte vectors, as gathered segments require.
bool gated_delta_rule_gathers(ConstTensor x);
/// Whether it can normalise q and k to length 1 itself; not where channels decay each by itself.
bool gated_delta_rule_normalises(const GatedDeltaRule& op);
/// Whether it can, and can also apply this norm and gate to o, and that is faster; for segments of at most `longest` rows.
bool gated_delta_rule_reads_out(const GatedDeltaRule& op, const InputNorm& readout, std::int64_t longest);
/// Scratch that a call needs, in bytes; for segments of at most `longest` rows.
std::size_t gated_delta_rule_chunks_scratch(const GatedDeltaRule& op, std::int64_t segments, std::int64_t longest,
                                            const GatheredSegments& gathered = {});
/// `scratch` on the device, 16-byte aligned; `unit`: of L2(q) and L2(k) (elementwise.h); `readout`: the norm and gate that o passes.
void gated_delta_rule_chunks(const GatedDeltaRule& op, const DeviceSegments& segments, void* scratch, cudaStream_t stream,
                             const GatheredSegments& gathered = {}, bool unit = false, const InputNorm& readout = {});

}  // namespace statescope::cuda

// The decayed outer product 32 rows at a time, on tensor cores. With A(s, t) the decay of the rows after s, up to t, and a row r in the
// middle of a chunk, operands and state are decayed to r:
//
//  x_t = q_t A(r, t)      y_s = k_s A(s, r)      R = A(start, r) S       where A(t, r) = 1 / A(r, t)
//  o_t = scale (x_t R + Σ_{s ≤ t} (x_t · y_s) v_s)      S ← A(r, end) (R + yᵀ v)
//
// One of A(r, t) and 1 / A(r, t) grows with the distance from r, and what it is multiplied with shrinks: nothing is lost as long as neither
// leaves the range of floating point. A chunk whose decays are too strong for that is halved until its pieces are not; a piece of one row
// has r for all its rows and allows decays of any strength, −∞ too.
//
// Long segments are cut into spans: first the spans' own states, then a recurrence over spans that gives each its initial state, then the
// outputs. Gathered segments (sparse states) read rows at arbitrary positions; their contributions to a row of o are summed by the segments
// that own the rows, which run later.
#pragma once

#include <array>

#include "kernels/cuda/common/chunk.h"
#include "kernels/cuda/common/decays.h"

namespace statescope::cuda::outer {

constexpr int chunk = 32, warps = 8, threads = 32 * warps;
constexpr int columns = 16 * warps;  // of a block; a warp has 16 of them
constexpr int rows_of_thread = 8;    // that a thread decays, in two channels

enum class Decay { per_head, per_channel };  // an absent decay is one of 0 per head
enum class Pass { states, outputs };

/// Of an operand [rows, heads, width], or of one head of it.
template <class Number>
struct ChunkOperand {
  const Number* data = nullptr;
  int stride = 0, heads = 1, width = 0;  // an absent one has no width
  __device__ ChunkOperand of_head(int h, int H) const { return {data + producer_head(h, heads, H) * width, stride, 1, width}; }
  __device__ const Number* row(int t) const { return data + std::int64_t{t} * stride; }
};

/// Operands that differ between segments that own their rows and gathered ones.
template <class Number>
struct OuterOperands {
  ChunkOperand<Number> q, k;
  ChunkOperand<float> log_decay;
  Number* o = nullptr;  // [rows, H, V], or of gathered ones [rows · choices, H, V]
  int o_stride = 0;
};

template <class Number>
struct Problem {
  std::array<OuterOperands<Number>, 2> operands;  // of own rows, of gathered ones
  ChunkOperand<Number> v;
  Rows<const float> initial;  // [slots, H, K, V]
  Rows<float> final;          // [slots, H, K, V]
  int H, K, V;
  float scale;
  DeviceSegments segments;
  const SparseItem* items;  // null: nothing is gathered
  int own_rows, own_segments, choices, writers, readers;
  bool vectors;       // every row of an operand consists of aligned 16 bytes
  std::int64_t span;  // rows
  float* states;      // [spans, H, K, V]: what a span adds to a state of 0, then the state it begins with
  float* decays;      // [spans, H, decay_width()]

  __host__ __device__ int tiles() const { return (V + columns - 1) / columns; }
  __host__ __device__ int decay_width() const { return max(operands[0].log_decay.width, 1); }
};

/// A row of a chunk: its position in the operands and in o (−1: it does not read), and the factors of q and k.
struct alignas(16) ChunkRow {
  int row, o_row;
  float read, write;
};

/// A block's shared memory. Operands as loaded, in rows of K or `columns`; as bf16 swizzled.
template <class Number, Decay decay, Pass pass, int K>
struct Shared {
  static constexpr int of_outputs = pass == Pass::outputs ? 1 : 0, of_channels = decay == Decay::per_channel ? 1 : 0;
  static constexpr int of_rounded = std::is_same_v<Number, Bf16> ? 0 : 1;  // v has to be rounded to bf16
  static constexpr int scores_pitch = chunk + 8;                           // so that eight rows of 16 bytes lie in different banks
  static constexpr int some(int wanted) { return wanted > 0 ? wanted : 8; }

  alignas(16) Number q[some(of_outputs * chunk * K)];
  alignas(16) Number k[chunk * K];
  alignas(16) Number v[2 - of_rounded][chunk * columns];
  alignas(16) float log_decay[chunk * (of_channels > 0 ? K : 1)];
  alignas(16) Bf16 rounded_v[some(of_rounded * chunk * columns)];
  alignas(16) Bf16 x[some(of_outputs * chunk * K)], y[chunk * K];
  alignas(16) Bf16 scores[some(of_outputs * chunk * scores_pitch)];  // x_t · y_s where s ≤ t
  SparseItem items[chunk];                                           // of the chunk after the next one
  ChunkRow rows[2][chunk];                                           // of this chunk and the next one
  unsigned wanted[2], writes[2];                                     // a bit for a row that exists, for one that decays and is written
  alignas(16) float until_middle[K];                                 // from the middle of the piece before to the middle of this one
  alignas(16) float since_middle[2][K];                              // from the middle of a piece to its end
};

// ---------------------------------------------------------------------------------------------------------------------------------------
// fetching

/// The thread and its lane, read from the special register at each use: kept in a register through the loop they would cost more.
__device__ inline int thread_now() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}
__device__ inline int lane_now() { return thread_now() % 32; }

/// The index of value (row, column) in swizzled rows of `width`: units of 16 bytes are permuted, so that eight rows of a column of units
/// hit different banks.
template <int width>
__device__ int swizzle(int row, int column) {
  return row * width + ((column / 8) ^ (row % 8)) * 8 + column % 8;
}

__device__ inline float as_float(float x) { return x; }
__device__ inline float as_float(Bf16 x) { return __bfloat162float(x); }

/// Starts to load the values from `column` on, for a chunk of `width`, of the rows that have a bit in `wanted`, to to(t, c); 0 beyond them.
template <int width, class Number, class To>
__device__ void fetch(const ChunkOperand<Number>& x, const ChunkRow* rows, unsigned wanted, int column, bool vectors, To to) {
  constexpr int of_unit = 16 / sizeof(Number), of_row = width / of_unit;
  if (vectors) {
    const int c = thread_now() % of_row * of_unit, first = thread_now() / of_row;
#pragma unroll
    for (int i = 0; i < chunk * of_row / threads; ++i) {
      const int t = first + i * (threads / of_row);
      const bool given = wanted >> t & 1 && column + c < x.width;
      __pipeline_memcpy_async(to(t, c), x.row(rows[t].row) + (given ? column + c : 0), 16, given ? 0 : 16);
    }
  } else {
#pragma unroll 1
    for (int i = thread_now(); i < chunk * width; i += threads) {
      const int t = i / width, c = i % width;
      *to(t, c) = wanted >> t & 1 && column + c < x.width ? x.row(rows[t].row)[column + c] : Number(0.F);
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// decays

__device__ inline float2& two(float* x) { return *reinterpret_cast<float2*>(x); }
__device__ inline float2 two_of(const float* x) { return *reinterpret_cast<const float2*>(x); }
__device__ inline float2 two_of(const Bf16* x) {
  const unsigned pair = *reinterpret_cast<const unsigned*>(x);
  return {first_of(pair), second_of(pair)};
}
__device__ inline void put_two(Bf16* to, float2 x) { *reinterpret_cast<unsigned*>(to) = packed(x.x, x.y); }

/// x and y of a piece [begin, end) of a chunk, 0 in its other rows, and the decays from middle to middle and to the end; `iteration` counts
/// pieces. False if the decays are too strong for a piece of this size. `whole`: the piece is the chunk.
template <Decay decay, Pass pass, int K, bool whole, class Memory>
__device__ bool decay_piece(Memory& shared, const ChunkRow* rows, int begin, int end, int iteration) {
  if (whole) begin = 0, end = chunk;
  const int channel = thread_now() % (K / 2) * 2, part = thread_now() / (K / 2) * rows_of_thread, middle = (begin + end) / 2;
  if (part >= chunk) return true;
  const auto log2_decay = [&](int t) {
    const float* const x = shared.log_decay + t * (decay == Decay::per_channel ? K : 1);
    return log2_e * (decay == Decay::per_channel ? two_of(x + channel) : float2{*x, *x});
  };
  // e = log2 A(middle, t), from the thread's first row in the piece to its last one
  const int first = max(part, begin);
  float2 e{0, 0};
  for (int t = min(first, middle) + 1; t <= max(first, middle); ++t) e = e + log2_decay(t);
  if (first < middle) e = -e;
  const float2 e_first = e;
#pragma unroll
  for (int i = 0; i < rows_of_thread; ++i) {
    const int t = part + i, at = (swizzle<K>(part, channel) ^ (8 * i)) + i * K;
    const bool inside = whole || (t >= begin && t < end);
    const ChunkRow row = rows[t];
    if (whole ? i > 0 : inside && t > first) e = e + log2_decay(t);
    // x_t = q_t A(r, t), y_t = k_t A(t, r)
    if constexpr (pass == Pass::outputs) {
      const float2 x = row.read * (two_of(shared.q + t * K + channel) * exp2_of(e));
      put_two(shared.x + at, inside ? x : float2{0, 0});
    }
    const float2 y = row.write * (two_of(shared.k + t * K + channel) * exp2_of(-e));
    put_two(shared.y + at, inside ? y : float2{0, 0});
  }
  bool fits = true;
  if (first == begin && begin < part + rows_of_thread) {
    two(shared.until_middle + channel) = two_of(shared.since_middle[1 - iteration % 2] + channel) * exp2_of(log2_decay(begin) + -e_first);
    fits = e_first.x <= most_log2_decay && e_first.y <= most_log2_decay;
  }
  if (end > part && end <= part + rows_of_thread) {
    two(shared.since_middle[iteration % 2] + channel) = exp2_of(e);
    fits = fits && e.x >= -most_log2_decay && e.y >= -most_log2_decay;
  }
  return fits;
}

/// v rounded to bf16, swizzled.
__device__ inline void round_values(Bf16* to, const float* v) {
#pragma unroll
  for (int i = 0; i < chunk * columns / 8 / threads; ++i) {
    const int unit = i * threads + thread_now(), row = unit / (columns / 8), c = unit % (columns / 8) * 8;
    const float4* from = reinterpret_cast<const float4*>(v + row * columns + c);
    const float4 a = from[0], b = from[1];
    *reinterpret_cast<uint4*>(to + swizzle<columns>(row, c)) = {packed(a.x, a.y), packed(a.z, a.w), packed(b.x, b.y), packed(b.z, b.w)};
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// products

/// The address that lane l passes to ldmatrix: row l % 16, and the second eight values from lane 16 on. Of a tile [16, 16] that gives an A
/// with y and z as they are; transposed, an A with y and z exchanged, or the Bs (x, y) and (z, w). `row` and `column` are multiples of 16,
/// so swizzling is an XOR with `column`.
template <int width>
__device__ const Bf16* lane_swizzle(const Bf16* rows, int row, int column) {
  const int lane = lane_now();
  return rows + row * width + (swizzle<width>(lane % 16, lane / 16 * 8) ^ column);
}

/// scores(t, s) = x_t · y_s where s ≤ t, else 0: a tile [16, 8] by each of the first six warps, none where s > t all through.
template <int K, class Memory>
__device__ void multiply_rows(Memory& shared, int warp) {
  const int lane = lane_now(), row = warp < 2 ? 0 : 16, column = (warp < 2 ? warp : warp - 2) * 8;
  const Bf16* const y = shared.y + swizzle<K>(column + lane % 8, lane / 8 * 8);
  float c[2][4] = {};
#pragma unroll
  for (int key = 0; key < K; key += 32) {
    const uint4 b = ldmatrix(shared.y + ((y - shared.y) ^ key));
    multiply(c[0], ldmatrix(lane_swizzle<K>(shared.x, row, key)), b.x, b.y);
    multiply(c[1], ldmatrix(lane_swizzle<K>(shared.x, row, key + 16)), b.z, b.w);
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int t = row + lane / 4 + 8 * i, s = column + lane % 4 * 2;
    const float left = c[0][2 * i] + c[1][2 * i], right = c[0][2 * i + 1] + c[1][2 * i + 1];
    *reinterpret_cast<unsigned*>(shared.scores + t * Memory::scores_pitch + s) = packed(s <= t ? left : 0, s < t ? right : 0);
  }
}

/// A warp's 16 columns of the state as Sᵀ [16, K] in tiles of C, and of 32 rows of o in tiles [16, 8] of C.
template <int K>
using StateTiles = float[K / 8][4];
using OutputTiles = float[chunk / 16][2][4];

/// o += x S; tiles of Sᵀ read as columns are the Bs of S.
template <int K>
__device__ void read_state(OutputTiles& o, const StateTiles<K>& S, const Bf16* x) {
#pragma unroll
  for (int key = 0; key < K; key += 16) {
    const float(&upper)[4] = S[key / 8], (&lower)[4] = S[key / 8 + 1];
    const unsigned b[4] = {packed(upper[0], upper[1]), packed(lower[0], lower[1]), packed(upper[2], upper[3]), packed(lower[2], lower[3])};
#pragma unroll
    for (int t = 0; t < chunk / 16; ++t) {
      const uint4 a = ldmatrix(lane_swizzle<K>(x, 16 * t, key));
      multiply(o[t][0], a, b[0], b[1]);
      multiply(o[t][1], a, b[2], b[3]);
    }
  }
}

/// Sᵀ [16 columns, K] += vᵀ y
template <int K>
__device__ void write_state(StateTiles<K>& S, const uint4 (&v)[chunk / 16], const Bf16* y) {
#pragma unroll
  for (int key = 0; key < K; key += 16) {
#pragma unroll
    for (int s = 0; s < chunk / 16; ++s) {
      const uint4 b = ldmatrix_trans(lane_swizzle<K>(y, 16 * s, key));
      multiply(S[key / 8], v[s], b.x, b.y);
      multiply(S[key / 8 + 1], v[s], b.z, b.w);
    }
  }
}

/// o += scores v; an A of vᵀ holds the Bs of v.
template <class Memory>
__device__ void read_chunk(OutputTiles& o, const uint4 (&v)[chunk / 16], const Memory& shared) {
  const int lane = lane_now();
#pragma unroll
  for (int t = 0; t < chunk / 16; ++t) {
#pragma unroll
    for (int s = 0; s <= t; ++s) {
      const uint4 a = ldmatrix(shared.scores + (16 * t + lane % 16) * Memory::scores_pitch + 16 * s + lane / 16 * 8);
      multiply(o[t][0], a, v[s].x, v[s].z);
      multiply(o[t][1], a, v[s].y, v[s].w);
    }
  }
}

/// Rows of the state, each times its factor.
template <int K>
__device__ void scale_state(StateTiles<K>& S, const float* factor) {
#pragma unroll
  for (int i = 0; i < K / 8; ++i) {
    const float2 f = two_of(factor + i * 8 + lane_now() % 4 * 2);
    S[i][0] *= f.x, S[i][1] *= f.y, S[i][2] *= f.x, S[i][3] *= f.y;
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// states and outputs in memory

/// fn(number of S, its place in a state [of_K, of_V]) for those of the lane's numbers that the state has; `column` the warp's first.
template <int K, class Fn>
__device__ void each_of_state(StateTiles<K>& S, int of_K, int of_V, int column, Fn fn) {
  const int lane = lane_now();
#pragma unroll
  for (int i = 0; i < K / 8 * 4; ++i) {
    const int key = i / 4 * 8 + lane % 4 * 2 + i % 2, c = column + lane / 4 + i % 4 / 2 * 8;
    if (key < of_K && c < of_V) fn(S[i / 4][i % 4], key * of_V + c);
  }
}

/// Two numbers of which the first `given` are there, else 0.
template <class Number>
__device__ float2 first_of_two(const Number* x, int given) {
  if (given >= 2 && reinterpret_cast<std::uintptr_t>(x) % (2 * sizeof(Number)) == 0) return two_of(x);
  return {given >= 1 ? as_float(x[0]) : 0, given >= 2 ? as_float(x[1]) : 0};
}

/// o ← the sum of the contributions of gathered items to n rows from `first` on, 0 without any. `column`: the first of the warp.
template <class Number>
__device__ void gathered_outputs(OutputTiles& o, const Problem<Number>& p, int first, int n, int h, int column) {
  const int lane = lane_now();
#pragma unroll
  for (int i = 0; i < chunk / 16 * 8; ++i) o[i / 8][i / 4 % 2][i % 4] = 0;
  if (!p.items) return;
  const OuterOperands<Number>& operands = p.operands[1];
#pragma unroll 1
  for (int choice = 0; choice < p.readers; ++choice) {
    float2 added[chunk / 16 * 4];
#pragma unroll
    for (int i = 0; i < chunk / 16 * 4; ++i) {
      const int t = lane / 4 + 8 * (i / 2), c = column + i % 2 * 8 + lane % 4 * 2;
      const Number* const from = operands.o + (std::int64_t{first + t} * p.choices + choice) * operands.o_stride + h * p.V + c;
      added[i] = first_of_two(from, t < n ? p.V - c : 0);
    }
#pragma unroll
    for (int i = 0; i < chunk / 16 * 4; ++i) {
      float(&pair)[4] = o[i / 4][i % 2];
      pair[i / 2 % 2 * 2] += added[i].x, pair[i / 2 % 2 * 2 + 1] += added[i].y;
    }
  }
}

__device__ inline void put(float* to, float x) { *to = x; }
__device__ inline void put(Bf16* to, float x) { *to = __float2bfloat16(x); }
__device__ inline void put_four(float* to, const float (&x)[4]) { *reinterpret_cast<float4*>(to) = {x[0], x[1], x[2], x[3]}; }
__device__ inline void put_four(Bf16* to, const float (&x)[4]) { *reinterpret_cast<uint2*>(to) = {packed(x[0], x[1]), packed(x[2], x[3])}; }

/// Rows [begin, end) of a chunk's o; `column` the warp's first.
template <class Number>
__device__ void store_outputs(const Problem<Number>& p, const OuterOperands<Number>& operands, const OutputTiles& o, const ChunkRow* rows,
                              int begin, int end, int h, int column) {
  const int lane = lane_now();
  const bool odd = lane % 2 == 1;
#pragma unroll
  for (int i = 0; i < chunk / 8; ++i) {
    const float2 left{o[i / 2][0][i % 2 * 2], o[i / 2][0][i % 2 * 2 + 1]}, right{o[i / 2][1][i % 2 * 2], o[i / 2][1][i % 2 * 2 + 1]};
    // Adjacent lanes exchange pairs, so that each has four adjacent columns.
    const float2 given = odd ? left : right, kept = odd ? right : left;
    const float2 got{__shfl_xor_sync(~0U, given.x, 1), __shfl_xor_sync(~0U, given.y, 1)};
    const float four[4] = {odd ? got.x : kept.x, odd ? got.y : kept.y, odd ? kept.x : got.x, odd ? kept.y : got.y};
    const int t = lane / 4 + 8 * i, o_row = rows[t].o_row, c = column + (odd ? 8 : 0) + lane % 4 / 2 * 4;
    if (t < begin || t >= end || o_row < 0) continue;
    Number* const to = operands.o + std::int64_t{o_row} * operands.o_stride + h * p.V + c;
    if (p.vectors && c < p.V) {
      put_four(to, four);
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (c + j < p.V) put(to + j, four[j]);
      }
    }
  }
}

}  // namespace statescope::cuda::outer

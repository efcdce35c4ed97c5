// The decayed outer product 32 rows at a time, on tensor cores. A(s, t) is the decay of a chunk's rows after s, up to t (end: its last
// one):
//
//   q̃_t = q_t A(0, t)      k̃_t = k_t A(t, end)      P_ts = Σ_c q_tc A_c(s, t) k_sc   (s ≤ t)
//   o = scale (q̃ S + P v)      S ← A(0, end) S + k̃ᵀ v
//
// Per head, P is q kᵀ times the exponential of a difference of summed logs. Per channel it is a sum over levels: where t and s differ first
// in bit l, a boundary r of that level lies between them, and P_ts = x_t · x_s with x_t = q_t A(r, t), x_s = k_s A(s, r). There decays are
// multiplied up from row to row and never divided, so that any strength is exact, −∞ too. No exponent is positive.
//
// Long segments are cut into spans: the spans' own states, a recurrence over spans that gives each its initial state, then the outputs.
#include <algorithm>

#include "kernels/cuda_chunk.h"

namespace statescope::cuda {
namespace {

constexpr int chunk = 32, warps = 8, threads = 32 * warps;
constexpr int columns = 16 * warps;  // of a block; a warp has 16 of them
constexpr int levels = 5;            // 2^levels rows a chunk
constexpr int of_group = 4, levels_of_group = 2, groups = chunk / of_group;

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

template <class Number>
struct Problem {
  ChunkOperand<Number> q, k, v;
  ChunkOperand<float> log_decay;
  Rows<const float> initial;  // [slots, H, K, V]
  Rows<float> final;          // [slots, H, K, V]
  Number* o;                  // [rows, H, V]
  int o_stride, H, K, V;
  float scale;
  DeviceSegments segments;
  Gather gather;
  bool vectors;       // every row of an operand consists of aligned 16 bytes
  std::int64_t span;  // rows
  float* states;      // [spans, H, K, V]: what a span adds to a state of 0, then the state it begins with
  float* decays;      // [spans, H, log_decay.width or 1]

  __device__ int row(int item) const { return gather.row_of ? gather.row_of[item] : item; }
  __host__ __device__ int tiles() const { return (V + columns - 1) / columns; }
  __host__ __device__ std::int64_t spans() const { return most_pieces(gather.items, segments.count, span); }
};

/// A block's shared memory. Rows of K or `columns` bf16 numbers, placed by `place`.
template <Decay decay, Pass pass, int K>
struct Shared {
  static constexpr int of_channels = decay == Decay::per_channel ? 1 : 0, of_outputs = pass == Pass::outputs ? 1 : 0;
  static constexpr int scores_pitch = chunk + 8;  // so that eight rows of 16 bytes lie in different banks
  static constexpr int some(int wanted) { return wanted > 0 ? wanted : 8; }

  alignas(16) Bf16 k[2][chunk * K];
  alignas(16) Bf16 v[2][chunk * columns];
  alignas(16) Bf16 q[2][some(of_outputs * chunk * K)];
  alignas(16) Bf16 x[levels][some(of_outputs * of_channels * chunk * K)];
  alignas(16) Bf16 scores[some(of_outputs * chunk * scores_pitch)];  // P
  alignas(16) float log_decay[some(of_channels * chunk * K)];
  alignas(16) float of_groups[groups][some(of_channels * K)];  // the decay of a group of rows
  alignas(16) float of_chunk[some(of_channels * K)];           // of all
};

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels: fetching

/// The thread, and its lane, asked for anew where they are used: what follows from them is not worth a register all through a loop.
__device__ int thread_now() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}
__device__ int lane_now() { return thread_now() % 32; }

/// Where number (row, column) lies among rows of `width`: units of 16 bytes change places, so that eight rows of a column of units lie in
/// different banks.
template <int width>
__device__ int place(int row, int column) {
  return row * width + ((column / 8) ^ (row % 8)) * 8 + column % 8;
}

__device__ void fetch_eight(uint4* to, const Bf16* from) { __pipeline_memcpy_async(to, from, sizeof(uint4)); }
__device__ void fetch_eight(uint4* to, const float* from) {
  const float4 a = __ldg(reinterpret_cast<const float4*>(from)), b = __ldg(reinterpret_cast<const float4*>(from) + 1);
  *to = {packed(a.x, a.y), packed(a.z, a.w), packed(b.x, b.y), packed(b.z, b.w)};
}

__device__ float as_float(float x) { return x; }
__device__ float as_float(Bf16 x) { return __bfloat162float(x); }

/// The first `given` of eight numbers, 0 behind them.
template <class Number>
__device__ void fetch_some(Bf16* to, const Number* from, int given) {
#pragma unroll 1
  for (int i = 0; i < 8; ++i) to[i] = __float2bfloat16(i < given ? as_float(from[i]) : 0);
}

/// to [chunk, width] ← of n items from `first` on the numbers from `column` on; 0 beyond them. May still be on its way.
template <int width, class Number>
__device__ void fetch(Bf16* to, const Problem<Number>& p, const ChunkOperand<Number>& x, int first, int n, int column) {
#pragma unroll
  for (int i = 0; i < chunk * width / 8 / threads; ++i) {
    const int unit = i * threads + thread_now(), row = unit / (width / 8), c = unit % (width / 8) * 8;
    const int given = row < n ? x.width - column - c : 0;
    Bf16* const place_of_unit = to + place<width>(row, c);
    const Number* from = given > 0 ? x.row(p.row(first + row)) + column + c : nullptr;
    if (given <= 0) {
      *reinterpret_cast<uint4*>(place_of_unit) = {0, 0, 0, 0};
    } else if (p.vectors) {
      fetch_eight(reinterpret_cast<uint4*>(place_of_unit), from);
    } else {
      fetch_some(place_of_unit, from, given);
    }
  }
}

/// to [chunk, K] ← log-decays per channel, 0 beyond them.
template <int K, class Number>
__device__ void fetch_log_decays(float* to, const Problem<Number>& p, const ChunkOperand<float>& x, int first, int n) {
  constexpr int of_unit = 4;
#pragma unroll
  for (int i = 0; i < chunk * K / of_unit / threads; ++i) {
    const int unit = i * threads + thread_now(), row = unit / (K / of_unit), c = unit % (K / of_unit) * of_unit;
    const int given = row < n ? x.width - c : 0;
    const float* from = given > 0 ? x.row(p.row(first + row)) + c : nullptr;
    if (given > 0 && p.vectors) {
      __pipeline_memcpy_async(to + unit * of_unit, from, sizeof(float4));
    } else {
#pragma unroll 1
      for (int j = 0; j < of_unit; ++j) to[unit * of_unit + j] = j < given ? from[j] : 0;
    }
  }
}

/// What a lane knows of row `lane` of a chunk.
struct LaneRow {
  float log2_decay = 0, weight = 0;  // the former per head
};

template <Decay decay, class Number>
__device__ LaneRow lane_row(const Problem<Number>& p, const ChunkOperand<float>& log_decay, int first, int n) {
  constexpr float log2_e = 1.44269504F, nothing_is_left = -160;  // 2^-160 is 0; beside −∞ differences would be NaN
  const int lane = lane_now();
  if (lane >= n) return {};
  LaneRow row{0, p.gather.weight ? p.gather.weight[first + lane] : 1};
  if (decay == Decay::per_head && log_decay.width > 0) {
    const float x = *log_decay.row(p.row(first + lane)) * log2_e;
    row.log2_decay = x < nothing_is_left ? nothing_is_left : x;
  }
  return row;
}

__device__ float of_lane(float x, int lane) { return __shfl_sync(~0U, x, lane); }

__device__ float sum_up_to_lane(float x) {
  const int lane = lane_now();
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const float before = __shfl_up_sync(~0U, x, distance);
    if (lane >= distance) x += before;
  }
  return x;
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels: decays per channel
//
// A cell is two channels of the rows of a group. A thread has one after the other, so that the state stays in its registers beside them.

__device__ float2 operator*(float2 a, float2 b) { return {a.x * b.x, a.y * b.y}; }
__device__ float2& two(float* x) { return *reinterpret_cast<float2*>(x); }
__device__ unsigned times(unsigned pair, float2 factor) { return packed(first_of(pair) * factor.x, second_of(pair) * factor.y); }
__device__ unsigned& pair_at(Bf16* rows, int at) { return *reinterpret_cast<unsigned*>(rows + at); }

template <int K>
struct Cell {
  static constexpr int of_thread = groups * K / 2 / threads;
  int group, channel;

  __device__ explicit Cell(int i) : group((i * threads + thread_now()) / (K / 2)), channel(thread_now() % (K / 2) * 2) {}
  __device__ int at(int i) const { return place<K>(group * of_group + i, channel); }
  __device__ float2& decay(float* decays, int i) const { return two(decays + (group * of_group + i) * K + channel); }

  /// The decay of the groups [begin, end).
  __device__ float2 across(float (&of_groups)[groups][K], int begin, int end) const {
    float2 all{1, 1};
#pragma unroll
    for (int g = 0; g < groups; ++g) {
      if (g >= begin && g < end) all = all * two(&of_groups[g][channel]);
    }
    return all;
  }
};

/// Decays in the place of their logarithms, and those of groups.
template <int K, class Memory>
__device__ void read_decays(Memory& shared, const Cell<K>& cell) {
  float2 all{1, 1};
#pragma unroll
  for (int i = 0; i < of_group; ++i) {
    const float2 x = cell.decay(shared.log_decay, i), a{__expf(x.x), __expf(x.y)};
    cell.decay(shared.log_decay, i) = a;
    all = all * a;
  }
  two(&shared.of_groups[cell.group][cell.channel]) = all;
}

/// x_t = q_t A(r, t) in the later half of each block of a level, and q̃ in the place of q.
template <int K, class Memory>
__device__ void decay_queries(Memory& shared, Bf16* q, const Cell<K>& cell, const LaneRow& lane) {
  float2 since[of_group];  // A from the beginning of the row's block
  unsigned q_t[of_group];
#pragma unroll
  for (int i = 0; i < of_group; ++i) since[i] = cell.decay(shared.log_decay, i), q_t[i] = pair_at(q, cell.at(i));
#pragma unroll
  for (int l = 0; l < levels_of_group; ++l) {
    const int size = 1 << l;
#pragma unroll
    for (int i = 0; i < of_group; ++i) {
      if (i / size % 2 == 0) continue;
      pair_at(shared.x[l], cell.at(i)) = times(q_t[i], since[i]);
      since[i] = since[i] * since[i / size * size - 1];
    }
  }
#pragma unroll
  for (int l = levels_of_group; l < levels; ++l) {
    const int size = (1 << l) / of_group, block = cell.group / size;
    if (block % 2 == 0) continue;
    const float2 before = cell.across(shared.of_groups, block * size, cell.group);
#pragma unroll
    for (int i = 0; i < of_group; ++i) pair_at(shared.x[l], cell.at(i)) = times(q_t[i], since[i] * before);
  }
  const float2 before = cell.across(shared.of_groups, 0, cell.group);
#pragma unroll
  for (int i = 0; i < of_group; ++i) {
    const float weight = of_lane(lane.weight, cell.group * of_group + i);
    pair_at(q, cell.at(i)) = times(q_t[i], since[i] * before * float2{weight, weight});
  }
}

/// x_s = k_s A(s, r) in the earlier half of each block of a level (with_levels), and k̃ in the place of k.
template <int K, bool with_levels, class Memory>
__device__ void decay_keys(Memory& shared, Bf16* k, const Cell<K>& cell, const LaneRow& lane) {
  float2 until[of_group], of_block[of_group];  // A up to the end of the row's block, A of whole blocks
  unsigned k_s[of_group];
#pragma unroll
  for (int i = 0; i < of_group; ++i) until[i] = {1, 1}, of_block[i] = cell.decay(shared.log_decay, i), k_s[i] = pair_at(k, cell.at(i));
#pragma unroll
  for (int l = 0; l < levels_of_group; ++l) {
    const int size = 1 << l;
#pragma unroll
    for (int i = 0; i < of_group; ++i) {
      if (i / size % 2 == 1) continue;
      if (with_levels) pair_at(shared.x[l], cell.at(i)) = times(k_s[i], until[i]);
      until[i] = until[i] * of_block[i / size + 1];
    }
#pragma unroll
    for (int b = 0; 2 * b * size < of_group; ++b) of_block[b] = of_block[2 * b] * of_block[2 * b + 1];
  }
#pragma unroll
  for (int l = levels_of_group; with_levels && l < levels; ++l) {
    const int size = (1 << l) / of_group, block = cell.group / size;
    if (block % 2 == 1) continue;
    const float2 behind = cell.across(shared.of_groups, cell.group + 1, (block + 1) * size);
#pragma unroll
    for (int i = 0; i < of_group; ++i) pair_at(shared.x[l], cell.at(i)) = times(k_s[i], until[i] * behind);
  }
  const float2 behind = cell.across(shared.of_groups, cell.group + 1, groups);
#pragma unroll
  for (int i = 0; i < of_group; ++i) {
    const float weight = of_lane(lane.weight, cell.group * of_group + i);
    pair_at(k, cell.at(i)) = times(k_s[i], until[i] * behind * float2{weight, weight});
  }
  if (cell.group == 0) two(shared.of_chunk + cell.channel) = of_block[0] * behind;
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels: products

/// Lane l of load_matrices names row l % 16, and the second eight numbers from lane 16 on: of a tile [16, 16] that is an A with y and z as
/// they are, or the Bs (x, z) and (y, w); transposed, an A with y and z exchanged, or the Bs (x, y) and (z, w).
/// `row` and `column` are multiples of 16, which is why the exchange of units is an XOR with `column`.
template <int width>
__device__ const Bf16* lane_place(const Bf16* rows, int row, int column) {
  const int lane = lane_now();
  return rows + row * width + (place<width>(lane % 16, lane / 16 * 8) ^ column);
}

/// c [16, 16] = rows [row_a, row_a + 16) of a times those from row_b of b
template <int K>
__device__ void multiply_rows(float (&c)[2][4], const Bf16* a, int row_a, const Bf16* b, int row_b) {
#pragma unroll
  for (int i = 0; i < 8; ++i) c[i / 4][i % 4] = 0;
#pragma unroll
  for (int key = 0; key < K; key += 16) {
    const uint4 of_a = load_matrices(lane_place<K>(a, row_a, key)), of_b = load_matrices(lane_place<K>(b, row_b, key));
    multiply(c[0], of_a, of_b.x, of_b.z);
    multiply(c[1], of_a, of_b.y, of_b.w);
  }
}

/// scores(i, j) ← score(i, j, c) for those of a tile [16, 16] that `wanted(i, j)`.
template <int pitch, class Wanted, class Score>
__device__ void store_scores(Bf16* scores, const float (&c)[2][4], int row, int column, Wanted wanted, Score score) {
  const int lane = lane_now();
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const int i = row + lane / 4 + e % 4 / 2 * 8, j = column + e / 4 * 8 + lane % 4 * 2 + e % 2;
    const float x = score(i, j, c[e / 4][e % 4]);
    if (wanted(i, j)) scores[i * pitch + j] = __float2bfloat16(x);
  }
}

/// P where t = s, and 0 where t < s, of 16 rows; by one warp, from q and k as they came.
template <int K, class Memory>
__device__ void diagonal_scores(Memory& shared, const Bf16* q, const Bf16* k, int row, const LaneRow& lane) {
  float c[2][4];
  multiply_rows<K>(c, q, row, k, row);
  store_scores<Memory::scores_pitch>(
      shared.scores, c, row, row, [](int i, int j) { return i <= j; },
      [&](int i, int j, float x) {
        const float weight = of_lane(lane.weight, i);
        return i == j ? weight * weight * x : 0;
      });
}

/// P where t and s differ first in bit l, of the tile (row, column); by one warp.
template <int K, class Memory>
__device__ void level_scores(Memory& shared, int l, int row, int column, const LaneRow& lane) {
  float c[2][4];
  multiply_rows<K>(c, shared.x[l], row, shared.x[l], column);
  store_scores<Memory::scores_pitch>(
      shared.scores, c, row, column, [l](int i, int j) { return i > j && (i ^ j) >> l == 1; },
      [&](int i, int j, float x) {
        const float weight_i = of_lane(lane.weight, i), weight_j = of_lane(lane.weight, j);
        return weight_i * weight_j * x;
      });
}

/// P of the tile (row, column), decayed per head; by one warp. `sum` of the log-decays up to the lane's row.
template <int K, class Memory>
__device__ void head_scores(Memory& shared, const Bf16* q, const Bf16* k, int row, int column, const LaneRow& lane, float sum) {
  float c[2][4];
  multiply_rows<K>(c, q, row, k, column);
  store_scores<Memory::scores_pitch>(
      shared.scores, c, row, column, [](int, int) { return true; },
      [&](int i, int j, float x) {
        const float weight_i = of_lane(lane.weight, i), weight_j = of_lane(lane.weight, j);
        const float since = of_lane(sum, i) - of_lane(sum, j);
        return i >= j ? exp2f(since) * weight_i * weight_j * x : 0;
      });
}

/// oᵀ [16 columns, chunk] = Sᵀ q̃ᵀ
template <int K>
__device__ void read_state(float (&o)[chunk / 8][4], const float (&S)[K / 8][4], const Bf16* q) {
#pragma unroll
  for (int i = 0; i < chunk / 8 * 4; ++i) o[i / 4][i % 4] = 0;
#pragma unroll
  for (int key = 0; key < K; key += 16) {
    const float(&left)[4] = S[key / 8], (&right)[4] = S[key / 8 + 1];
    const uint4 a{packed(left[0], left[1]), packed(left[2], left[3]), packed(right[0], right[1]), packed(right[2], right[3])};
#pragma unroll
    for (int t = 0; t < chunk; t += 16) {
      const uint4 b = load_matrices(lane_place<K>(q, t, key));
      multiply(o[t / 8], a, b.x, b.z);
      multiply(o[t / 8 + 1], a, b.y, b.w);
    }
  }
}

/// Sᵀ [16 columns, K] ← Sᵀ + vᵀ k̃
template <int K>
__device__ void write_state(float (&S)[K / 8][4], const uint4 (&v)[chunk / 16], const Bf16* k) {
#pragma unroll
  for (int key = 0; key < K; key += 16) {
#pragma unroll
    for (int t = 0; t < chunk; t += 16) {
      const uint4 b = load_matrices_transposed(lane_place<K>(k, t, key));
      multiply(S[key / 8], v[t / 16], b.x, b.y);
      multiply(S[key / 8 + 1], v[t / 16], b.z, b.w);
    }
  }
}

/// oᵀ ← oᵀ + vᵀ Pᵀ
template <class Memory>
__device__ void read_chunk(float (&o)[chunk / 8][4], const uint4 (&v)[chunk / 16], const Memory& shared) {
  const int lane = lane_now();
#pragma unroll
  for (int t = 0; t < chunk; t += 16) {
#pragma unroll
    for (int s = 0; s <= t; s += 16) {
      const uint4 b = load_matrices(shared.scores + (t + lane % 16) * Memory::scores_pitch + s + lane / 16 * 8);
      multiply(o[t / 8], v[s / 16], b.x, b.z);
      multiply(o[t / 8 + 1], v[s / 16], b.y, b.w);
    }
  }
}

/// Rows of o, each times its factor, which a lane knows of its row.
__device__ void scale_outputs(float (&o)[chunk / 8][4], float factor) {
  const int t = lane_now() % 4 * 2;
#pragma unroll
  for (int i = 0; i < chunk / 8 * 4; ++i) o[i / 4][i % 4] *= of_lane(factor, i / 4 * 8 + t + i % 2);
}

/// Rows of v, each times its factor, which a lane knows of its row.
__device__ void scale_rows(uint4 (&v)[chunk / 16], float factor) {
  const int t = lane_now() % 4 * 2;
#pragma unroll
  for (int s = 0; s < chunk / 16; ++s) {
    const float2 early{of_lane(factor, 16 * s + t), of_lane(factor, 16 * s + t + 1)},
        late{of_lane(factor, 16 * s + 8 + t), of_lane(factor, 16 * s + 9 + t)};
    v[s] = {times(v[s].x, early), times(v[s].y, early), times(v[s].z, late), times(v[s].w, late)};
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels: states and outputs in memory

/// fn(number of S, its place in a state [of_K, of_V]) for those of the lane's numbers that the state has; `column` the warp's first.
template <int K, class Fn>
__device__ void each_of_state(float (&S)[K / 8][4], int of_K, int of_V, int column, Fn fn) {
  const int lane = lane_now();
#pragma unroll
  for (int i = 0; i < K / 8 * 4; ++i) {
    const int key = i / 4 * 8 + lane % 4 * 2 + i % 2, c = column + lane / 4 + i % 4 / 2 * 8;
    if (key < of_K && c < of_V) fn(S[i / 4][i % 4], key * of_V + c);
  }
}

__device__ void put(float* to, float x) { *to = x; }
__device__ void put(Bf16* to, float x) { *to = __float2bfloat16(x); }

/// n rows of o from item `first` on, of head h; `column` the warp's first.
template <class Number>
__device__ void store_outputs(const Problem<Number>& p, const float (&o)[chunk / 8][4], int first, int n, int h, int column) {
  const int lane = lane_now(), c = column + lane / 4;
  Number* const of_head = p.o + (h * p.V + c);
#pragma unroll
  for (int i = 0; i < chunk / 4; ++i) {
    const int t = i / 2 * 8 + lane % 4 * 2 + i % 2;
    if (t >= n) continue;
    Number* to = of_head + std::int64_t{p.row(first + t)} * p.o_stride;
    const float left = p.scale * o[i / 2][i % 2], right = p.scale * o[i / 2][i % 2 + 2];
    if constexpr (std::is_same_v<Number, float>) {
      if (p.gather.row_of) {
        if (c < p.V) atomicAdd(to, left);
        if (c + 8 < p.V) atomicAdd(to + 8, right);
        continue;
      }
    }
    if (c < p.V) put(to, left);
    if (c + 8 < p.V) put(to + 8, right);
  }
}

/// One block per (span, head, `columns` columns), whose state stays in its registers: a warp has 16 columns of it, as Sᵀ [16, K] in tiles
/// of C. Pass::states: what a span adds to a state of 0, for all but the last span of a segment. Pass::outputs: o, and the final state.
template <class Number, Decay decay, Pass pass, int K>
__global__ void __launch_bounds__(threads, 2) span_kernel(Problem<Number> p) {
  using Memory = Shared<decay, pass, K>;
  extern __shared__ __align__(16) char memory[];
  Memory& shared = *reinterpret_cast<Memory*>(memory);
  const int tile = static_cast<int>(blockIdx.x) % p.tiles(), h = static_cast<int>(blockIdx.x) / p.tiles() % p.H,
            number = static_cast<int>(blockIdx.x) / p.tiles() / p.H;
  const Piece span = piece_of(p.segments, number, p.span);
  const std::int64_t spans = max(span.count, std::int64_t{1});  // a segment without rows carries its state over
  if (span.index >= (pass == Pass::states ? spans - 1 : spans)) return;

  const int warp = static_cast<int>(threadIdx.x) / 32, block_column = tile * columns, column = block_column + 16 * warp;
  const bool idle = column >= p.V;
  const std::int64_t of_state = std::int64_t{p.K} * p.V, slot = p.segments.slot_of(span.segment);
  float* const between = p.states + (std::int64_t{number} * p.H + h) * of_state;
  const auto q_rows = p.q.of_head(h, p.H), k_rows = p.k.of_head(h, p.H), v_rows = p.v.of_head(h, p.H);
  const auto decay_rows = p.log_decay.of_head(h, p.H);
  const int first_row = static_cast<int>(span.first_row), rows = static_cast<int>(span.rows);

  const auto fetch_rows = [&](int stage, int first, int n) {
    if (pass == Pass::outputs) fetch<K>(shared.q[stage], p, q_rows, first, n, 0);
    fetch<K>(shared.k[stage], p, k_rows, first, n, 0);
    fetch<columns>(shared.v[stage], p, v_rows, first, n, block_column);
  };
  const auto rows_from = [rows](int done) { return min(rows - done, chunk); };
  if (rows > 0) {
    fetch_rows(0, first_row, rows_from(0));
    if (decay == Decay::per_channel) fetch_log_decays<K>(shared.log_decay, p, decay_rows, first_row, rows_from(0));
  }
  __pipeline_commit();
  LaneRow next_row = lane_row<decay>(p, decay_rows, first_row, rows_from(0));

  float S[K / 8][4] = {};
  if (pass == Pass::outputs) {
    const float* from = spans > 1 ? between : p.initial.row(slot) + h * of_state;
    each_of_state<K>(S, p.K, p.V, column, [from](float& x, int at) { x = from[at]; });
  }
  float decay_of_span = 1;  // per channel, of channel threadIdx.x

#pragma unroll 1
  for (int done = 0; done < rows; done += chunk) {
    const int stage = done / chunk % 2, n = rows_from(done), first = first_row + done, next = first + chunk;
    const bool more = done + chunk < rows;
    const LaneRow row = next_row;
    Bf16 *const q = shared.q[stage], *const k = shared.k[stage];
    __pipeline_wait_prior(0);
    __syncthreads();  // the chunk is there, and all have left the one before it
    if (more) {
      fetch_rows(1 - stage, next, rows_from(done + chunk));
      next_row = lane_row<decay>(p, decay_rows, next, rows_from(done + chunk));
    }

    float sum = 0, all = 0;  // of log-decays per head: up to the lane's row, of the chunk
    if constexpr (decay == Decay::per_channel) {
#pragma unroll 1
      for (int i = 0; i < Cell<K>::of_thread; ++i) read_decays(shared, Cell<K>(i));
      if (pass == Pass::outputs && warp >= warps - 2) diagonal_scores<K>(shared, q, k, warp % 2 * 16, row);
      __syncthreads();  // decays of all groups; q and k may be written
#pragma unroll 1
      for (int i = 0; i < Cell<K>::of_thread; ++i) {
        if constexpr (pass == Pass::outputs) decay_queries(shared, q, Cell<K>(i), row);
        decay_keys<K, pass == Pass::outputs>(shared, k, Cell<K>(i), row);
      }
      __syncthreads();  // q̃, k̃ and the levels
      if (more) fetch_log_decays<K>(shared.log_decay, p, decay_rows, next, rows_from(done + chunk));
      if (threadIdx.x < K) decay_of_span *= shared.of_chunk[threadIdx.x];
      if constexpr (pass == Pass::outputs) {
        level_scores<K>(shared, warp / 2, warp % 2 * 16, warp % 2 * 16, row);
        if (warp == 0) level_scores<K>(shared, levels - 1, 16, 0, row);
      }
    } else {
      sum = sum_up_to_lane(row.log2_decay), all = of_lane(sum, chunk - 1);
      decay_of_span *= exp2f(all);
      if (pass == Pass::outputs && warp < 3) head_scores<K>(shared, q, k, (warp + 1) / 2 * 16, warp / 2 * 16, row, sum);
    }
    __pipeline_commit();

    uint4 v[chunk / 16];
    float o[chunk / 8][4];
    if (!idle) {
#pragma unroll
      for (int s = 0; s < chunk / 16; ++s) {
        v[s] = load_matrices_transposed(lane_place<columns>(shared.v[stage], 16 * s, 16 * warp));
        v[s] = {v[s].x, v[s].z, v[s].y, v[s].w};
      }
      // o = q̃ S
      if constexpr (pass == Pass::outputs) read_state<K>(o, S, q);
      // S ← A(0, end) S + k̃ᵀ v
      if constexpr (decay == Decay::per_channel) {
        const float* const of_chunk = shared.of_chunk + lane_now() % 4 * 2;
#pragma unroll
        for (int i = 0; i < K / 8 * 4; ++i) S[i / 4][i % 4] *= of_chunk[i / 4 * 8 + i % 2];
        write_state<K>(S, v, k);
      } else {
        if constexpr (pass == Pass::outputs) scale_outputs(o, exp2f(sum) * row.weight);
        const float decay_of_chunk = exp2f(all);
#pragma unroll
        for (int i = 0; i < K / 8 * 4; ++i) S[i / 4][i % 4] *= decay_of_chunk;
        uint4 decayed[chunk / 16] = {v[0], v[1]};
        scale_rows(decayed, exp2f(all - sum) * row.weight);
        write_state<K>(S, decayed, k);
      }
    }
    if constexpr (pass == Pass::outputs) {
      __syncthreads();  // P
      if (idle) continue;
      // o = scale (o + P v)
      read_chunk(o, v, shared);
      store_outputs(p, o, first, n, h, column);
    }
  }

  if (pass == Pass::states) {
    each_of_state<K>(S, p.K, p.V, column, [between](float& x, int at) { between[at] = x; });
    const int width = max(p.log_decay.width, 1), channel = static_cast<int>(threadIdx.x);
    if (tile == 0 && channel < width) p.decays[(std::int64_t{number} * p.H + h) * width + channel] = decay_of_span;
  } else if (span.index == spans - 1) {
    float* const final = p.final.row(slot) + h * of_state;
    each_of_state<K>(S, p.K, p.V, column, [final](float& x, int at) { final[at] = x; });
  }
}

/// One thread per number of a segment's state: from what its spans add to the states that they begin with.
template <class Number>
__global__ void __launch_bounds__(threads) spans_kernel(Problem<Number> p) {
  constexpr int at_once = 8;  // on their way from memory
  const std::int64_t of_state = std::int64_t{p.K} * p.V, blocks = (of_state + threads - 1) / threads;
  const std::int64_t i = blockIdx.x % blocks * threads + threadIdx.x, h = blockIdx.x / blocks % p.H, s = blockIdx.x / blocks / p.H;
  const std::int64_t number = first_piece(p.segments, s, p.span), spans = piece_of(p.segments, number, p.span).count;
  if (spans <= 1 || i >= of_state) return;
  const int width = max(p.log_decay.width, 1);
  float* state = p.states + (number * p.H + h) * of_state + i;
  const float* decay = p.decays + (number * p.H + h) * width + (width > 1 ? i / p.V : 0);
  float S = p.initial.row(p.segments.slot_of(s))[h * of_state + i];
  for (std::int64_t first = 0; first < spans; first += at_once) {
    float added[at_once], a[at_once];
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      const bool there = first + j < spans - 1;
      added[j] = there ? state[(first + j) * p.H * of_state] : 0;
      a[j] = there ? decay[(first + j) * p.H * width] : 0;
    }
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      if (first + j < spans) state[(first + j) * p.H * of_state] = S;
      // S ← A S + what the span adds
      S = fmaf(a[j], S, added[j]);
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

std::int64_t items_of(const DecayedOuterProduct& op, const Gather& gather) { return gather.row_of ? gather.items : op.o.shape[0]; }

/// As many rows as give each multiprocessor of the largest devices two blocks, within limits: a state is not worth fewer rows, and longer
/// spans would leave multiprocessors idle at the end.
std::int64_t span_of(const DecayedOuterProduct& op, const Gather& gather) {
  constexpr std::int64_t blocks = 2 * 132, shortest = 128, longest = 1024;
  const std::int64_t tiles = (op.initial_state.shape[3] + columns - 1) / columns;
  const std::int64_t even = (items_of(op, gather) * op.initial_state.shape[1] * tiles + blocks - 1) / blocks;
  return std::clamp((even + chunk - 1) / chunk * chunk, shortest, longest);
}

Decay decay_of(const DecayedOuterProduct& op) {
  return op.log_decay && op.log_decay.shape.rank() == 3 ? Decay::per_channel : Decay::per_head;
}
std::int64_t decay_width(const DecayedOuterProduct& op) { return decay_of(op) == Decay::per_channel ? op.log_decay.shape[2] : 1; }

template <class Number>
ChunkOperand<Number> chunk_operand(ConstTensor x) {
  if (!x) return {};
  const auto extent = [](std::int64_t n) { return static_cast<int>(n); };
  return {static_cast<const Number*>(x.data), extent(x.stride), extent(x.shape[1]), x.shape.rank() == 3 ? extent(x.shape[2]) : 1};
}

template <class Number>
bool vectors(const ChunkOperand<Number>& x) {
  constexpr int unit = 8;
  return reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0 && x.stride % unit == 0 && x.width % unit == 0;
}

template <class Number, Decay decay, Pass pass, int K>
void launch_pass(const Problem<Number>& p, cudaStream_t stream) {
  launch("decayed_outer_product_chunks", span_kernel<Number, decay, pass, K>,
         static_cast<unsigned>(p.spans()) * static_cast<unsigned>(p.H * p.tiles()), threads, sizeof(Shared<decay, pass, K>), stream, p);
}

template <class Number, Decay decay, int K>
void launch_passes(const Problem<Number>& p, cudaStream_t stream) {
  if (p.segments.longest > p.span) {
    launch_pass<Number, decay, Pass::states, K>(p, stream);
    launch("decayed_outer_product_chunks", spans_kernel<Number>,
           blocks_for(p.K * p.V, threads) * static_cast<unsigned>(p.H * p.segments.count), threads, 0, stream, p);
  }
  launch_pass<Number, decay, Pass::outputs, K>(p, stream);
}

template <class Number>
void launch_chunks(const DecayedOuterProduct& op, const DeviceSegments& segments, float* scratch, const Gather& gather,
                   cudaStream_t stream) {
  const Shape& state = op.initial_state.shape;
  Problem<Number> p{chunk_operand<Number>(op.q),
                    chunk_operand<Number>(op.k),
                    chunk_operand<Number>(op.v),
                    chunk_operand<float>(op.log_decay),
                    f32(op.initial_state),
                    f32(op.final_state),
                    static_cast<Number*>(op.o.data),
                    static_cast<int>(op.o.stride),
                    static_cast<int>(state[1]),
                    static_cast<int>(state[2]),
                    static_cast<int>(state[3]),
                    op.scale,
                    segments,
                    gather};
  const bool channels = decay_of(op) == Decay::per_channel;
  p.gather.items = items_of(op, gather);
  p.vectors = vectors(p.q) && vectors(p.k) && vectors(p.v) && (!channels || vectors(p.log_decay));
  p.span = span_of(op, gather);
  p.states = scratch;
  p.decays = scratch + p.spans() * p.H * p.K * p.V;
  constexpr int narrow = 64, wide = 128;
  if (p.K <= narrow)
    return channels ? launch_passes<Number, Decay::per_channel, narrow>(p, stream)
                    : launch_passes<Number, Decay::per_head, narrow>(p, stream);
  channels ? launch_passes<Number, Decay::per_channel, wide>(p, stream) : launch_passes<Number, Decay::per_head, wide>(p, stream);
}

}  // namespace

bool decayed_outer_product_chunks_supported(const DecayedOuterProduct& op) {
  constexpr std::int64_t most_channels = 128;
  int device = 0, shared_bytes = 0;
  check(cudaGetDevice(&device), "the device");
  check(cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "its shared memory");
  return op.initial_state.shape[2] <= most_channels && (op.decay_axis == DecayAxis::rows || decay_of(op) == Decay::per_head) &&
         sizeof(Shared<Decay::per_channel, Pass::outputs, most_channels>) <= static_cast<std::size_t>(shared_bytes);
}

std::size_t decayed_outer_product_chunks_scratch(const DecayedOuterProduct& op, std::int64_t segments, std::int64_t longest,
                                                 const Gather& gather) {
  const std::int64_t span = span_of(op, gather);
  if (longest <= span) return 0;
  const Shape& state = op.initial_state.shape;
  const std::int64_t numbers = most_pieces(items_of(op, gather), segments, span) * state[1] * (state[2] * state[3] + decay_width(op));
  return static_cast<std::size_t>(numbers) * sizeof(float);
}

void decayed_outer_product_chunks(const DecayedOuterProduct& op, const DeviceSegments& segments, void* scratch, cudaStream_t stream,
                                  const Gather& gather) {
  if (op.q.dtype == DType::bf16) return launch_chunks<Bf16>(op, segments, static_cast<float*>(scratch), gather, stream);
  launch_chunks<float>(op, segments, static_cast<float*>(scratch), gather, stream);
}

}  // namespace statescope::cuda

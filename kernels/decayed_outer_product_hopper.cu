// The decayed outer product on a device of compute capability 9.0, 64 rows at a time. With A(s, t) the decay of the rows
// after s, up to t, of a chunk whose last row is e, a the row before its first one:
//
//   x_t = scale q_t A(a, t)      y_s = k_s A(s, e)      score(t, s) = scale Σ_channels q_t A(s, t) k_s where s ≤ t
//   o_t = x_t S + Σ_s score(t, s) v_s      S ← A(a, e) S + yᵀ v
//
// `prepare` makes x, y, the scores and A(a, e) of every chunk once for all columns of v. No factor of x and y is larger than 1, whatever
// the decays. Scores bring q and k to a row in the middle of the chunk where one of the two factors grows, as long as floating point can
// hold it; where it cannot, to the boundaries between ever smaller halves, where none does.
//
// Long segments are cut into spans as in decayed_outer_product_chunks.cu. A value that is not finite reaches earlier rows of its chunk.
#include <algorithm>
#include <cstddef>

#include "kernels/cuda_hopper.h"
#include "kernels/cuda_recurrence.h"

namespace statescope::cuda {
namespace {

// `channels` below: of k, with what fills them up; 128 or 256.
template <int channels>
constexpr int blocks = channels / swizzled;
constexpr int groups = 2, columns = groups * swizzled;  // warpgroups of a thread block, and their columns of v
constexpr float most_log2_decay = 100;                  // from the middle of a chunk to its ends

enum class Pass { states, outputs };

/// What prepare leaves of a head of a chunk, as it goes into shared memory. Rows behind the chunk's last one are 0.
template <int channels>
struct alignas(1024) Chunk {
  Tile y[blocks<channels>];
  float decay[channels];  // A(a, e)
  Tile x[blocks<channels>];
  Tile scores;  // [t, s]
};

template <int channels>
struct Problem {
  Bf16Rows q, k;
  Operand log_decay;
  Rows<const float> initial;  // [slots, H, K, V]
  Rows<float> final;          // [slots, H, K, V]
  Bf16* o;                    // [rows, H, V]
  std::int64_t o_stride;
  int H, K, V;
  float scale;
  DeviceSegments segments;
  std::int64_t span;        // rows
  Chunk<channels>* chunks;  // [chunks, H]
  float* states;            // as in Spans
  float* decays;

  __host__ __device__ int tiles() const { return (V + columns - 1) / columns; }
  __host__ __device__ int decay_width() const { return max(static_cast<int>(log_decay.width), 1); }
};

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels: prepare

constexpr int of_thread = 16, parts = chunk_rows / of_thread;  // rows of a pair of channels
template <int channels>
constexpr int prepare_threads = parts * (channels / 2);

template <int channels>
struct alignas(1024) Prepared {
  Tile x[blocks<channels>], y[blocks<channels>];  // q and k as they come, then brought to the row that scores are made at
  float2 total[parts][channels / 2];              // log2 of the decay of a thread's rows
  std::uint64_t full;
};

__device__ float2 operator+(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }
__device__ float2 operator-(float2 a) { return {-a.x, -a.y}; }
__device__ float2 operator*(float2 a, float2 b) { return {a.x * b.x, a.y * b.y}; }
__device__ float2 operator*(float a, float2 b) { return {a * b.x, a * b.y}; }
__device__ float exp2_of(float x) {
  asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
  return x;
}
__device__ float2 exp2_of(float2 a) { return {exp2_of(a.x), exp2_of(a.y)}; }
__device__ float2 widened(unsigned pair) { return {first_of(pair), second_of(pair)}; }
__device__ unsigned packed_pair(float2 x) { return packed(x.x, x.y); }

/// Two neighbouring channels of a row in tiles.
__device__ unsigned& pair_at(Tile* tiles, int row, int channel) { return *reinterpret_cast<unsigned*>(place(tiles, row, channel)); }

/// log2 of the decays of two neighbouring channels in the first n rows of a chunk, 0 behind them.
struct Decays {
  const float* data;
  int stride, width, n;

  __device__ Decays(const Operand& x, std::int64_t first_row, int h, int H, int channel, int n_)
      : data(x.at(first_row, h, H) + (x.width > 1 ? channel : 0)),
        stride(static_cast<int>(x.rows.stride)),
        width(static_cast<int>(x.width)),
        n(n_) {}

  /// Of rows from `first` on, all on their way at once.
  template <int count>
  __device__ void read(float2 (&to)[count], int first) const {
    const float* const from = data + first * stride;
#pragma unroll
    for (float2& x : to) x = {0, 0};
    if (width > 1) {
#pragma unroll
      for (int i = 0; i < count; ++i) {
        if (first + i < n) to[i] = *reinterpret_cast<const float2*>(from + i * stride);
      }
    } else if (width == 1) {
#pragma unroll
      for (int i = 0; i < count; ++i) {
        if (first + i < n) to[i].x = to[i].y = from[i * stride];
      }
    }
    constexpr float log2_e = 1.44269504F, least = -160;  // 2^least is 0, and sums of it are still exact enough
#pragma unroll
    for (float2& x : to) {
      x = log2_e * x;
      x = {x.x < least ? least : x.x, x.y < least ? least : x.y};
    }
  }
  __device__ float2 at(int t) const {
    float2 row[1];
    read(row, t);
    return row[0];
  }
};

/// Two neighbouring channels of q or k in the first n rows of a chunk, 0 behind them.
struct Pair {
  const Bf16* data;
  int stride, n;

  __device__ Pair(const Bf16Rows& x, std::int64_t first_row, int h, int H, int channel, int n_)
      : data(x.at(first_row, h, H) + channel), stride(static_cast<int>(x.stride)), n(n_) {}

  __device__ float2 at(int t) const { return t < n ? widened(*reinterpret_cast<const unsigned*>(data + t * stride)) : float2{0, 0}; }
};

/// One thread: starts to bring q and k of 64 rows. Behind the chunk's last one they are another segment's.
template <int channels>
__device__ void fetch_rows(Prepared<channels>& shared, const Problem<channels>& p, const CUtensorMap& queries, const CUtensorMap& keys,
                           int h, int first_row) {
  init_barrier(shared.full, 1);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  arrive_and_expect(shared.full, sizeof(shared.x) + sizeof(shared.y));
  const auto q_head = static_cast<int>(producer_head(h, p.q.heads, p.H)), k_head = static_cast<int>(producer_head(h, p.k.heads, p.H));
  for (int b = 0; b < blocks<channels>; ++b) {
    copy_box(shared.x[b], queries, b * swizzled, q_head, first_row, shared.full);
    copy_box(shared.y[b], keys, b * swizzled, k_head, first_row, shared.full);
  }
}

/// C of 16 × 16 numbers of x yᵀ, from (row, column) on.
template <int channels>
__device__ void multiply_rows(float (&c)[2][4], const Prepared<channels>& shared, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int key = 0; key < channels; key += 16) {
    const Tile &x = shared.x[key / swizzled], &y = shared.y[key / swizzled];
    const uint4 a = load_matrices(&x[0][0] + place(row + lane % 16, key % swizzled + lane / 16 * 8));
    const uint4 b = load_matrices(&y[0][0] + place(column + lane / 16 * 8 + lane % 8, key % swizzled + lane / 8 % 2 * 8));
    multiply(c[0], a, b.x, b.y);
    multiply(c[1], a, b.z, b.w);
  }
}

/// A thread block makes a head of a chunk. Several of them share a multiprocessor: one loads while another one computes.
template <int channels>
__global__ void __launch_bounds__(prepare_threads<channels>, 1024 / prepare_threads<channels>)
    prepare_kernel(const __grid_constant__ Problem<channels> p, const __grid_constant__ CUtensorMap queries,
                   const __grid_constant__ CUtensorMap keys) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<Prepared<channels>*>(memory);
  wait_for_results();
  const int h = static_cast<int>(blockIdx.x) % p.H, number = static_cast<int>(blockIdx.x) / p.H;
  const Piece piece = piece_of(p.segments, number, chunk_rows);
  if (piece.index >= piece.count) return;
  Chunk<channels>& chunk = p.chunks[blockIdx.x];
  if (threadIdx.x == 0) fetch_rows(shared, p, queries, keys, h, static_cast<int>(piece.first_row));

  constexpr int channel_pairs = channels / 2;
  const int pair = static_cast<int>(threadIdx.x) % channel_pairs, part = static_cast<int>(threadIdx.x) / channel_pairs;
  const int channel = 2 * pair, first = part * of_thread;
  const int n = channel < p.K ? static_cast<int>(piece.rows) : 0;
  const Decays decays(p.log_decay, piece.first_row, h, p.H, channel, n);
  float2 log2_decay[of_thread], total{0, 0};
  decays.read(log2_decay, first);
#pragma unroll
  for (const float2& x : log2_decay) total = total + x;
  shared.total[part][pair] = total;
  __syncthreads();

  float2 before{0, 0}, lower{0, 0}, upper{0, 0};
#pragma unroll
  for (int i = 0; i < parts; ++i) {
    const float2 of_part = shared.total[i][pair];
    if (i < part) before = before + of_part;
    if (i < parts / 2) {
      lower = lower + of_part;
    } else {
      upper = upper + of_part;
    }
  }
  const float2 all = lower + upper;
  if (part == 0) *reinterpret_cast<float2*>(chunk.decay + channel) = exp2_of(all);
  const bool fits = __syncthreads_and(-lower.x <= most_log2_decay && -lower.y <= most_log2_decay && -upper.x <= most_log2_decay &&
                                      -upper.y <= most_log2_decay);
  wait(shared.full, 0);

  // The scores, in blocks of 16 × 16: those at the middle row; or, boundary after boundary, those of rows on its two sides, and the
  // diagonal.
  constexpr int in_row = chunk_rows / 16, of_warp = in_row * in_row / (prepare_threads<channels> / 32);  // blocks
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp * of_warp / in_row * 16, first_column = warp * of_warp % in_row * 16;
  float scores[of_warp][2][4] = {};
  const auto add_scores = [&](const auto& counts) {
    __syncthreads();  // x and y are there
#pragma unroll
    for (int b = 0; b < of_warp; ++b) {
      const int column = first_column + 16 * b;
      if (column > row) break;
      float c[2][4] = {};
      multiply_rows(c, shared, row, column);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int t = row + lane / 4 + i % 4 / 2 * 8, s = column + i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (counts(t, s)) scores[b][i / 4][i % 4] += c[i / 4][i % 4];
      }
    }
  };
  if (fits) {
    // q_t A(m, t) and k_s A(s, m) with the middle row m; from them x_t = scale q_t A(a, t) and y_s = k_s A(s, e)
    const float2 to_x = p.scale * exp2_of(lower), to_y = exp2_of(upper);
    float2 e = before + -lower;
#pragma unroll
    for (int i = 0; i < of_thread; ++i) {
      const int t = first + i;
      e = e + log2_decay[i];
      unsigned &q = pair_at(shared.x, t, channel), &k = pair_at(shared.y, t, channel);
      const float2 x = exp2_of(e) * widened(t < n ? q : 0), y = exp2_of(-e) * widened(t < n ? k : 0);
      q = packed_pair(x), k = packed_pair(y);
      pair_at(chunk.x, t, channel) = packed_pair(to_x * x);
      pair_at(chunk.y, t, channel) = packed_pair(to_y * y);
    }
    add_scores([](int t, int s) { return s <= t; });
  } else {
    const Pair q(p.q, piece.first_row, h, p.H, channel, n), k(p.k, piece.first_row, h, p.H, channel, n);
    float2 e = before;
#pragma unroll 1
    for (int t = first; t < first + of_thread; ++t) {
      e = e + decays.at(t);
      pair_at(chunk.x, t, channel) = packed_pair(p.scale * (exp2_of(e) * q.at(t)));
      pair_at(chunk.y, t, channel) = packed_pair(exp2_of(all + -e) * k.at(t));
    }
    const auto put = [&](int t, float2 x, float2 y) {
      pair_at(shared.x, t, channel) = packed_pair(x), pair_at(shared.y, t, channel) = packed_pair(y);
    };
    // Exponents are sums over the rows since the boundary: a thread walks from it, down in upper halves and up in lower ones.
#pragma unroll 1
    for (int size = chunk_rows / 2; size > 0; size /= 2) {
#pragma unroll 1
      for (int block = part; block < chunk_rows / size; block += parts) {
        const bool upper_half = block % 2 == 1;
        float2 since{0, 0};
#pragma unroll 1
        for (int i = 0; i < size; ++i) {
          const int t = upper_half ? block * size + i : (block + 1) * size - 1 - i;
          const float2 decay = decays.at(t), none{0, 0};
          if (upper_half) since = since + decay;
          put(t, upper_half ? exp2_of(since) * q.at(t) : none, upper_half ? none : exp2_of(since) * k.at(t));
          if (!upper_half) since = since + decay;
        }
      }
      add_scores([size](int t, int s) { return (t & size) != 0 && ((t ^ s) & -size) == size; });
      __syncthreads();
    }
#pragma unroll 1
    for (int t = first; t < first + of_thread; ++t) put(t, q.at(t), k.at(t));
    add_scores([](int t, int s) { return s == t; });
  }
#pragma unroll
  for (int i = 0; i < 4 * of_warp; ++i) {
    const int t = row + lane / 4 + i % 2 * 8, s = first_column + i / 2 * 8 + lane % 4 * 2;
    const float(&pairs)[4] = scores[i / 4][i / 2 % 2];
    pair_at(&chunk.scores, t, s) = packed(p.scale * pairs[i % 2 * 2], p.scale * pairs[i % 2 * 2 + 1]);
  }
  let_next_begin();
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels: spans

/// As many stages as a multiprocessor has room for.
template <int channels>
struct Memory {
  static constexpr int stages = channels > 128 ? 2 : 3;
  struct Stage {
    Chunk<channels> chunk;
    Tile v[groups];
  };
  Stage stage[stages];
  std::uint64_t full[stages], empty[stages];
};

/// One thread: a chunk goes to its stage as soon as all warps have read what was there.
template <Pass pass, int channels>
__device__ void produce(Memory<channels>& memory, const CUtensorMap& values, const Chunk<channels>* chunk, int H, int first_row, int count,
                        int head, int column) {
  constexpr int stages = Memory<channels>::stages;
  constexpr unsigned of_states = offsetof(Chunk<channels>, x), bytes = pass == Pass::states ? of_states : sizeof(Chunk<channels>);
  for (int c = 0; c < count; ++c) {
    const int stage = c % stages;
    auto& to = memory.stage[stage];
    wait(memory.empty[stage], c / stages % 2 ^ 1);
    arrive_and_expect(memory.full[stage], bytes + sizeof(to.v));
    copy_bytes(&to.chunk, chunk + static_cast<std::int64_t>(c) * H, bytes, memory.full[stage]);
    for (int g = 0; g < groups; ++g) copy_box(to.v[g], values, column + g * swizzled, head, first_row + c * chunk_rows, memory.full[stage]);
  }
}

/// A warpgroup's 64 columns of the state as Sᵀ [64, channels] in tiles of C.
template <int channels>
using State = float[channels / 8][4];

/// Numbers of 128 channels, each times the channel's factor.
constexpr int of_part = 128;
template <int n>
__device__ void scale_part(float (&S)[n][4], const float* factor, int part) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int j = 0; j < of_part / 8; ++j) {
    const int i = part * (of_part / 8) + j;
    const float2 f = *reinterpret_cast<const float2*>(factor + i * 8 + lane % 4 * 2);
    S[i][0] *= f.x, S[i][1] *= f.y, S[i][2] *= f.x, S[i][3] *= f.y;
  }
}

/// fn(number of S, its place in a state [K, V]) for those of the lane's numbers that the state has; `column` the warp's first.
template <int n, class Fn>
__device__ void each_of_state(float (&S)[n][4], int K, int V, int column, Fn fn) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < n * 4; ++i) {
    const int key = i / 4 * 8 + lane % 4 * 2 + i % 2, c = column + lane / 4 + i % 4 / 2 * 8;
    if (key < K && c < V) fn(S[i / 4][i % 4], key * V + c);
  }
}

/// A thread block per (span, head, `columns` columns): two warpgroups multiply, one thread of a third brings what they need.
/// Pass::states: what a span adds to a state of 0, for all but the last span of a segment. Pass::outputs: o, and the final state.
template <Pass pass, int channels>
__global__ void __launch_bounds__((groups + 1) * warpgroup, 1)
    span_kernel(const __grid_constant__ Problem<channels> p, const __grid_constant__ CUtensorMap values) {
  constexpr int stages = Memory<channels>::stages, channel_parts = channels / of_part;
  extern __shared__ __align__(1024) unsigned char bytes[];
  auto& memory = *reinterpret_cast<Memory<channels>*>(bytes);
  wait_for_results();
  const int tile = static_cast<int>(blockIdx.x) % p.tiles(), h = static_cast<int>(blockIdx.x) / p.tiles() % p.H,
            number = static_cast<int>(blockIdx.x) / p.tiles() / p.H;
  const Piece span = piece_of(p.segments, number, p.span);
  const std::int64_t spans = max(span.count, std::int64_t{1});  // a segment without rows carries its state over
  if (span.index >= (pass == Pass::states ? spans - 1 : spans)) return;
  const auto rows = static_cast<int>(span.rows), first_row = static_cast<int>(span.first_row);
  const int count = (rows + chunk_rows - 1) / chunk_rows, group = static_cast<int>(threadIdx.x) / warpgroup;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < stages; ++stage) {
      init_barrier(memory.full[stage], 1);
      init_barrier(memory.empty[stage], groups * warpgroup / 32);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  if (group == groups) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    const std::int64_t first_chunk = first_piece(p.segments, span.segment, chunk_rows) + span.index * (p.span / chunk_rows);
    if (threadIdx.x % warpgroup == 0)
      produce<pass>(memory, values, p.chunks + first_chunk * p.H + h, p.H, first_row, count, h, tile * columns);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4, lane = static_cast<int>(threadIdx.x) % 32;
    const int column = tile * columns + group * swizzled + 16 * warp;
    const std::int64_t of_state = std::int64_t{p.K} * p.V, slot = p.segments.slot_of(span.segment);
    float* const between = p.states + (std::int64_t{number} * p.H + h) * of_state;
    State<channels> S = {};
    if (pass == Pass::outputs) {
      const float* const from = spans > 1 ? between : p.initial.row(slot) + h * of_state;
      each_of_state(S, p.K, p.V, column, [from](float& x, int at) { x = from[at]; });
    }
    float decay_of_span = 1;  // of channel threadIdx.x

    for (int c = 0; c < count; ++c) {
      const int stage = c % stages;
      const auto& [chunk, v] = memory.stage[stage];
      wait(memory.full[stage], c / stages % 2);
      uint4 own_v[chunk_rows / 16];  // A of vᵀ
#pragma unroll
      for (int s = 0; s < chunk_rows / 16; ++s) own_v[s] = transposed_rows(v[group], 16 * s, 16 * warp);
      float o[chunk_rows / 8][4];
      if constexpr (pass == Pass::outputs) {
        // o = x S + scores v
        uint4 packed_S[of_part / 16];
#pragma unroll
        for (int part = 0; part < channel_parts; ++part) {
          if (part > 0) wait_products<0>();
          pack_part(packed_S, S, part);
          scale_part(S, chunk.decay, part);
          if (part > 0) pin(o);
          begin_products();
          multiply_part(o, packed_S, chunk.x, part);
          if (part == 0) {
#pragma unroll
            for (int s = 0; s < chunk_rows / 16; ++s) multiply_columns(o, own_v[s], matrix(&chunk.scores[0][16 * s]), true);
          }
          commit_products();
        }
      } else {
        if (threadIdx.x < channels) decay_of_span *= chunk.decay[threadIdx.x];
#pragma unroll
        for (int part = 0; part < channel_parts; ++part) scale_part(S, chunk.decay, part);
      }
      // S ← A S + yᵀ v
      pin(S);
      begin_products();
      add_rows(S, own_v, chunk.y);
      commit_products();
      if constexpr (pass == Pass::outputs) {
        wait_products<1>();
        pin(o);
        Bf16* const to = p.o + std::int64_t{first_row + c * chunk_rows} * p.o_stride + h * p.V + column;
        store_rows(to, p.o_stride, rows - c * chunk_rows, p.V - column, o);
      }
      wait_products<0>();
      pin(S);
      if (lane == 0) arrive(memory.empty[stage]);
    }
    let_next_begin();

    if (pass == Pass::states) {
      each_of_state(S, p.K, p.V, column, [between](float& x, int at) { between[at] = x; });
      const int width = p.decay_width(), channel = static_cast<int>(threadIdx.x);
      if (tile == 0 && channel < width) p.decays[(std::int64_t{number} * p.H + h) * width + channel] = decay_of_span;
    } else if (span.index == spans - 1) {
      float* const final = p.final.row(slot) + h * of_state;
      each_of_state(S, p.K, p.V, column, [final](float& x, int at) { final[at] = x; });
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

/// What is launched, and how scratch is divided.
struct Plan {
  std::int64_t rows, segments, H, K, V, tiles, span;

  Plan(const DecayedOuterProduct& op, const DeviceSegments& device_segments)
      : rows(op.o.rows()),
        segments(device_segments.count),
        H(op.initial_state.shape[1]),
        K(op.initial_state.shape[2]),
        V(op.initial_state.shape[3]),
        tiles((V + columns - 1) / columns) {
    constexpr std::int64_t multiprocessors = 132;  // of the largest devices
    const std::int64_t spans = std::max<std::int64_t>(1, multiprocessors / std::max<std::int64_t>(1, H * tiles));
    span = std::max<std::int64_t>(1, ((rows + spans - 1) / spans + chunk_rows - 1) / chunk_rows) * chunk_rows;
  }
  std::int64_t chunks() const { return most_pieces(rows, segments, chunk_rows) * H; }
  std::int64_t spans() const { return most_pieces(rows, segments, span); }
  std::int64_t state_numbers() const { return spans() * H * K * V; }
};

/// Every row, and every head of it, begins at 16 bytes and consists of them.
bool in_pieces(ConstTensor x, std::int64_t numbers) {
  return reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0 && x.stride % numbers == 0 && x.shape[2] % numbers == 0;
}
bool bf16_in_pieces(ConstTensor x) { return x.dtype == DType::bf16 && in_pieces(x, 8); }

Bf16Rows bf16_rows(ConstTensor x) { return {static_cast<Bf16*>(const_cast<void*>(x.data)), x.stride, x.shape[1], x.shape[2]}; }

/// 64 rows and 64 columns of a head at once.
CUtensorMap rows_map(ConstTensor x) {
  return tensor_map({static_cast<const Bf16*>(x.data), x.rows(), x.shape[1], x.shape[2], x.stride, x.shape[2]}, chunk_rows);
}

template <int channels>
void launch_chunks(const DecayedOuterProduct& op, const DeviceSegments& segments, const Plan& plan, void* scratch, cudaStream_t stream) {
  auto* const chunks = static_cast<Chunk<channels>*>(scratch);
  auto* const states = reinterpret_cast<float*>(chunks + plan.chunks());
  const Problem<channels> p{bf16_rows(op.q),
                            bf16_rows(op.k),
                            operand(op.log_decay),
                            f32(op.initial_state),
                            f32(op.final_state),
                            static_cast<Bf16*>(op.o.data),
                            op.o.stride,
                            static_cast<int>(plan.H),
                            static_cast<int>(plan.K),
                            static_cast<int>(plan.V),
                            op.scale,
                            segments,
                            plan.span,
                            chunks,
                            states,
                            states + plan.state_numbers()};
  launch_overlapped("decayed_outer_product: prepare", prepare_kernel<channels>, static_cast<unsigned>(plan.chunks()),
                    prepare_threads<channels>, sizeof(Prepared<channels>), stream, p, rows_map(op.q), rows_map(op.k));
  const CUtensorMap values = rows_map(op.v);
  const auto blocks_of_spans = static_cast<unsigned>(plan.spans() * plan.H * plan.tiles);
  constexpr unsigned span_threads = (groups + 1) * warpgroup;
  constexpr std::size_t memory = sizeof(Memory<channels>);
  if (segments.longest > plan.span) {
    launch_overlapped("decayed_outer_product: states", span_kernel<Pass::states, channels>, blocks_of_spans, span_threads, memory, stream,
                      p, values);
    combine_spans({segments, p.initial, p.H, p.K, p.V, p.decay_width(), p.span, p.states, p.decays}, stream);
  }
  launch_overlapped("decayed_outer_product: outputs", span_kernel<Pass::outputs, channels>, blocks_of_spans, span_threads, memory, stream,
                    p, values);
}

}  // namespace

bool decayed_outer_product_hopper_supported(const DecayedOuterProduct& op) {
  constexpr std::int64_t narrow = 64, widest = 256;  // heads of narrow ones are left to decayed_outer_product_chunks.cu
  const std::int64_t K = op.initial_state.shape[2];
  const bool per_channel = op.log_decay && op.log_decay.shape.rank() == 3;
  return K > narrow && K <= widest && bf16_in_pieces(op.q) && bf16_in_pieces(op.k) && bf16_in_pieces(op.v) && bf16_in_pieces(op.o) &&
         (!per_channel || (op.decay_axis == DecayAxis::rows && in_pieces(op.log_decay, 4))) && op.v.shape[1] == op.initial_state.shape[1] &&
         has_warpgroup_products();
}

std::size_t decayed_outer_product_hopper_scratch(const DecayedOuterProduct& op, const DeviceSegments& segments) {
  const Plan plan(op, segments);
  return static_cast<std::size_t>(plan.chunks()) * (plan.K > 128 ? sizeof(Chunk<256>) : sizeof(Chunk<128>)) +
         static_cast<std::size_t>(plan.state_numbers() + plan.spans() * plan.H * plan.K) * sizeof(float);
}

void decayed_outer_product_hopper(const DecayedOuterProduct& op, const DeviceSegments& segments, void* scratch, cudaStream_t stream) {
  const Plan plan(op, segments);
  plan.K > 128 ? launch_chunks<256>(op, segments, plan, scratch, stream) : launch_chunks<128>(op, segments, plan, scratch, stream);
}

}  // namespace statescope::cuda

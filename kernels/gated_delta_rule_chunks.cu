// The gated delta rule in chunks of 64 rows on tensor cores (spec §9.5). With b_i = Σ_{m≤i} log α_m inside a chunk, Γ_ij = e^{b_i − b_j}:
//
//   T = (I + tril(diag(β) (K Kᵀ ⊙ Γ), −1))⁻¹      W = T diag(β e^b) K      U = T diag(β) V
//   u = U − W S₀      o = diag(scale e^b) Q S₀ + scale tril(Q Kᵀ ⊙ Γ) u      S = e^{b_C} S₀ + Kᵀ diag(e^{b_C − b}) u
//
// Four kernels; a span is a run of chunks:
//   prepare: what needs no state (−W, U, the scores, Q, K), all chunks at once, written as the fragments that the others multiply with
//   carry:   each span but a segment's last: its state S_local from zero, and its transition M, which is the state from I with U = 0
//   combine: the state each span begins with, in order: S_{j+1} = M_j S_j + S_local,j
//   read:    o of each span from the state it begins with, and the last state
// Segments of one span need only prepare and read. Products take bf16 and sum in float32, M S takes both of them as two bf16 each; T and
// all decays are float32.
#include "kernels/cuda_chunk.h"
#include "kernels/cuda_recurrence.h"

namespace statescope::cuda {
namespace {

constexpr int lanes = 32, prepare_warps = 8, most_warps = 8;
constexpr int row_blocks = chunk_rows / 16, score_blocks = row_blocks * (row_blocks + 1) / 2;

/// q, k or v.
struct Source {
  const void* data;
  std::int64_t stride, heads, width;
  bool by_fours;  // four numbers may be loaded at once
};

/// What prepare leaves of a head of a chunk, in pieces of 16 bytes: blocks of 16 × 16 numbers, one piece a lane. KP: K, padded.
template <int KP>
struct Layout {
  static constexpr int keys = KP / 16;
  static constexpr int w = 0;                                   // B of −W:     [keys, row_blocks], n: rows
  static constexpr int q = w + keys * row_blocks * lanes;       // B of Q:      [keys, row_blocks], n: rows
  static constexpr int scores = q + keys * row_blocks * lanes;  // B of scores: [n: rows' blocks, k: those up to it]
  static constexpr int k = scores + score_blocks * lanes;       // B of K:      [row_blocks, keys], n: channels
  static constexpr int scales = k + row_blocks * keys * lanes;  // Scales
  static constexpr int u = scales + (2 * chunk_rows + 4) / 4;   // C of Uᵀ:     [value blocks, row_blocks]
  static constexpr int u_block = row_blocks * lanes;
};

struct Scales {
  float from_start[chunk_rows];  // scale e^b
  float to_end[chunk_rows];      // e^{b_C − b}
  float total, unused[3];        // e^{b_C}
};

struct Problem {
  Source q, k, v;
  Operand log_decay, beta;
  Rows<const float> initial;  // [slots, H, K, V]
  Rows<float> final, o;       // [slots, H, K, V], [rows, H, V]
  std::int64_t H, K, V, value_blocks;
  float scale;
  DeviceSegments segments;
  Gather gather;
  std::int64_t span;   // rows
  int stages;          // of Passage
  uint4* chunks;       // [chunks, H] × Layout
  float4* states;      // [spans, H, value_blocks] × 16 columns of a state (Columns)
  uint4* transitions;  // [spans, H, keys, 2 keys, lanes]: B of Mᵀ as two bf16, {b0, b1} of the larger and of the smaller one

  template <int KP>
  __device__ uint4* chunk(std::int64_t number, std::int64_t h) const {
    return chunks + (number * H + h) * (Layout<KP>::u + value_blocks * Layout<KP>::u_block);
  }
  template <int KP>
  __device__ float4* state(std::int64_t span_number, std::int64_t h, std::int64_t block) const {
    return states + ((span_number * H + h) * value_blocks + block) * (KP / 8 * lanes);
  }
  template <int KP>
  __device__ uint4* transition(std::int64_t span_number, std::int64_t h) const {
    return transitions + (span_number * H + h) * (2 * Layout<KP>::keys * Layout<KP>::keys * lanes);
  }
};

__device__ int lane() { return static_cast<int>(threadIdx.x) % lanes; }
__device__ int warp() { return static_cast<int>(threadIdx.x) / lanes; }
/// Where a lane's numbers of a fragment begin (cuda_chunk.h).
__device__ int g() { return lane() / 4; }
__device__ int t() { return lane() % 4 * 2; }

// ---------------------------------------------------------------------------------------------------------------------------------------
// fragments of a matrix x [rows, stride] in shared memory

/// A [16, 16] from (row, column) on.
__device__ uint4 a_block(const Bf16* x, int stride, int row, int column) {
  return load_matrices(x + (row + lane() % 16) * stride + column + lane() / 16 * 8);
}
/// A [16, 16] of xᵀ: k runs along the rows from `row` on, m along the columns.
__device__ uint4 a_block_transposed(const Bf16* x, int stride, int row, int column) {
  return load_matrices_transposed(x + (row + lane() / 16 * 8 + lane() % 8) * stride + column + lane() / 8 % 2 * 8);
}
/// B [16, 8] twice, of xᵀ: n runs along the rows from `row` on, k along the columns.
__device__ uint4 b_block_transposed(const Bf16* x, int stride, int row, int column) {
  return load_matrices(x + (row + lane() / 16 * 8 + lane() % 8) * stride + column + lane() / 8 % 2 * 8);
}
/// B [16, 8] twice: k runs along the rows from `row` on, n along the columns.
__device__ uint4 b_block(const Bf16* x, int stride, int row, int column) {
  return load_matrices_transposed(x + (row + lane() % 16) * stride + column + lane() / 16 * 8);
}

/// The halves of a 16 × 16 block, as A.
__device__ uint4 as_a(const float (&left)[4], const float (&right)[4]) {
  return {packed(left[0], left[1]), packed(left[2], left[3]), packed(right[0], right[1]), packed(right[2], right[3])};
}
/// The same, as B twice, whose n runs along the block's rows.
__device__ uint4 as_b(const float (&left)[4], const float (&right)[4]) {
  return {packed(left[0], left[1]), packed(right[0], right[1]), packed(left[2], left[3]), packed(right[2], right[3])};
}

/// The halves of a 16 × 16 block of C ← themselves + A B
__device__ void multiply_block(float (&left)[4], float (&right)[4], const uint4& a, const uint4& b) {
  multiply(left, a, b.x, b.y);
  multiply(right, a, b.z, b.w);
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// prepare: a block makes a head of a chunk

template <int KP>
struct Prepared {
  static constexpr int value_columns = 16 * prepare_warps;  // at a time
  // Rows are 16 bytes longer than they need to be, so that eight rows of a matrix lie in different banks.
  static constexpr int key_stride = KP + 8, value_stride = value_columns + 8, T_stride = chunk_rows + 8, L_stride = chunk_rows + 4;
  static constexpr int T_size = chunk_rows * T_stride, q_size = chunk_rows * key_stride;

  Bf16 k[chunk_rows * key_stride], v[chunk_rows * value_stride];
  Bf16 q_then_T[2 * T_size > q_size ? 2 * T_size : q_size];  // Q; later −T diag(β e^b) and T diag(β)
  float L[chunk_rows * L_stride];                            // I + L is inverted; later T
  float b[chunk_rows], beta[chunk_rows], weight[chunk_rows];
  std::int32_t row[chunk_rows];  // of the operands

  __device__ Bf16* q() { return q_then_T; }
  __device__ Bf16* T_keys() { return q_then_T; }
  __device__ Bf16* T_values() { return q_then_T + T_size; }
};

template <class Number>
struct alignas(4 * sizeof(Number)) Quad {
  Number x[4];
};
__device__ float number(float x) { return x; }
__device__ float number(Bf16 x) { return __bfloat162float(x); }

/// to [64, width + 8] ← of the first n rows the `given` columns from `first` on, times `weight` [64] unless null; else zeros.
template <class Number, int width>
__device__ void fetch_rows(Bf16* to, const Source& x, const std::int32_t* row, const float* weight, int n, std::int64_t h, std::int64_t H,
                           std::int64_t first, std::int64_t given) {
  constexpr int quads = width / 4, threads = prepare_warps * lanes, steps = chunk_rows * quads / threads, together = 4;
  const Number* data = static_cast<const Number*>(x.data) + producer_head(h, x.heads, H) * x.width + first;
#pragma unroll
  for (int begin = 0; begin < steps; begin += together) {
    Quad<Number> held[together];
#pragma unroll
    for (int step = 0; step < together; ++step) {
      const int i = (begin + step) * threads + static_cast<int>(threadIdx.x), r = i / quads, c = i % quads * 4;
      const Number* from = data + row[r] * x.stride + c;
      held[step] = {};
      if (r < n && x.by_fours) {
        if (c < given) held[step] = *reinterpret_cast<const Quad<Number>*>(from);
      } else if (r < n) {
        for (int j = 0; j < 4; ++j) {
          if (c + j < given) held[step].x[j] = from[j];
        }
      }
    }
#pragma unroll
    for (int step = 0; step < together; ++step) {
      const int i = (begin + step) * threads + static_cast<int>(threadIdx.x), r = i / quads, c = i % quads * 4;
      const float w = weight ? weight[r] : 1;
      const Number(&y)[4] = held[step].x;
      *reinterpret_cast<uint2*>(to + r * (width + 8) + c) = {packed(w * number(y[0]), w * number(y[1])),
                                                             packed(w * number(y[2]), w * number(y[3]))};
    }
  }
}

/// The rows' places, their gates and b, by one warp, two rows a lane. Rows behind the n-th change nothing: β = 0, log α = 0.
template <int KP>
__device__ void fetch_gates(Prepared<KP>& s, const Problem& p, std::int64_t first_item, int n, std::int64_t h) {
  constexpr float least = -110;  // e^least is 0, and sums of it are still numbers
  float log_decay[2];
  for (int j = 0; j < 2; ++j) {
    const int i = 2 * lane() + j;
    const std::int64_t item = first_item + i;
    const std::int64_t row = i < n ? (p.gather.row_of ? p.gather.row_of[item] : item) : 0;
    const float x = i < n && p.log_decay.rows ? *p.log_decay.at(row, h, p.H) : 0;
    log_decay[j] = x < least ? least : x;
    s.row[i] = static_cast<std::int32_t>(row);
    s.beta[i] = i < n ? (p.beta.rows ? *p.beta.at(row, h, p.H) : 1) : 0;
    s.weight[i] = i < n && p.gather.weight ? p.gather.weight[item] : 1;
  }
  float before = log_decay[0] + log_decay[1];
  for (int distance = 1; distance < lanes; distance *= 2) {
    const float x = __shfl_up_sync(~0U, before, distance);
    if (lane() >= distance) before += x;
  }
  before = __shfl_up_sync(~0U, before, 1);
  if (lane() == 0) before = 0;
  s.b[2 * lane()] = before + log_decay[0];
  s.b[2 * lane() + 1] = before + log_decay[0] + log_decay[1];
}

__device__ void write_scales(Scales& scales, const float* b, float scale) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= chunk_rows) return;
  const float last = b[chunk_rows - 1];
  scales.from_start[i] = scale * __expf(b[i]);
  scales.to_end[i] = __expf(last - b[i]);
  if (i == 0) scales.total = __expf(last);
}

/// c [16, 64] ← rows of block `block` of X Kᵀ ⊙ Γ, each times factor(i), up to the diagonal (below it if `strict`); 0 behind it, as far as
/// the diagonal's block goes.
template <int KP, class Factor>
__device__ void masked_scores(float (&c)[2 * row_blocks][4], const Bf16* x, const Prepared<KP>& s, int block, bool strict,
                              const Factor& factor) {
#pragma unroll
  for (int key = 0; key < KP / 16; ++key) {
    const uint4 a = a_block(x, s.key_stride, 16 * block, 16 * key);
#pragma unroll
    for (int n = 0; n < row_blocks; ++n) {
      if (n <= block) multiply_block(c[2 * n], c[2 * n + 1], a, b_block_transposed(s.k, s.key_stride, 16 * n, 16 * key));
    }
  }
#pragma unroll
  for (int tile = 0; tile < 2 * row_blocks; ++tile) {
    if (tile / 2 > block) continue;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int i = 16 * block + g() + e / 2 * 8, j = 8 * tile + t() + e % 2;
      // Γ_ij = e^{b_i − b_j}
      c[tile][e] = j < i || (j == i && !strict) ? factor(i) * c[tile][e] * __expf(s.b[i] - s.b[j]) : 0;
    }
  }
}

/// L ← tril(diag(β) (K Kᵀ ⊙ Γ), −1), and the scores scale tril(Q Kᵀ ⊙ Γ): a block of rows of one of them a warp.
template <int KP>
__device__ void make_scores(Prepared<KP>& s, uint4* scores, float scale) {
  const int block = warp() % row_blocks;
  float c[2 * row_blocks][4] = {};
  if (warp() < row_blocks) {
    masked_scores<KP>(c, s.k, s, block, true, [&](int i) { return s.beta[i]; });
#pragma unroll
    for (int tile = 0; tile < 2 * row_blocks; ++tile) {
      if (tile / 2 > block) continue;
      float* L = s.L + (16 * block + g()) * s.L_stride + 8 * tile + t();
      *reinterpret_cast<float2*>(L) = {c[tile][0], c[tile][1]};
      *reinterpret_cast<float2*>(L + 8 * s.L_stride) = {c[tile][2], c[tile][3]};
    }
  } else {
    masked_scores<KP>(c, s.q(), s, block, false, [&](int) { return scale; });
#pragma unroll
    for (int n = 0; n < row_blocks; ++n) {
      if (n <= block) scores[(block * (block + 1) / 2 + n) * lanes + lane()] = as_b(c[2 * n], c[2 * n + 1]);
    }
  }
}

/// The fragments of Q and K, by warps from `first` on.
template <int KP>
__device__ void copy_keys(Prepared<KP>& s, uint4* chunk, int first) {
  constexpr int keys = KP / 16, blocks = keys * row_blocks;
  for (int i = warp() - first; i < 2 * blocks; i += prepare_warps - first) {
    if (i < blocks) {
      chunk[Layout<KP>::q + i * lanes + lane()] = b_block_transposed(s.q(), s.key_stride, i % row_blocks * 16, i / row_blocks * 16);
    } else {
      const int j = i - blocks;
      chunk[Layout<KP>::k + j * lanes + lane()] = b_block(s.k, s.key_stride, j / keys * 16, j % keys * 16);
    }
  }
}

constexpr int half = chunk_rows / 2;

/// L [half, half] ← (I + L)⁻¹, by a warp: forward substitution, a column a lane.
template <int stride>
__device__ void invert_half(float* L) {
  static_assert(half == lanes);
  float x[half];
#pragma unroll
  for (int i = 0; i < half; ++i) {
    // x_i = I_i − Σ_{j<i} L_ij x_j
    float sum[4] = {};
#pragma unroll
    for (int j = 0; j < i; j += 4) {
      const float4 l = *reinterpret_cast<const float4*>(L + i * stride + j);
      sum[0] = fmaf(l.x, x[j], sum[0]);
      if (j + 1 < i) sum[1] = fmaf(l.y, x[j + 1], sum[1]);
      if (j + 2 < i) sum[2] = fmaf(l.z, x[j + 2], sum[2]);
      if (j + 3 < i) sum[3] = fmaf(l.w, x[j + 3], sum[3]);
    }
    x[i] = (lane() == i ? 1.F : 0.F) - ((sum[0] + sum[1]) + (sum[2] + sum[3]));
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < half; ++i) L[i * stride + lane()] = x[i];
}

/// y ← factor · a b, all [half, half] with rows `stride` apart; four numbers a thread.
template <int stride>
__device__ void multiply_halves(float* y, const float* a, const float* b, float factor) {
  static_assert(half * half == 4 * prepare_warps * lanes);
  const int i = static_cast<int>(threadIdx.x) / (half / 4), c = static_cast<int>(threadIdx.x) % (half / 4) * 4;
  float4 sum{};
#pragma unroll 8
  for (int j = 0; j < half; ++j) {
    const float a_ij = a[i * stride + j];
    const float4 b_j = *reinterpret_cast<const float4*>(b + j * stride + c);
    sum = {fmaf(a_ij, b_j.x, sum.x), fmaf(a_ij, b_j.y, sum.y), fmaf(a_ij, b_j.z, sum.z), fmaf(a_ij, b_j.w, sum.w)};
  }
  *reinterpret_cast<float4*>(y + i * stride + c) = {factor * sum.x, factor * sum.y, factor * sum.z, factor * sum.w};
}

/// −T diag(β e^b) and T diag(β) as bf16, from T in float32.
template <int KP>
__device__ void write_T(Prepared<KP>& s) {
  for (int n = static_cast<int>(threadIdx.x); n < chunk_rows * half; n += prepare_warps * lanes) {
    const int i = n / half, j = n % half * 2;
    float values[2], keys[2];
    for (int e = 0; e < 2; ++e) {
      values[e] = j + e <= i ? s.beta[j + e] * s.L[i * s.L_stride + j + e] : 0;
      keys[e] = -values[e] * __expf(s.b[j + e]);
    }
    *reinterpret_cast<unsigned*>(s.T_keys() + i * s.T_stride + j) = packed(keys[0], keys[1]);
    *reinterpret_cast<unsigned*>(s.T_values() + i * s.T_stride + j) = packed(values[0], values[1]);
  }
}

/// −W = −T diag(β e^b) K: a warp makes one block of rows, half of the channels.
template <int KP>
__device__ void make_w(Prepared<KP>& s, uint4* w) {
  constexpr int own = KP / 32;
  const int block = warp() % row_blocks, first = warp() / row_blocks * own;
  float c[own][2][4] = {};
#pragma unroll 1  // for want of registers
  for (int j = 0; j <= block; ++j) {
    const uint4 a = a_block(s.T_keys(), s.T_stride, 16 * block, 16 * j);
#pragma unroll
    for (int key = 0; key < own; ++key) {
      multiply_block(c[key][0], c[key][1], a, b_block(s.k, s.key_stride, 16 * j, 16 * (first + key)));
    }
  }
#pragma unroll
  for (int key = 0; key < own; ++key) w[((first + key) * row_blocks + block) * lanes + lane()] = as_b(c[key][0], c[key][1]);
}

/// Uᵀ = (T diag(β) V)ᵀ: a warp makes 16 columns of U.
template <int KP>
__device__ void make_u(Prepared<KP>& s, uint4* u) {
  float c[2 * row_blocks][4] = {};
#pragma unroll
  for (int j = 0; j < row_blocks; ++j) {
    const uint4 a = a_block_transposed(s.v, s.value_stride, 16 * j, 16 * warp());
#pragma unroll
    for (int n = j; n < row_blocks; ++n) {
      multiply_block(c[2 * n], c[2 * n + 1], a, b_block_transposed(s.T_values(), s.T_stride, 16 * n, 16 * j));
    }
  }
#pragma unroll
  for (int n = 0; n < row_blocks; ++n) u[n * lanes + lane()] = as_a(c[2 * n], c[2 * n + 1]);
}

template <class Number, int KP>
__global__ void __launch_bounds__(prepare_warps* lanes, 3) prepare_kernel(Problem p) {
  extern __shared__ __align__(16) uint4 memory[];
  Prepared<KP>& s = *reinterpret_cast<Prepared<KP>*>(memory);
  constexpr int L_stride = Prepared<KP>::L_stride, value_columns = Prepared<KP>::value_columns;
  const std::int64_t h = blockIdx.x % p.H, chunk_number = blockIdx.x / p.H;
  const Piece piece = piece_of(p.segments, chunk_number, chunk_rows);
  if (piece.index >= piece.count) return;
  const int n = static_cast<int>(piece.rows);
  uint4* chunk = p.chunk<KP>(chunk_number, h);

  if (warp() == 0) fetch_gates(s, p, piece.first_row, n, h);
  __syncthreads();
  const float* weight = p.gather.weight ? s.weight : nullptr;
  fetch_rows<Number, KP>(s.k, p.k, s.row, weight, n, h, p.H, 0, p.K);
  fetch_rows<Number, KP>(s.q(), p.q, s.row, weight, n, h, p.H, 0, p.K);
  fetch_rows<Number, value_columns>(s.v, p.v, s.row, nullptr, n, h, p.H, 0, p.V);
  write_scales(*reinterpret_cast<Scales*>(chunk + Layout<KP>::scales), s.b, p.scale);
  __syncthreads();
  make_scores(s, chunk + Layout<KP>::scores, p.scale);
  __syncthreads();

  // With L = [L₁ 0; L₃ L₂], T = [T₁ 0; −T₂ L₃ T₁ T₂]; the upper right quarter holds L₃ T₁ meanwhile.
  float *L_1 = s.L, *L_2 = s.L + half * L_stride + half, *L_3 = s.L + half * L_stride, *product = s.L + half;
  if (warp() < 2) {
    invert_half<L_stride>(warp() == 0 ? L_1 : L_2);
  } else {
    copy_keys(s, chunk, 2);
  }
  __syncthreads();
  multiply_halves<L_stride>(product, L_3, L_1, 1);
  __syncthreads();
  multiply_halves<L_stride>(L_3, L_2, product, -1);
  __syncthreads();
  write_T(s);
  __syncthreads();

  make_w(s, chunk + Layout<KP>::w);
  for (std::int64_t first = 0; first < p.V; first += value_columns) {
    if (first > 0) {
      __syncthreads();
      fetch_rows<Number, value_columns>(s.v, p.v, s.row, nullptr, n, h, p.H, first, p.V - first);
      __syncthreads();
    }
    const std::int64_t block = first / 16 + warp();
    if (block < p.value_blocks) make_u(s, chunk + Layout<KP>::u + block * Layout<KP>::u_block);
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// carry, combine, read: a warp keeps 16 columns of a state, transposed, Sᵀ [16, KP], in registers

template <int KP>
struct Columns16 {
  float x[KP / 8][4];  // C

  /// Sᵀ of 16 channels as A.
  __device__ uint4 a(int key) const { return as_a(x[2 * key], x[2 * key + 1]); }

  /// `first`: the first of the columns of S [K, V].
  __device__ void read(const float* S, std::int64_t K, std::int64_t V, std::int64_t first) {
    each([&](std::int64_t r, std::int64_t c, float& number) { number = r < K && first + c < V ? S[r * V + first + c] : 0; });
  }
  __device__ void write(float* S, std::int64_t K, std::int64_t V, std::int64_t first) {
    each([&](std::int64_t r, std::int64_t c, const float& number) {
      if (r < K && first + c < V) S[r * V + first + c] = number;
    });
  }
  __device__ void read(const float4* state) {
#pragma unroll
    for (int tile = 0; tile < KP / 8; ++tile) {
      const float4 y = state[tile * lanes + lane()];
      x[tile][0] = y.x, x[tile][1] = y.y, x[tile][2] = y.z, x[tile][3] = y.w;
    }
  }
  __device__ void write(float4* state) const {
#pragma unroll
    for (int tile = 0; tile < KP / 8; ++tile) state[tile * lanes + lane()] = {x[tile][0], x[tile][1], x[tile][2], x[tile][3]};
  }
  /// Zeros, or the columns of I from `first` on.
  __device__ void clear() {
    each([](int, int, float& number) { number = 0; });
  }
  __device__ void set_identity(int first) {
    each([&](int r, int c, float& number) { number = r == first + c ? 1 : 0; });
  }

  /// uᵀ [16, 64] ← uᵀ − Sᵀ Wᵀ
  __device__ void subtract_prediction(float (&u)[2 * row_blocks][4], const uint4* w) const {
#pragma unroll
    for (int key = 0; key < KP / 16; ++key) {
      const uint4 S = a(key);
#pragma unroll
      for (int n = 0; n < row_blocks; ++n) multiply_block(u[2 * n], u[2 * n + 1], S, w[(key * row_blocks + n) * lanes + lane()]);
    }
  }
  /// Sᵀ ← e^{b_C} Sᵀ + uᵀ diag(e^{b_C − b}) K;  u as A, with its factors
  __device__ void advance(const uint4 (&u)[row_blocks], const uint4* k, float total) {
    each([&](int, int, float& number) { number *= total; });
#pragma unroll
    for (int j = 0; j < row_blocks; ++j) {
#pragma unroll
      for (int key = 0; key < KP / 16; ++key) multiply_block(x[2 * key], x[2 * key + 1], u[j], k[(j * (KP / 16) + key) * lanes + lane()]);
    }
  }

 private:
  /// visit(channel, column, number)
  template <class Visit>
  __device__ void each(const Visit& visit) {
#pragma unroll
    for (int tile = 0; tile < KP / 8; ++tile) {
#pragma unroll
      for (int e = 0; e < 4; ++e) visit(8 * tile + t() + e % 2, g() + e / 2 * 8, x[tile][e]);
    }
  }
};

/// Uᵀ of 16 columns, which prepare wrote as A.
__device__ void read_u(float (&u)[2 * row_blocks][4], const uint4* from) {
#pragma unroll
  for (int n = 0; n < row_blocks; ++n) {
    const uint4 x = from[n * lanes + lane()];
    float(&left)[4] = u[2 * n], (&right)[4] = u[2 * n + 1];
    left[0] = first_of(x.x), left[1] = second_of(x.x), left[2] = first_of(x.y), left[3] = second_of(x.y);
    right[0] = first_of(x.z), right[1] = second_of(x.z), right[2] = first_of(x.w), right[3] = second_of(x.w);
  }
}

__device__ void as_a(uint4 (&a)[row_blocks], const float (&u)[2 * row_blocks][4]) {
#pragma unroll
  for (int n = 0; n < row_blocks; ++n) a[n] = as_a(u[2 * n], u[2 * n + 1]);
}

/// Column i of c [16, 8 · tiles] times factor[i].
template <int tiles>
__device__ void scale_columns(float (&c)[tiles][4], const float* factor) {
#pragma unroll
  for (int tile = 0; tile < tiles; ++tile) {
    const float2 f = *reinterpret_cast<const float2*>(factor + 8 * tile + t());
    c[tile][0] *= f.x, c[tile][1] *= f.y, c[tile][2] *= f.x, c[tile][3] *= f.y;
  }
}

/// Starts to copy n pieces of 16 bytes, by all threads of the block.
__device__ void copy_pieces(uint4* to, const uint4* from, int n) {
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) {
    __pipeline_memcpy_async(to + i, from + i, sizeof(uint4));
  }
}

/// The chunks of a span as they pass through shared memory: −W, what lies in Layout from `Rest` to its end, and the block's part of U. With
/// two stages the next chunk arrives while this one is in use.
template <int KP, int Rest>
struct Passage {
  static constexpr int w_size = Layout<KP>::q - Layout<KP>::w, rest_size = Layout<KP>::u - Rest;
  /// Of a stage, in pieces of 16 bytes.
  static constexpr __host__ __device__ int size(int value_blocks) { return w_size + rest_size + value_blocks * Layout<KP>::u_block; }

  uint4* memory;
  const uint4* chunk;   // of this head, the first one of the span
  std::int64_t count;   // of the span's chunks
  std::int64_t next;    // from a chunk to the next one
  int u_first, u_size;  // the block's part of U
  int stage_size;       // 0: one stage

  /// Starts with the span's first chunk.
  __device__ void begin() const {
    if (stage_size > 0 && count > 0) fetch(0);
  }
  /// Chunk c is there, for all threads, and all have left the one before it.
  __device__ void reach(std::int64_t c) const {
    if (stage_size == 0) {
      __syncthreads();
      fetch(c);
    }
    __pipeline_wait_prior(0);
    __syncthreads();
    if (stage_size > 0 && c + 1 < count) fetch(c + 1);
  }
  __device__ const uint4* w(std::int64_t c) const { return memory + c % 2 * stage_size; }
  /// What lies at `place` of the Layout's rest.
  __device__ const uint4* rest(std::int64_t c, int place) const { return w(c) + w_size + place - Rest; }
  __device__ const Scales& scales(std::int64_t c) const { return *reinterpret_cast<const Scales*>(rest(c, Layout<KP>::scales)); }
  __device__ const uint4* u(std::int64_t c, int block) const { return w(c) + w_size + rest_size + block * Layout<KP>::u_block; }

 private:
  __device__ void fetch(std::int64_t c) const {
    uint4* to = memory + c % 2 * stage_size;
    const uint4* from = chunk + c * next;
    copy_pieces(to, from + Layout<KP>::w, w_size);
    copy_pieces(to + w_size, from + Rest, rest_size);
    copy_pieces(to + w_size + rest_size, from + Layout<KP>::u + u_first, u_size);
    __pipeline_commit();
  }
};

/// The warps of a block take value blocks (16 columns of V) from `first` on; those behind the last one have none.
template <int KP, int Rest>
__device__ Passage<KP, Rest> passage_of(const Problem& p, uint4* memory, const Piece& span, std::int64_t h, std::int64_t first) {
  const std::int64_t number = first_piece(p.segments, span.segment, chunk_rows) + span.index * (p.span / chunk_rows);
  const int warps = static_cast<int>(blockDim.x) / lanes;
  const auto blocks = static_cast<int>(max(std::int64_t{0}, min(p.value_blocks - first, std::int64_t{warps})));
  return {memory,
          p.chunk<KP>(number, h),
          (span.rows + chunk_rows - 1) / chunk_rows,
          p.chunk<KP>(1, 0) - p.chunk<KP>(0, 0),
          static_cast<int>(first) * Layout<KP>::u_block,
          blocks * Layout<KP>::u_block,
          p.stages == 2 ? Passage<KP, Rest>::size(warps) : 0};
}

/// M, whose columns from 16 · block on a warp holds, as what combine multiplies with.
template <int KP>
__device__ void write_transition(uint4* transition, const Columns16<KP>& M, int block) {
#pragma unroll
  for (int tile = 0; tile < KP / 8; ++tile) {
    const float(&x)[4] = M.x[tile];
    const unsigned upper = packed(x[0], x[1]), lower = packed(x[2], x[3]);
    transition[(block * (KP / 8) + tile) * lanes + lane()] = {
        transposed(upper), transposed(lower), transposed(packed_rest(x[0], x[1], upper)), transposed(packed_rest(x[2], x[3], lower))};
  }
}

/// A block per (span, head, group of 16 columns a warp): the columns of the state, then those of the transition. A segment's first span
/// starts from its initial state and needs no transition; a last one, and the only one, needs nothing.
template <int KP>
__global__ void __launch_bounds__(most_warps* lanes, 2) carry_kernel(Problem p) {
  using At = Layout<KP>;
  extern __shared__ __align__(16) uint4 memory[];
  const std::int64_t warps = blockDim.x / lanes, groups = (p.value_blocks + At::keys + warps - 1) / warps;
  const std::int64_t first = blockIdx.x % groups * warps, h = blockIdx.x / groups % p.H, block = first + warp();
  const Piece span = piece_of(p.segments, blockIdx.x / groups / p.H, p.span);
  if (span.index + 1 >= span.count || (span.index == 0 && first >= p.value_blocks)) return;
  const std::int64_t number = span.number + span.index;
  const int transition_block = static_cast<int>(block - p.value_blocks);
  const bool of_state = transition_block < 0, of_transition = !of_state && transition_block < At::keys && span.index > 0;

  const auto passage = passage_of<KP, At::k>(p, memory, span, h, first);
  passage.begin();
  Columns16<KP> S;
  if (of_state && span.index == 0) {
    S.read(p.initial.row(p.segments.slot_of(span.segment)) + h * p.K * p.V, p.K, p.V, 16 * block);
    S.write(p.state<KP>(number, h, block));  // read may overwrite the initial state before all spans have seen it
  } else if (of_transition) {
    S.set_identity(16 * transition_block);
  } else {
    S.clear();
  }

  for (std::int64_t c = 0; c < passage.count; ++c) {
    passage.reach(c);
    float u[2 * row_blocks][4] = {};
    if (of_state) read_u(u, passage.u(c, warp()));
    // u = U − W S₀
    S.subtract_prediction(u, passage.w(c));
    scale_columns(u, passage.scales(c).to_end);
    uint4 scaled[row_blocks];
    as_a(scaled, u);
    S.advance(scaled, passage.rest(c, At::k), passage.scales(c).total);
  }
  if (of_state) S.write(p.state<KP>(number + 1, h, block));
  if (of_transition) write_transition(p.transition<KP>(number, h), S, transition_block);
}

/// 16 columns of 16 channels of a state as A, twice: rounded, and what rounding lost.
struct Split {
  uint4 large, small;
};
__device__ Split split(const float (&left)[4], const float (&right)[4]) {
  const uint4 x = as_a(left, right);
  return {x,
          {packed_rest(left[0], left[1], x.x), packed_rest(left[2], left[3], x.y), packed_rest(right[0], right[1], x.z),
           packed_rest(right[2], right[3], x.w)}};
}

/// A block per (segment, head, 16 columns); warp w makes the channels 16 w … of each span's state.
template <int KP>
__global__ void __launch_bounds__(KP / 16 * lanes, 1) combine_kernel(Problem p) {
  constexpr int keys = KP / 16;
  __shared__ Split state[2][keys][lanes];
  const std::int64_t block = blockIdx.x % p.value_blocks, h = blockIdx.x / p.value_blocks % p.H, s = blockIdx.x / p.value_blocks / p.H;
  const std::int64_t first = first_piece(p.segments, s, p.span), rows = p.segments.cu_seqlens[s + 1] - p.segments.cu_seqlens[s];
  const std::int64_t spans = (rows + p.span - 1) / p.span;
  const int own = 2 * warp() * lanes + lane();  // of the lane's numbers in a state

  float S[2][4];
  const auto load = [&](float(&to)[2][4], std::int64_t span) {
    for (int tile = 0; tile < 2; ++tile) {
      const float4 x = p.state<KP>(span, h, block)[own + tile * lanes];
      to[tile][0] = x.x, to[tile][1] = x.y, to[tile][2] = x.z, to[tile][3] = x.w;
    }
  };
  uint4 M[keys][2], next[keys][2];
  const auto load_transition = [&](uint4(&to)[keys][2], std::int64_t span) {
#pragma unroll
    for (int key = 0; key < keys; ++key) {
      for (int tile = 0; tile < 2; ++tile) to[key][tile] = p.transition<KP>(span, h)[2 * key * keys * lanes + own + tile * lanes];
    }
  };

  if (spans < 3) return;
  load(S, first + 1);
  load_transition(next, first + 1);
  for (std::int64_t j = 1; j + 1 < spans; ++j) {
    state[j % 2][warp()][lane()] = split(S[0], S[1]);
#pragma unroll
    for (int key = 0; key < keys; ++key) {
      for (int tile = 0; tile < 2; ++tile) M[key][tile] = next[key][tile];
    }
    load(S, first + j + 1);
    if (j + 2 < spans) load_transition(next, first + j + 1);
    __syncthreads();
    // S_{j+1} = M_j S_j + S_local,j, without the product of what rounding lost of both
    float large_small[2][4] = {}, small_large[2][4] = {};
#pragma unroll
    for (int key = 0; key < keys; ++key) {
      const Split x = state[j % 2][key][lane()];
#pragma unroll
      for (int tile = 0; tile < 2; ++tile) {
        const uint4& m = M[key][tile];
        multiply(S[tile], x.large, m.x, m.y);
        multiply(large_small[tile], x.large, m.z, m.w);
        multiply(small_large[tile], x.small, m.x, m.y);
      }
    }
    for (int tile = 0; tile < 2; ++tile) {
      for (int e = 0; e < 4; ++e) S[tile][e] += large_small[tile][e] + small_large[tile][e];
      p.state<KP>(first + j + 1, h, block)[own + tile * lanes] = {S[tile][0], S[tile][1], S[tile][2], S[tile][3]};
    }
  }
}

/// oᵀ [16, 32] of the n rows from first_item on to where they belong; `column` is the first of the 16.
__device__ void write_o(const Problem& p, const float (&o)[row_blocks][4], std::int64_t first_item, int n, std::int64_t h,
                        std::int64_t column) {
#pragma unroll
  for (int tile = 0; tile < row_blocks; ++tile) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int i = 8 * tile + t() + e % 2;
      const std::int64_t c = column + g() + e / 2 * 8;
      if (i >= n || c >= p.V) continue;
      if (p.gather.row_of) {
        atomicAdd(p.o.row(p.gather.row_of[first_item + i]) + h * p.V + c, o[tile][e]);
      } else {
        p.o.row(first_item + i)[h * p.V + c] = o[tile][e];
      }
    }
  }
}

/// A block per (span, head, group of 16 columns a warp).
template <int KP>
__global__ void __launch_bounds__(most_warps* lanes, 1) read_kernel(Problem p) {
  using At = Layout<KP>;
  extern __shared__ __align__(16) uint4 memory[];
  const std::int64_t warps = blockDim.x / lanes, groups = (p.value_blocks + warps - 1) / warps;
  const std::int64_t first = blockIdx.x % groups * warps, h = blockIdx.x / groups % p.H, block = first + warp();
  const Piece span = piece_of(p.segments, blockIdx.x / groups / p.H, p.span);
  if (span.index >= max(span.count, std::int64_t{1})) return;
  const std::int64_t slot = p.segments.slot_of(span.segment);
  const bool active = block < p.value_blocks;

  const auto passage = passage_of<KP, At::q>(p, memory, span, h, first);
  passage.begin();
  Columns16<KP> S;
  if (!active) {
    S.clear();
  } else if (span.count > 1) {
    S.read(p.state<KP>(span.number + span.index, h, block));
  } else {
    S.read(p.initial.row(slot) + h * p.K * p.V, p.K, p.V, 16 * block);
  }

  for (std::int64_t c = 0; c < passage.count; ++c) {
    passage.reach(c);
    float u[2 * row_blocks][4] = {};
    if (active) read_u(u, passage.u(c, warp()));
    // u = U − W S₀
    S.subtract_prediction(u, passage.w(c));
    uint4 plain[row_blocks], scaled[row_blocks];
    as_a(plain, u);
    scale_columns(u, passage.scales(c).to_end);
    as_a(scaled, u);

    const uint4 *q = passage.rest(c, At::q), *scores = passage.rest(c, At::scores);
#pragma unroll
    for (int part = 0; part < 2; ++part) {  // half of the rows at a time, for want of registers
      constexpr int own = row_blocks / 2;
      float o[2 * own][4] = {};
#pragma unroll
      for (int key = 0; key < At::keys; ++key) {
        const uint4 a = S.a(key);
#pragma unroll
        for (int n = 0; n < own; ++n) {
          multiply_block(o[2 * n], o[2 * n + 1], a, q[(key * row_blocks + part * own + n) * lanes + lane()]);
        }
      }
      // o = diag(scale e^b) Q S₀ + scale tril(Q Kᵀ ⊙ Γ) u
      scale_columns(o, passage.scales(c).from_start + part * half);
#pragma unroll
      for (int n = 0; n < own; ++n) {
        const int row_block = part * own + n;
#pragma unroll
        for (int j = 0; j <= row_block; ++j) {
          multiply_block(o[2 * n], o[2 * n + 1], plain[j], scores[(row_block * (row_block + 1) / 2 + j) * lanes + lane()]);
        }
      }
      const std::int64_t done = c * chunk_rows + part * half;
      if (active) {
        write_o(p, o, span.first_row + done, static_cast<int>(min(span.rows - done, std::int64_t{half})), h, 16 * block);
      }
    }
    S.advance(scaled, passage.rest(c, At::k), passage.scales(c).total);
  }
  if (active && span.index + 1 >= span.count) S.write(p.final.row(slot) + h * p.K * p.V, p.K, p.V, 16 * block);
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

std::int64_t rounded_up(std::int64_t x, std::int64_t unit) { return (x + unit - 1) / unit * unit; }

/// Shapes that decide how much is launched, and how scratch is divided.
struct Plan {
  std::int64_t H, V, segments, rows, KP, value_blocks, warps, span;
  bool spans;  // some segment may have several

  Plan(const GatedDeltaRule& op, std::int64_t segments_, std::int64_t longest, const Gather& gather)
      : H(op.initial_state.shape[1]),
        V(op.initial_state.shape[3]),
        segments(segments_),
        rows(gather.row_of ? gather.items : op.o.rows()),
        KP(op.initial_state.shape[2] <= 64 ? 64 : 128),
        value_blocks((V + 15) / 16),
        warps(std::min<std::int64_t>(value_blocks, most_warps)) {
    constexpr std::int64_t wanted_blocks = 132, shortest = 256;  // blocks that fill a large GPU; rows that are worth a span
    span = std::max(shortest, rounded_up(rows * H * groups(0) / wanted_blocks, chunk_rows));
    spans = longest > span;
  }

  std::int64_t groups(std::int64_t more_blocks) const { return (value_blocks + more_blocks + warps - 1) / warps; }
  std::int64_t chunk_count() const { return most_pieces(rows, segments, chunk_rows); }
  std::int64_t span_count() const { return most_pieces(rows, segments, span); }

  std::int64_t chunk_pieces() const {
    const std::int64_t u = KP == 64 ? Layout<64>::u : Layout<128>::u, u_block = Layout<64>::u_block;
    return chunk_count() * H * (u + value_blocks * u_block);
  }
  std::int64_t state_pieces() const { return spans ? span_count() * H * value_blocks * (KP / 8) * lanes : 0; }
  std::int64_t transition_pieces() const { return spans ? span_count() * H * (KP / 16) * (KP / 8) * lanes : 0; }
};

Source source(ConstTensor x) {
  const std::size_t fours = 4 * size_of(x.dtype);
  const std::int64_t width = x.shape[2];
  return {x.data, x.stride, x.shape[1], width,
          reinterpret_cast<std::uintptr_t>(x.data) % fours == 0 && x.stride % 4 == 0 && width % 4 == 0};
}

/// Two where the device has room for them.
int stages(int pieces) {
  int device = 0, most = 0;
  check(cudaGetDevice(&device), "the device");
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "the device's shared memory");
  return 2 * pieces * static_cast<int>(sizeof(uint4)) <= most ? 2 : 1;
}

template <int KP>
void launch_chunks(const Plan& plan, Problem p, bool bf16, cudaStream_t stream) {
  using At = Layout<KP>;
  constexpr const char* name = "gated_delta_rule_chunks";
  const auto blocks = [&](std::int64_t pieces, std::int64_t groups) { return static_cast<unsigned>(pieces * plan.H * groups); };
  const auto threads = static_cast<unsigned>(plan.warps * lanes);
  const auto warps = static_cast<int>(plan.warps);
  const auto bytes = [&](int size) { return static_cast<std::size_t>(p.stages * size) * sizeof(uint4); };
  launch(name, bf16 ? prepare_kernel<Bf16, KP> : prepare_kernel<float, KP>, blocks(plan.chunk_count(), 1), prepare_warps * lanes,
         sizeof(Prepared<KP>), stream, p);
  if (plan.spans) {
    p.stages = stages(Passage<KP, At::k>::size(warps));
    launch(name, carry_kernel<KP>, blocks(plan.span_count(), plan.groups(At::keys)), threads, bytes(Passage<KP, At::k>::size(warps)),
           stream, p);
    launch(name, combine_kernel<KP>, blocks(plan.segments, plan.value_blocks), KP / 16 * lanes, 0, stream, p);
  }
  p.stages = stages(Passage<KP, At::q>::size(warps));
  launch(name, read_kernel<KP>, blocks(plan.span_count(), plan.groups(0)), threads, bytes(Passage<KP, At::q>::size(warps)), stream, p);
}

}  // namespace

bool gated_delta_rule_chunks_supported(const GatedDeltaRule& op) {
  constexpr std::int64_t most_channels = 128;
  const bool known = op.q.dtype == DType::f32 || op.q.dtype == DType::bf16;
  return op.initial_state.shape[2] <= most_channels && known && op.k.dtype == op.q.dtype && op.v.dtype == op.q.dtype;
}

std::size_t gated_delta_rule_chunks_scratch(const GatedDeltaRule& op, std::int64_t segments, std::int64_t longest, const Gather& gather) {
  const Plan plan(op, segments, longest, gather);
  return static_cast<std::size_t>(plan.chunk_pieces() + plan.state_pieces() + plan.transition_pieces()) * sizeof(uint4);
}

void gated_delta_rule_chunks(const GatedDeltaRule& op, const DeviceSegments& segments, void* scratch, cudaStream_t stream,
                             const Gather& gather) {
  const Plan plan(op, segments.count, segments.longest, gather);
  if (plan.H * plan.V == 0) return;
  const auto chunks = static_cast<uint4*>(scratch);
  const auto states = reinterpret_cast<float4*>(chunks + plan.chunk_pieces());
  const Problem p{source(op.q),
                  source(op.k),
                  source(op.v),
                  operand(op.log_decay),
                  operand(op.beta),
                  f32(op.initial_state),
                  f32(op.final_state),
                  f32(op.o),
                  plan.H,
                  op.initial_state.shape[2],
                  plan.V,
                  plan.value_blocks,
                  op.scale,
                  segments,
                  gather,
                  plan.span,
                  1,
                  chunks,
                  states,
                  reinterpret_cast<uint4*>(states + plan.state_pieces())};
  const bool bf16 = op.q.dtype == DType::bf16;
  if (plan.KP == 64) return launch_chunks<64>(plan, p, bf16, stream);
  launch_chunks<128>(plan, p, bf16, stream);
}

}  // namespace statescope::cuda

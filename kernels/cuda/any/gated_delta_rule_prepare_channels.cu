// The first kernel of the delta rule in chunks whose key channels decay each by itself (spec §17.3). Γ of a head becomes a sum over
// channels:
//
//  (K Kᵀ ⊙ Γ)_ij = Σ_c k_ic k_jc e^{b_ic − b_jc},  likewise the scores of q
//
// which floating point holds as a product of two factors only where b is near. So blocks of 16 × 16 below the diagonal are products on
// tensor cores, with both factors taken at the row r before the later block (both are ≤ 1), and those on the diagonal are summed as they
// stand.
#include "kernels/cuda/any/delta_prepare.h"
#include "kernels/cuda/common/decays.h"

namespace statescope::cuda::delta {
namespace {

constexpr int pairs_of_block = 16 * 17 / 2;                                                                 // i ≥ j
constexpr int of_lanes = (lower_blocks + 2 * row_blocks - 1) / (2 * row_blocks);                            // blocks a warp
constexpr int pairs = row_blocks * pairs_of_block, of_threads = (pairs + 2 * threads - 1) / (2 * threads);  // pairs a thread
constexpr float most_log2 = 112;  // the largest decay, as a power of two, inside a block: bfloat16 holds both factors

template <int KP>
struct PreparedChannels {
  // Rows are 16 bytes longer than they need to be, so that eight rows of a matrix lie in different banks.
  static constexpr int key_stride = KP + 8, L_stride = chunk_rows + 4, b_stride = KP + 4;
  union {
    struct {
      Bf16 k[chunk_rows * key_stride], q[chunk_rows * key_stride];
    };
    struct {
      float L[chunk_rows * L_stride];    // I + L is inverted; its diagonal blocks become those of (I + L)⁻¹
      float scores[row_blocks][16][17];  // those on the diagonal, where a block decays by more than most_log2
    };
  };
  float b[chunk_rows * b_stride];  // as powers of two
  float beta[chunk_rows];
};

/// b ← Σ_{m≤i} log2 α_m of every channel: a thread has a channel of some blocks of rows, then adds what the rows before them sum to.
/// Returns whether one of its blocks decays by more than most_log2.
template <int KP>
__device__ bool sum_decays(PreparedChannels<KP>& s, const F32Rows& log_decay, std::int64_t first_row, int n, std::int64_t h,
                           std::int64_t H) {
  constexpr float least = -110;  // e^least is 0, and sums of it are still numbers
  constexpr int parts = 2 * threads / KP, rows = chunk_rows / parts;
  const int c = static_cast<int>(threadIdx.x) % KP, part = static_cast<int>(threadIdx.x) / KP;
  const float* from = log_decay.at(first_row + part * rows, h, H) + c;
  const int there = c < log_decay.width ? n - part * rows : 0;
  float* const b = s.b + part * rows * s.b_stride + c;
  float sum = 0;
#pragma unroll 16
  for (int i = 0; i < rows; ++i) {
    const float x = i < there ? from[i * log_decay.rows.stride] : 0;
    sum += log2_e * (x < least ? least : x);
    b[i * s.b_stride] = sum;
  }
  __syncthreads();
  float before = 0;
  for (int earlier = 0; earlier < part; ++earlier) before += s.b[(rows * (earlier + 1) - 1) * s.b_stride + c];
  __syncthreads();
  if (part > 0) {
#pragma unroll 16
    for (int i = 0; i < rows; ++i) b[i * s.b_stride] += before;
  }
  bool strong = false;
  for (int i = 0; i < rows; i += 16) strong |= b[i * s.b_stride] - b[(i + 15) * s.b_stride] > most_log2;
  return strong;
}

__device__ unsigned times(unsigned pair, float2 factor) { return packed(first_of(pair) * factor.x, second_of(pair) * factor.y); }

/// Rows of block n against those of block m ≤ n, at the row r, the first of block n: k e^{b − r} (k e^{r − b})ᵀ and q e^{b − r} (k e^{r −
/// b})ᵀ; by a warp.
template <int KP>
__device__ void multiply_blocks(Block& with_k, Block& with_q, const PreparedChannels<KP>& s, int n, int m) {
  const float *const later = s.b + 16 * n * s.b_stride + t(), *const earlier = s.b + 16 * m * s.b_stride + t();
#pragma unroll 2
  for (int key = 0; key < KP; key += 16) {
    // Of an A and of a B of xᵀ a lane holds rows g and g + 8, columns t and t + 8.
    const uint4 k = a_block(s.k, s.key_stride, 16 * n, key), q = a_block(s.q, s.key_stride, 16 * n, key);
    const uint4 past = b_block_transposed(s.k, s.key_stride, 16 * m, key);
    const auto two = [&](const float* x, int row, int column) {
      return *reinterpret_cast<const float2*>(x + row * s.b_stride + key + column);
    };
    const float2 r[2] = {two(later, 0, 0), two(later, 0, 8)};
    const auto rise = [&](int row, int right) { return exp2_of(two(later, row, 8 * right) + -r[right]); };
    const auto fall = [&](int row, int right) { return exp2_of(r[right] + -two(earlier, row, 8 * right)); };
    const float2 first = rise(g(), 0), second = rise(g() + 8, 0), third = rise(g(), 1), fourth = rise(g() + 8, 1);
    const uint4 B{times(past.x, fall(g(), 0)), times(past.y, fall(g(), 1)), times(past.z, fall(g() + 8, 0)),
                  times(past.w, fall(g() + 8, 1))};
    multiply(with_k, {times(k.x, first), times(k.y, second), times(k.z, third), times(k.w, fourth)}, B);
    multiply(with_q, {times(q.x, first), times(q.y, second), times(q.z, third), times(q.w, fourth)}, B);
  }
}

/// A block of a lower triangle: column j of row i.
struct LowerBlock {
  int i, j;
  __device__ explicit LowerBlock(int number) : i(number < 1 ? 0 : number < 3 ? 1 : number < 6 ? 2 : 3), j(number - first_block(i)) {}
};

/// Rows i ≥ j of a block on the diagonal: their number among all such pairs says which.
struct Pair {
  int block, i, j;
  __device__ explicit Pair(int number) : block(number / pairs_of_block) {
    const int p = number % pairs_of_block;
    i = static_cast<int>((sqrtf(8.F * static_cast<float>(p) + 1) - 1) / 2);
    i += (i + 1) * (i + 2) / 2 <= p;
    j = p - i * (i + 1) / 2;
  }
};

/// Σ_c k_ic k_jc e^{b_ic − b_jc}, and of q_i.
template <int KP>
__device__ float2 multiply_rows(const PreparedChannels<KP>& s, int i, int j) {
  const auto four = [&](const Bf16* x, int row, int c) { return *reinterpret_cast<const uint2*>(x + row * s.key_stride + c); };
  const auto decays = [&](int row, int c) { return *reinterpret_cast<const float4*>(s.b + row * s.b_stride + c); };
  float with_k = 0, with_q = 0;
#pragma unroll 2
  for (int c = 0; c < KP; c += 4) {
    const uint2 k = four(s.k, i, c), q = four(s.q, i, c), past = four(s.k, j, c);
    const float4 b = decays(i, c), b_past = decays(j, c);
    const float x[4] = {first_of(past.x) * exp2_of(b.x - b_past.x), second_of(past.x) * exp2_of(b.y - b_past.y),
                        first_of(past.y) * exp2_of(b.z - b_past.z), second_of(past.y) * exp2_of(b.w - b_past.w)};
    with_k = fmaf(first_of(k.x), x[0], fmaf(second_of(k.x), x[1], fmaf(first_of(k.y), x[2], fmaf(second_of(k.y), x[3], with_k))));
    with_q = fmaf(first_of(q.x), x[0], fmaf(second_of(q.x), x[1], fmaf(first_of(q.y), x[2], fmaf(second_of(q.y), x[3], with_q))));
  }
  return {with_k, with_q};
}

/// e^b k, e^b q and e^{b_C − b} k of the n rows, from row `to` of the copies on.
template <int KP>
__device__ void write_decayed(const PreparedChannels<KP>& s, const Problem& p, std::int64_t to, int n, std::int64_t h) {
  constexpr int fours = KP / 4, step = 2 * threads / fours;
  const Bf16Rows &q = p.operands[0].q, &k = p.operands[0].k;
  const int c = static_cast<int>(threadIdx.x) % fours * 4;
  if (c >= k.width) return;
  const float4 last = *reinterpret_cast<const float4*>(s.b + (chunk_rows - 1) * s.b_stride + c);
  Bf16 *const to_q = q.at(to, h, p.H) + c, *const to_k = k.at(to, h, p.H) + c, *const to_end = p.k_at_end.at(to, h, p.H) + c;
  const auto stride = static_cast<int>(k.stride);
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x) / fours; i < n; i += step) {
    const float4 b = *reinterpret_cast<const float4*>(s.b + i * s.b_stride + c);
    const auto put = [&](Bf16* rows, const Bf16* x, float2 first, float2 second) {
      const uint2 y = *reinterpret_cast<const uint2*>(x + i * s.key_stride + c);
      *reinterpret_cast<uint2*>(rows + i * stride) = uint2{times(y.x, first), times(y.y, second)};
    };
    const float2 first = exp2_of(float2{b.x, b.y}), second = exp2_of(float2{b.z, b.w});
    put(to_k, s.k, first, second);
    put(to_q, s.q, first, second);
    put(to_end, s.k, exp2_of(float2{last.x - b.x, last.y - b.y}), exp2_of(float2{last.z - b.z, last.w - b.w}));
  }
}

/// A thread block has a head of a chunk.
template <class Number, int KP>
__global__ void __launch_bounds__(2 * threads, KP <= 128 ? 3 : 1) prepare_channels_kernel(const __grid_constant__ Problem p) {
  extern __shared__ __align__(16) uint4 memory[];
  auto& s = *reinterpret_cast<PreparedChannels<KP>*>(memory);
  const std::int64_t h = blockIdx.x % p.H, number = blockIdx.x / p.H, copy = number * chunk_rows;
  const Piece piece = piece_of(p.segments, number, chunk_rows);
  if (piece.index >= piece.count) return;
  const auto n = static_cast<int>(piece.rows), thread = static_cast<int>(threadIdx.x);
  const F32Rows& beta = p.operands[0].beta;
  auto& chunk = reinterpret_cast<ChannelChunk<KP>*>(p.chunks)[blockIdx.x];
  const auto put_scores = [&](int i, int j, const Block& scores) {
    chunk.scores[(first_block(i) + j) * lanes + lane()] = as_b_transposed(as_a(scores));
  };

  // Rows behind the n-th change nothing: β = 0, α = 1, k = 0.
  if (thread < chunk_rows) s.beta[thread] = thread >= n ? 0 : beta.rows ? *beta.at(piece.first_row + thread, h, p.H) : 1;
  const bool of_q = thread >= threads;
  const RawOperand& given = of_q ? p.given_q : p.given_k;
  visit_rows<Number, KP / 4>(at<Number>(given, piece.first_row, h, p.H), given, n, p.K, [&](int r, int c, const uint2& four) {
    *reinterpret_cast<uint2*>((of_q ? s.q : s.k) + r * s.key_stride + c) = four;
  });
  const bool strong = __syncthreads_or(sum_decays(s, p.operands[0].log_decay, piece.first_row, n, h, p.H));

  // What goes to L waits in registers for its place, which k and q still have.
  Block of_k[of_lanes];
  float2 of_pairs[of_threads];
#pragma unroll
  for (int x = 0; x < of_lanes; ++x) {
    const int number = warp() + 2 * row_blocks * x;
    const LowerBlock at(number);
    if (number >= lower_blocks || (strong && at.i == at.j)) continue;
    Block scores;
    multiply_blocks(of_k[x], scores, s, at.i, at.j);
    if (at.i == at.j) scores.each([](int r, int c, float& score) { score = c <= r ? score : 0; });
    put_scores(at.i, at.j, scores);
  }
  if (strong) {
#pragma unroll
    for (int x = 0; x < of_threads; ++x) {
      const int number = thread + 2 * threads * x;
      if (number >= pairs) continue;
      const Pair pair(number);
      of_pairs[x] = multiply_rows(s, 16 * pair.block + pair.i, 16 * pair.block + pair.j);
    }
  }
  write_decayed(s, p, copy, n, h);
  __syncthreads();
#pragma unroll
  for (int x = 0; x < of_lanes; ++x) {
    const int number = warp() + 2 * row_blocks * x;
    const LowerBlock at(number);
    if (number >= lower_blocks || (strong && at.i == at.j)) continue;
    of_k[x].each([&](int r, int c, float y) {
      const int row = 16 * at.i + r, column = 16 * at.j + c;
      s.L[row * s.L_stride + column] = column < row ? s.beta[row] * y : 0;
    });
  }
  if (strong) {
#pragma unroll
    for (int x = 0; x < of_threads; ++x) {
      const int number = thread + 2 * threads * x;
      if (number >= pairs) continue;
      const Pair pair(number);
      const int row = 16 * pair.block + pair.i;
      s.L[row * s.L_stride + 16 * pair.block + pair.j] = pair.j < pair.i ? s.beta[row] * of_pairs[x].x : 0;
      s.scores[pair.block][pair.i][pair.j] = of_pairs[x].y;
    }
  }
  __syncthreads();

  if (warp() < 2) invert_diagonal<PreparedChannels<KP>::L_stride>(s.L);
  if (warp() >= warps) {
    const int block = warp() - warps;
    Block scores;
    scores.each([&](int i, int j, float& x) { x = strong && j <= i ? s.scores[block][i][j] : 0; });
    if (strong) put_scores(block, block, scores);
    for (int c = thread - threads; c < KP; c += threads) chunk.total[c] = exp2_of(s.b[(chunk_rows - 1) * s.b_stride + c]);
    if (p.copied_v) round_rows<Number, 32>(p.v, copy, p.given_v, piece.first_row, n, h, p.H);
  }
  __syncthreads();
  if (warp() >= warps) return;
  make_T(s, [&](int i, int j, const Block& transposed_block) { chunk.T[(first_block(i) + j) * lanes + lane()] = as_b(transposed_block); });
}

template <int KP>
void launch_prepare(const Problem& p, bool bf16, std::int64_t chunks, cudaStream_t stream) {
  const auto kernel = bf16 ? prepare_channels_kernel<Bf16, KP> : prepare_channels_kernel<float, KP>;
  launch("gated_delta_rule: prepare channels", kernel, static_cast<unsigned>(chunks * p.H), 2 * threads, sizeof(PreparedChannels<KP>),
         stream, p);
}

}  // namespace

void prepare_channels(const Problem& p, bool bf16, std::int64_t chunks, cudaStream_t stream) {
  if (p.K <= 64) return launch_prepare<64>(p, bf16, chunks, stream);
  if (p.K <= 128) return launch_prepare<128>(p, bf16, chunks, stream);
  launch_prepare<256>(p, bf16, chunks, stream);
}

}  // namespace statescope::cuda::delta

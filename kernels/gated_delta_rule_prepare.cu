// What the gated delta rule in chunks needs of every chunk before any state is known: T and the decays, and bf16 copies of q, k and v where
// they are something else.
#include "kernels/cuda_delta_chunk.h"

namespace statescope::cuda::delta {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

constexpr int warps = row_blocks, threads = warps * lanes;  // that make T; where there are as many again, those copy q and v

template <int KP>
struct Prepared {
  // Rows are 16 bytes longer than they need to be, so that eight rows of a matrix lie in different banks.
  static constexpr int key_stride = KP + 8, L_stride = chunk_rows + 4;
  Bf16 k[chunk_rows * key_stride];
  float L[chunk_rows * L_stride];  // I + L is inverted; its diagonal blocks become those of (I + L)⁻¹
  float b[chunk_rows], beta[chunk_rows];
};

/// The rows' gates and b, by one warp, two rows a lane. Rows behind the n-th change nothing: β = 0, log α = 0.
template <int KP>
__device__ void fetch_gates(Prepared<KP>& s, const Problem& p, std::int64_t first_row, int n, std::int64_t h) {
  constexpr float least = -110;  // e^least is 0, and sums of it are still numbers
  float log_decay[2];
  for (int j = 0; j < 2; ++j) {
    const int i = 2 * lane() + j;
    const float x = i < n && p.log_decay.rows ? *p.log_decay.at(first_row + i, h, p.H) : 0;
    log_decay[j] = x < least ? least : x;
    s.beta[i] = i < n ? (p.beta.rows ? *p.beta.at(first_row + i, h, p.H) : 1) : 0;
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

__device__ void write_decays(Chunk& chunk, const float* b) {
  const auto i = static_cast<int>(threadIdx.x);
  if (i >= chunk_rows) return;
  const float last = b[chunk_rows - 1];
  chunk.b[i] = b[i];
  chunk.from_start[i] = __expf(b[i]);
  chunk.to_end[i] = __expf(last - b[i]);
  if (i == 0) chunk.total = __expf(last);
}

template <class Number>
struct alignas(4 * sizeof(Number)) Quad {
  Number x[4];
};
__device__ float number(float x) { return x; }
__device__ float number(Bf16 x) { return __bfloat162float(x); }

/// visit(row, column, four numbers as bf16) of `quads` · 4 columns of 64 rows, which begin at data, by `threads` threads. What lies behind
/// the n-th row or the `given` first columns is 0.
template <class Number, int quads, class Visit>
__device__ void visit_rows(const Number* data, const Source& x, int n, std::int64_t given, const Visit& visit) {
  constexpr int together = 8, steps = chunk_rows * quads / threads, rows = threads / quads;  // rows: a step
  const int first = static_cast<int>(threadIdx.x) % threads / quads, c = static_cast<int>(threadIdx.x) % quads * 4;
  const auto stride = static_cast<int>(x.stride);
  data += first * x.stride + c;
  for (int begin = 0; begin < steps; begin += together) {
    Quad<Number> held[together];
#pragma unroll
    for (int i = 0; i < together; ++i) {
      const Number* from = data + (begin + i) * rows * stride;
      held[i] = {};
      if (first + (begin + i) * rows >= n) continue;
      if (x.by_fours) {
        if (c < given) held[i] = *reinterpret_cast<const Quad<Number>*>(from);
      } else {
        for (int j = 0; j < 4; ++j) {
          if (c + j < given) held[i].x[j] = from[j];
        }
      }
    }
#pragma unroll
    for (int i = 0; i < together; ++i) {
      const Number(&y)[4] = held[i].x;
      visit(first + (begin + i) * rows, c, uint2{packed(number(y[0]), number(y[1])), packed(number(y[2]), number(y[3]))});
    }
  }
}

/// Where head h of a row of x begins.
template <class Number>
__device__ const Number* at(const Source& x, std::int64_t row, std::int64_t h, std::int64_t H) {
  return static_cast<const Number*>(x.data) + row * x.stride + producer_head(h, x.heads, H) * x.width;
}

/// to, from row to_row on ← n rows of x as bf16, from `row` on.
template <class Number, int quads>
__device__ void round_rows(const Bf16Rows& to, std::int64_t to_row, const Source& x, std::int64_t row, int n, std::int64_t h,
                           std::int64_t H) {
  const auto stride = static_cast<int>(to.stride), width = static_cast<int>(to.width);
  for (int first = 0; first < width; first += 4 * quads) {
    Bf16* begin = to.at(to_row, h, H) + first;
    visit_rows<Number, quads>(at<Number>(x, row, h, H) + first, x, n, x.width - first, [&](int r, int c, const uint2& four) {
      if (r < n && first + c < width) *reinterpret_cast<uint2*>(begin + r * stride + c) = four;
    });
  }
}

/// L ← tril(diag(β) (K Kᵀ ⊙ Γ), −1), a block of rows a warp; zeros as far as the diagonal's blocks go.
template <int KP>
__device__ void make_L(Prepared<KP>& s) {
  const int block = warp();
  Block c[row_blocks];
#pragma unroll
  for (int key = 0; key < KP / 16; ++key) {
    const uint4 a = a_block(s.k, s.key_stride, 16 * block, 16 * key);
#pragma unroll
    for (int n = 0; n < row_blocks; ++n) {
      if (n <= block) multiply(c[n], a, b_block_transposed(s.k, s.key_stride, 16 * n, 16 * key));
    }
  }
#pragma unroll
  for (int n = 0; n < row_blocks; ++n) {
    if (n > block) continue;
    c[n].each([&](int r, int column, float x) {
      const int i = 16 * block + r, j = 16 * n + column;
      s.L[i * s.L_stride + j] = j < i ? s.beta[i] * x * __expf(s.b[i] - s.b[j]) : 0;
    });
  }
}

/// The diagonal blocks of I + L are inverted in their place, by two warps: forward substitution, a column a lane.
template <int stride>
__device__ void invert_diagonal(float* L) {
  const int first = 32 * warp() + lane() / 16 * 16, column = lane() % 16;
  float *block = L + first * stride + first, x[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    // x_i = I_i − Σ_{j<i} L_ij x_j
    float sum[4] = {};
#pragma unroll
    for (int j = 0; j < i; j += 4) {
      const float4 l = *reinterpret_cast<const float4*>(block + i * stride + j);
      sum[0] = fmaf(l.x, x[j], sum[0]);
      if (j + 1 < i) sum[1] = fmaf(l.y, x[j + 1], sum[1]);
      if (j + 2 < i) sum[2] = fmaf(l.z, x[j + 2], sum[2]);
      if (j + 3 < i) sum[3] = fmaf(l.w, x[j + 3], sum[3]);
    }
    x[i] = (column == i ? 1.F : 0.F) - ((sum[0] + sum[1]) + (sum[2] + sum[3]));
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 16; ++i) block[i * stride + column] = x[i];
}

/// A or B as two bf16: rounded, and what rounding lost.
struct Split {
  uint4 large, small;
};
__device__ Split split_a(const Block& x) {
  const uint4 a = as_a(x);
  return {a, rest_of_a(x, a)};
}
/// B of xᵀ, from x in shared memory.
template <int stride>
__device__ Split split_b_transposed(const float* x) {
  Block block;
  block.each([&](int r, int c, float& number) { number = x[r * stride + c]; });
  const Split a = split_a(block);
  return {as_b_transposed(a.large), as_b_transposed(a.small)};
}

/// C ← C + A B, without the product of what rounding lost of both.
__device__ void multiply(Block& c, const Split& a, const Split& b) {
  Block rest;
  multiply(rest, a.large, b.small);
  multiply(c, a.large, b.large);
  multiply(rest, a.small, b.large);
  for (int i = 0; i < 2; ++i) {
    for (int e = 0; e < 4; ++e) c.half[i][e] += rest.half[i][e];
  }
}

/// Block column j of T, a warp: with X = (I + L)⁻¹, X_ijᵀ = −(Σ_{j≤k<i} X_kjᵀ L_ikᵀ) X_iiᵀ and T = X diag(β).
template <int KP>
__device__ void make_T(Prepared<KP>& s, uint4* T) {
  constexpr int stride = Prepared<KP>::L_stride;
  const int j = warp();
  const auto block_of_L = [&](int i, int k) { return s.L + 16 * i * stride + 16 * k; };
  const auto write = [&](int i, Block X) {
    X.each([&](int r, int, float& x) { x *= s.beta[16 * j + r]; });
    T[(first_block(i) + j) * lanes + lane()] = as_b(X);
  };

  Block X;
  X.each([&](int r, int c, float& x) { x = block_of_L(j, j)[c * stride + r]; });
  write(j, X);
  Split above[row_blocks];  // of X_kjᵀ, k = j …
#pragma unroll
  for (int below = 1; below < row_blocks; ++below) {
    const int i = j + below;
    if (i >= row_blocks) break;
    above[below - 1] = split_a(X);
    Block sum;
#pragma unroll
    for (int k = 0; k < below; ++k) multiply(sum, above[k], split_b_transposed<stride>(block_of_L(i, j + k)));
    X = {};
    multiply(X, split_a(sum), split_b_transposed<stride>(block_of_L(i, i)));
    X.each([](int, int, float& x) { x = -x; });
    write(i, X);
  }
}

/// A thread block makes a head of a chunk.
template <class Number, int KP>
__global__ void __launch_bounds__(2 * threads, 4) prepare_kernel(Problem p) {
  extern __shared__ __align__(16) uint4 memory[];
  auto& s = *reinterpret_cast<Prepared<KP>*>(memory);
  const std::int64_t h = blockIdx.x % p.H, number = blockIdx.x / p.H, copy = number * chunk_rows;
  const Piece piece = piece_of(p.segments, number, chunk_rows);
  if (piece.index >= piece.count) return;
  const auto n = static_cast<int>(piece.rows);
  Chunk& chunk = p.chunks[blockIdx.x];

  if (!p.copied) copy_rows<KP / 8, Prepared<KP>::key_stride>(s.k, p.k.at(piece.first_row, h, p.H), p.k.stride, n, KP, p.k.width);
  if (warp() == 0) fetch_gates(s, p, piece.first_row, n, h);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  if (warp() >= warps) {
    round_rows<Number, KP / 4>(p.q, copy, p.given_q, piece.first_row, n, h, p.H);
    round_rows<Number, 32>(p.v, copy, p.given_v, piece.first_row, n, h, p.H);
    return;
  }
  if (p.copied) {
    Bf16* copy_of_k = p.k.at(copy, h, p.H);
    const auto stride = static_cast<int>(p.k.stride), width = static_cast<int>(p.k.width);
    visit_rows<Number, KP / 4>(at<Number>(p.given_k, piece.first_row, h, p.H), p.given_k, n, p.K, [&](int r, int c, const uint2& four) {
      *reinterpret_cast<uint2*>(s.k + r * s.key_stride + c) = four;
      if (r < n && c < width) *reinterpret_cast<uint2*>(copy_of_k + r * stride + c) = four;
    });
  }
  write_decays(chunk, s.b);
  __syncthreads();
  make_L(s);
  __syncthreads();
  if (warp() < 2) invert_diagonal<Prepared<KP>::L_stride>(s.L);
  __syncthreads();
  make_T(s, chunk.T);
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

template <int KP>
void launch_prepare(const Problem& p, bool bf16, std::int64_t chunks, cudaStream_t stream) {
  launch("gated_delta_rule: prepare", bf16 ? prepare_kernel<Bf16, KP> : prepare_kernel<float, KP>, static_cast<unsigned>(chunks * p.H),
         p.copied ? 2 * threads : threads, sizeof(Prepared<KP>), stream, p);
}

}  // namespace

void prepare(const Problem& p, bool bf16, std::int64_t chunks, cudaStream_t stream) {
  if (p.K <= 64) return launch_prepare<64>(p, bf16, chunks, stream);
  if (p.K <= 128) return launch_prepare<128>(p, bf16, chunks, stream);
  launch_prepare<256>(p, bf16, chunks, stream);
}

}  // namespace statescope::cuda::delta

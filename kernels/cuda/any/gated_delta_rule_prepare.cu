// The first kernel of the gated delta rule in chunks: T and the decays of every chunk, which need no state, and bf16 copies of q, k and v
// where they are something else.
#include "kernels/cuda/any/delta_prepare.h"
#include "kernels/cuda/common/warp.h"

namespace statescope::cuda::delta {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

/// `tiles`: with q, whose memory L takes over once products have read it.
template <int KP, bool tiles = false>
struct Prepared {
  // Rows are 16 bytes longer than they need to be, so that eight rows of a matrix lie in different banks.
  static constexpr int key_stride = KP + 8, L_stride = chunk_rows + 4;
  Bf16 k[chunk_rows * key_stride];
  union {
    float L[chunk_rows * L_stride];  // I + L is inverted; its diagonal blocks become those of (I + L)⁻¹
    Bf16 q[tiles ? chunk_rows * key_stride : 1];
  };
  float b[chunk_rows], beta[chunk_rows];
  float read[chunk_rows], write[chunk_rows];  // f^q, f^k
  std::int32_t row[chunk_rows];
};

/// The positions of the rows and the factors from the gate; two rows a lane of one warp. Without `gathers` all rows are the operation's
/// own.
template <bool gathers, class Prepared>
__device__ void fetch_items(Prepared& s, const Problem& p, const Piece& piece) {
  for (int i = 2 * lane(); i < 2 * lane() + 2; ++i) {
    const auto own = static_cast<std::int32_t>(piece.first_row + i);
    const bool gathered = gathers && p.gathers(piece) && i < piece.rows;
    const SparseItem item = gathered ? p.items[own - p.own_rows] : own_item(own);
    s.row[i] = item.row, s.read[i] = item.read, s.write[i] = item.write;
    // β = 0: items that do not write leave the state as it is.
    s.beta[i] = i < piece.rows && !(gathered && item.choice >= p.writers) ? 1 : 0;
  }
}

/// The rows' gates and b, by the same warp. Rows that do not write, or lie behind the n-th, change nothing: β = 0, log α = 0.
template <class Prepared>
__device__ void fetch_gates(Prepared& s, const Problem& p, const DeltaOperands& operands, std::int64_t h) {
  constexpr float least = -110;  // e^least is 0, and sums of it are still numbers
  float log_decay[2];
  for (int j = 0; j < 2; ++j) {
    const int i = 2 * lane() + j;
    const bool writes = s.beta[i] != 0;
    const float x = writes && operands.log_decay.rows ? *operands.log_decay.at(s.row[i], h, p.H) : 0;
    log_decay[j] = x < least ? least : x;
    if (writes && operands.beta.rows) s.beta[i] = *operands.beta.at(s.row[i], h, p.H);
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

/// gate / ‖gate x‖ or gate / ‖x‖ of a row x in 16-byte vectors, by a warp (spec §4.3).
template <class PieceOf>
__device__ float over_length(float gate, bool gate_before_l2, int pieces, const PieceOf& piece_of) {
  const float inner = gate_before_l2 ? gate : 1;
  float sum = 0;
  if (lane() < pieces) {
    const uint4 piece = piece_of(lane());
    for (const unsigned pair : {piece.x, piece.y, piece.z, piece.w}) {
      const float first = inner * first_of(pair), second = inner * second_of(pair);
      sum = fmaf(first, first, fmaf(second, second, sum));
    }
  }
  return gate * rsqrtf(sum_of_warp(sum) + l2_norm_eps);
}

/// Turns the factors of q and k, gates so far, into those that also normalise rows to length 1.
template <int KP>
__device__ void normalise(Prepared<KP>& s, const Problem& p, const DeltaOperands& operands, int n, std::int64_t h) {
  constexpr int of_warp = chunk_rows / warps;
  const int first = warp() * of_warp;
  float read = 0, write = 0;  // of the row first + lane()
#pragma unroll 4
  for (int j = 0; j < of_warp; ++j) {
    const int i = first + j, pieces = i < n ? static_cast<int>(p.K) / 8 : 0;
    const auto* q = reinterpret_cast<const uint4*>(operands.q.at(s.row[i], h, p.H));
    const auto* k = reinterpret_cast<const uint4*>(s.k + i * s.key_stride);
    const float of_q = over_length(s.read[i], p.gate_before_l2, pieces, [&](int c) { return q[c]; });
    const float of_k = over_length(s.write[i], p.gate_before_l2, pieces, [&](int c) { return k[c]; });
    if (lane() == j) read = of_q, write = of_k;
  }
  __syncwarp();
  if (lane() < of_warp) s.read[first + lane()] = read, s.write[first + lane()] = write;
}

template <int KP>
__device__ void write_decays(Chunk& chunk, const Prepared<KP>& s, float scale) {
  const auto i = static_cast<int>(threadIdx.x);
  if (i >= chunk_rows) return;
  const float b = s.b[i], last = s.b[chunk_rows - 1], from_start = __expf(b);
  chunk.b[i] = b;
  chunk.from_start[i] = from_start;
  chunk.predict[i] = s.write[i] * from_start;
  chunk.to_end[i] = s.write[i] * __expf(last - b);
  chunk.write[i] = s.write[i];
  chunk.read[i] = scale * s.read[i];
  if (i == 0) chunk.total = __expf(last);
}

/// 16 rows of 64: their products with rows of K, as far as the diagonal's block, and with each other.
struct RowProducts {
  Block with_k[row_blocks], own;
};
template <int KP, bool tiles>
__device__ RowProducts row_products(const Bf16* x, const Prepared<KP, tiles>& s, int block) {
  RowProducts c;
#pragma unroll
  for (int key = 0; key < KP / 16; ++key) {
    const uint4 a = a_block(x, s.key_stride, 16 * block, 16 * key);
    multiply(c.own, a, as_b_transposed(a));
#pragma unroll
    for (int n = 0; n < row_blocks; ++n) {
      if (n <= block) multiply(c.with_k[n], a, b_block_transposed(s.k, s.key_stride, 16 * n, 16 * key));
    }
  }
  return c;
}

/// factor[i] ← 1 / ‖x_i‖ of 16 rows from x xᵀ
__device__ void over_lengths(float* factor, Block& own) {
  own.each([&](int r, int c, float sum) {
    if (r == c) factor[r] = rsqrtf(sum + l2_norm_eps);
  });
}

/// L ← tril(diag(β) (K Kᵀ ⊙ Γ), −1), where they are not 1 with the factors of K, a block of rows a warp; zeros as far as the diagonal's
/// blocks go.
template <bool factors, class Prepared>
__device__ void write_L(Prepared& s, Block (&c)[row_blocks]) {
  const int block = warp();
#pragma unroll
  for (int n = 0; n < row_blocks; ++n) {
    if (n > block) continue;
    c[n].each([&](int r, int column, float x) {
      const int i = 16 * block + r, j = 16 * n + column;
      const float factor = factors ? s.beta[i] * s.write[i] * s.write[j] : s.beta[i];
      s.L[i * s.L_stride + j] = j < i ? factor * x * __expf(s.b[i] - s.b[j]) : 0;
    });
  }
}

/// A thread block has a head of a chunk.
template <class Number, int KP, bool factors>
__global__ void __launch_bounds__(2 * threads, 4) prepare_kernel(const __grid_constant__ Problem p) {
  extern __shared__ __align__(16) uint4 memory[];
  auto& s = *reinterpret_cast<Prepared<KP>*>(memory);
  const std::int64_t h = blockIdx.x % p.H, number = blockIdx.x / p.H, copy = number * chunk_rows;
  const Piece piece = piece_of(p.segments, number, chunk_rows);
  if (piece.index >= piece.count) return;
  const auto n = static_cast<int>(piece.rows);
  const DeltaOperands& operands = p.operands[factors && p.gathers(piece) ? 1 : 0];
  Chunk& chunk = p.chunks[blockIdx.x];

  if (warp() == 0) fetch_items<factors>(s, p, piece);
  if constexpr (factors) __syncthreads();
  if (!p.copied) {
    copy_rows<KP / 8, Prepared<KP>::key_stride>(s.k, operands.k.at(0, h, p.H), operands.k.stride, n, KP, operands.k.width,
                                                [&](int r) { return factors ? s.row[r] : static_cast<int>(piece.first_row) + r; });
  }
  if (warp() == 0) fetch_gates(s, p, operands, h);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  if (warp() >= warps) {
    round_rows<Number, KP / 4>(operands.q, copy, p.given_q, piece.first_row, n, h, p.H);
    round_rows<Number, 32>(p.v, copy, p.given_v, piece.first_row, n, h, p.H);
    return;
  }
  if constexpr (factors) {
    normalise(s, p, operands, n, h);
    __syncthreads();
  }
  if (p.copied) {
    Bf16* copy_of_k = operands.k.at(copy, h, p.H);
    const auto stride = static_cast<int>(operands.k.stride), width = static_cast<int>(operands.k.width);
    visit_rows<Number, KP / 4>(at<Number>(p.given_k, piece.first_row, h, p.H), p.given_k, n, p.K, [&](int r, int c, const uint2& four) {
      *reinterpret_cast<uint2*>(s.k + r * s.key_stride + c) = four;
      if (r < n && c < width) *reinterpret_cast<uint2*>(copy_of_k + r * stride + c) = four;
    });
  }
  write_decays(chunk, s, p.scale);
  __syncthreads();
  RowProducts c = row_products(s.k, s, warp());
  write_L<factors>(s, c.with_k);
  __syncthreads();
  if (warp() < 2) invert_diagonal<Prepared<KP>::L_stride>(s.L);
  __syncthreads();
  make_T(s, [&](int i, int j, const Block& transposed_block) { chunk.T[(first_block(i) + j) * lanes + lane()] = as_b(transposed_block); });
}

/// Stores a block of 16 × 16 values of a tile from its A fragment.
__device__ void put_block(Tile& tile, int row, int column, const uint4& a) {
  const unsigned pairs[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) *reinterpret_cast<unsigned*>(swizzle(&tile, row + i % 2 * 8 + g(), column + i / 2 * 8 + t())) = pairs[i];
}

/// The same with the scores, for wgmma: four warps compute T, four the scores, a block of rows each.
template <int KP>
__global__ void __launch_bounds__(2 * threads, 3) prepare_tiles_kernel(const __grid_constant__ Problem p) {
  extern __shared__ __align__(16) uint4 memory[];
  using Prepared = Prepared<KP, true>;
  auto& s = *reinterpret_cast<Prepared*>(memory);
  grid_dependency_wait();
  const std::int64_t h = blockIdx.x % p.H, number = blockIdx.x / p.H;
  const Piece piece = piece_of(p.segments, number, chunk_rows);
  if (piece.index >= piece.count) return;
  const auto n = static_cast<int>(piece.rows);
  const DeltaOperands& operands = p.operands[0];
  TileChunk& chunk = p.tiles[blockIdx.x];

  const auto row_of = [](int r) { return r; };
  copy_rows<KP / 8, Prepared::key_stride>(s.k, operands.k.at(piece.first_row, h, p.H), operands.k.stride, n, KP, operands.k.width, row_of);
  copy_rows<KP / 8, Prepared::key_stride>(s.q, operands.q.at(piece.first_row, h, p.H), operands.q.stride, n, KP, operands.q.width, row_of);
  if (warp() == 0) {
    fetch_items<false>(s, p, piece);
    fetch_gates(s, p, operands, h);
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  const bool of_q = warp() >= warps;
  const int block = warp() % warps;
  RowProducts c = row_products(of_q ? s.q : s.k, s, block);
  if (p.unit) over_lengths((of_q ? s.read : s.write) + 16 * block, c.own);
  __syncthreads();
  if (of_q) {
#pragma unroll
    for (int j = 0; j < row_blocks; ++j) {
      c.with_k[j].each([&](int r, int column, float& x) {
        const int t = 16 * block + r, earlier = 16 * j + column;
        x = earlier <= t ? p.scale * s.read[t] * s.write[earlier] * x * __expf(s.b[t] - s.b[earlier]) : 0;
      });
      put_block(chunk.scores, 16 * block, 16 * j, as_a(c.with_k[j]));
    }
    launch_dependents();
    return;
  }
  if (const auto i = static_cast<int>(threadIdx.x); i < chunk_rows) {
    const float b = s.b[i], last = s.b[chunk_rows - 1];
    chunk.predict[i] = s.write[i] * __expf(b);
    chunk.to_end[i] = s.write[i] * __expf(last - b);
    chunk.read[i] = p.scale * s.read[i] * __expf(b);
    if (i == 0) chunk.total = __expf(last);
  }
  write_L<true>(s, c.with_k);
  __syncthreads();
  if (warp() < 2) invert_diagonal<Prepared::L_stride>(s.L);
  __syncthreads();
  for (int i = 0; i < warp(); ++i) put_block(chunk.T, 16 * i, 16 * warp(), {});
  make_T(s, [&](int i, int j, const Block& transposed_block) {
    const uint4 b = as_b(transposed_block);  // quarters (0, 0), (0, 1), (1, 0), (1, 1) of T_ij: an A with its middle ones exchanged
    put_block(chunk.T, 16 * i, 16 * j, {b.x, b.z, b.y, b.w});
  });
  launch_dependents();
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

template <int KP>
void launch_prepare(const Problem& p, bool bf16, std::int64_t chunks, cudaStream_t stream) {
  if constexpr (KP > 64) {
    if (p.tiles)
      return launch_overlapped("gated_delta_rule: prepare", prepare_tiles_kernel<KP>, static_cast<unsigned>(chunks * p.H), 2 * threads,
                               sizeof(Prepared<KP, true>), stream, p);
  }
  const auto kernel = p.unit ? prepare_kernel<Bf16, KP, true> : bf16 ? prepare_kernel<Bf16, KP, false> : prepare_kernel<float, KP, false>;
  launch("gated_delta_rule: prepare", kernel, static_cast<unsigned>(chunks * p.H), p.copied ? 2 * threads : threads, sizeof(Prepared<KP>),
         stream, p);
}

}  // namespace

void prepare(const Problem& p, bool bf16, std::int64_t chunks, cudaStream_t stream) {
  if (p.K <= 64) return launch_prepare<64>(p, bf16, chunks, stream);
  if (p.K <= 128) return launch_prepare<128>(p, bf16, chunks, stream);
  launch_prepare<256>(p, bf16, chunks, stream);
}

}  // namespace statescope::cuda::delta

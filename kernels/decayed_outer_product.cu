// The decayed outer product as its recurrence, for segments of any length: exact for any decay, one read and one write of the state. A
// column of the state needs no other column, so each warp keeps a few of them in registers from a segment's first row to its last.
#include <cuda_pipeline.h>

#include <algorithm>

#include "kernels/cuda_operations.h"

namespace statescope::cuda {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

constexpr int warps = 4, threads = 32 * warps;

enum class Decay { scalar, rows, columns };  // an absent decay is a scalar of 1

/// An operand [rows, heads, width].
struct Operand {
  Rows<const float> rows;
  std::int64_t heads = 1, width = 0;  // an absent one has no width
  /// Where the row that head h of H reads begins.
  __device__ const float* at(std::int64_t t, std::int64_t h, std::int64_t H) const {
    return rows.row(t) + producer_head(h, heads, H) * width;
  }
};

struct Problem {
  Operand q, k, v, log_decay;
  Rows<const float> initial;  // [slots, H, K, V]
  Rows<float> final, o;       // [slots, H, K, V], [rows, H, V]
  std::int64_t H, K, V;
  float scale;
  DeviceSegments segments;
  int batch;  // rows that are fetched at a time
};

/// The columns of a block: each warp has 32 / Lanes neighbours, each column Lanes threads of the warp, each thread RowsPerLane rows of it.
/// Rows are dealt out in fours, so that a thread reads four numbers of q at once and the lanes of a column read side by side.
template <int Lanes, int RowsPerLane>
struct Columns {
  static constexpr int of_warp = 32 / Lanes, count = warps * of_warp, rows = Lanes * RowsPerLane;

  /// Among the block's columns.
  static __device__ int own() { return static_cast<int>(threadIdx.x) / 32 * of_warp + static_cast<int>(threadIdx.x) % of_warp; }
  static __device__ int lane() { return static_cast<int>(threadIdx.x) % 32 / of_warp; }
  static __device__ int row(int i) { return (i / 4 * Lanes + lane()) * 4 + i % 4; }
  /// The sum over the lanes of a column, in all of them.
  static __device__ float sum(float x) {
    for (int distance = of_warp; distance < 32; distance *= 2) x += __shfl_xor_sync(~0U, x, distance);
    return x;
  }
};

struct alignas(16) Four {
  float x[4];
};

/// A batch of rows in shared memory. What a row has beyond K or V is 0.
template <Decay decay, class Tile>
struct Batch {
  static constexpr int decay_width = decay == Decay::rows ? Tile::rows : decay == Decay::columns ? Tile::count : 4;
  static constexpr int row_size = 2 * Tile::rows + decay_width + Tile::count;  // a multiple of 4
  float *q, *k, *a, *v;                                                        // [capacity, the width of each]

  __device__ Batch(float* memory, int capacity)
      : q(memory), k(q + capacity * Tile::rows), a(k + capacity * Tile::rows), v(a + capacity * decay_width) {}
};

/// to [n, width] ← the first `given` numbers of n rows, 0 behind them. Thread i fetches the numbers i, i + threads, ...
template <int width>
__device__ void fetch(float* to, const float* from, std::int64_t stride, int n, std::int64_t given) {
  for (int i = static_cast<int>(threadIdx.x); i < n * width; i += threads) {
    const int t = i / width, c = i % width;
    if (c < given) {
      __pipeline_memcpy_async(to + i, from + t * stride + c, sizeof(float));
    } else {
      to[i] = 0;
    }
  }
}

/// x ← e^x, each number by the thread that fetched it.
template <int width>
__device__ void exponentiate(float* x, int n) {
  for (int i = static_cast<int>(threadIdx.x); i < n * width; i += threads) x[i] = expf(x[i]);
}

/// Starts to fetch the n rows from `first` on. Of v, and of decays along the columns, the columns from `column` on.
template <Decay decay, class Tile>
__device__ void fetch_batch(const Batch<decay, Tile>& to, const Problem& p, std::int64_t first, int n, std::int64_t h,
                            std::int64_t column) {
  const std::int64_t decay_from = decay == Decay::columns ? column : 0;
  fetch<Tile::rows>(to.q, p.q.at(first, h, p.H), p.q.rows.stride, n, p.K);
  fetch<Tile::rows>(to.k, p.k.at(first, h, p.H), p.k.rows.stride, n, p.K);
  fetch<to.decay_width>(to.a, p.log_decay.at(first, h, p.H) + decay_from, p.log_decay.rows.stride, n, p.log_decay.width - decay_from);
  fetch<Tile::count>(to.v, p.v.at(first, h, p.H) + column, p.v.rows.stride, n, p.V - column);
  __pipeline_commit();
}

/// Row t of a batch: changes the thread's rows S of its column, returns the column's q_t S_t.
template <Decay decay, int Lanes, int RowsPerLane>
__device__ float step(float (&S)[RowsPerLane], const Batch<decay, Columns<Lanes, RowsPerLane>>& batch, int t) {
  using Tile = Columns<Lanes, RowsPerLane>;
  const Four* q = reinterpret_cast<const Four*>(batch.q + t * Tile::rows) + Tile::lane();
  const Four* k = reinterpret_cast<const Four*>(batch.k + t * Tile::rows) + Tile::lane();
  const float* a = batch.a + t * batch.decay_width;
  const float v = batch.v[t * Tile::count + Tile::own()];
  const float same_decay = decay == Decay::columns ? a[Tile::own()] : a[0];
  float o[4] = {};
#pragma unroll
  for (int i = 0; i < RowsPerLane; i += 4) {
    const Four q_i = q[i / 4 * Lanes], k_i = k[i / 4 * Lanes];
    Four a_i{{same_decay, same_decay, same_decay, same_decay}};
    if constexpr (decay == Decay::rows) a_i = reinterpret_cast<const Four*>(a)[i / 4 * Lanes + Tile::lane()];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      // S_r = a_r S_r + k_r v,  o = o + q_r S_r
      S[i + j] = fmaf(k_i.x[j], v, a_i.x[j] * S[i + j]);
      o[j] = fmaf(q_i.x[j], S[i + j], o[j]);
    }
  }
  return Tile::sum((o[0] + o[1]) + (o[2] + o[3]));
}

/// One block per (segment, head, Columns::count columns).
template <Decay decay, int Lanes, int RowsPerLane>
__global__ void __launch_bounds__(threads) decayed_outer_product_kernel(Problem p) {
  using Tile = Columns<Lanes, RowsPerLane>;
  extern __shared__ __align__(16) float shared[];  // two batches, or one that holds all rows
  const std::int64_t tiles = (p.V + Tile::count - 1) / Tile::count;
  const std::int64_t first_column = blockIdx.x % tiles * Tile::count, h = blockIdx.x / tiles % p.H, s = blockIdx.x / tiles / p.H;
  const std::int64_t first_row = p.segments.cu_seqlens[s], rows = p.segments.cu_seqlens[s + 1] - first_row;
  const float* initial = p.initial.row(p.segments.slot_of(s)) + h * p.K * p.V;
  float* final = p.final.row(p.segments.slot_of(s)) + h * p.K * p.V;
  if (rows == 0 && initial == final) return;

  Batch<decay, Tile> batch(shared, p.batch), next(shared + p.batch * batch.row_size, p.batch);
  if (rows > 0) fetch_batch(batch, p, first_row, static_cast<int>(min(rows, std::int64_t{p.batch})), h, first_column);

  const std::int64_t column = first_column + Tile::own();
  float S[RowsPerLane];
#pragma unroll
  for (int i = 0; i < RowsPerLane; ++i) S[i] = Tile::row(i) < p.K && column < p.V ? initial[Tile::row(i) * p.V + column] : 0;

  for (std::int64_t done = 0; done < rows; done += p.batch) {
    const int n = static_cast<int>(min(rows - done, std::int64_t{p.batch}));
    __pipeline_wait_prior(0);
    exponentiate<batch.decay_width>(batch.a, n);
    __syncthreads();  // the batch is complete, and all have left the one before it
    const std::int64_t rest = rows - done - n;
    if (rest > 0) fetch_batch(next, p, first_row + done + n, static_cast<int>(min(rest, std::int64_t{p.batch})), h, first_column);
    for (int t = 0; t < n; ++t) {
      const float o = step<decay, Lanes>(S, batch, t);
      if (Tile::lane() == 0 && column < p.V) p.o.row(first_row + done + t)[h * p.V + column] = p.scale * o;
    }
    const Batch<decay, Tile> read = batch;
    batch = next;
    next = read;
  }

#pragma unroll
  for (int i = 0; i < RowsPerLane; ++i) {
    if (Tile::row(i) < p.K && column < p.V) final[Tile::row(i) * p.V + column] = S[i];
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

Operand operand(ConstTensor x) {
  if (!x) return {};
  return {f32(x), x.shape[1], x.shape.rank() == 3 ? x.shape[2] : 1};
}

/// A batch has as many rows as hide the fetching of the next one, fewer where two of them would not leave room for another block.
constexpr int longest_batch = 16;
constexpr std::size_t most_shared_bytes = 64 << 10;

template <Decay decay, int Lanes, int RowsPerLane>
void launch_tiles(Problem p, cudaStream_t stream) {
  using Tile = Columns<Lanes, RowsPerLane>;
  constexpr std::size_t row_bytes = Batch<decay, Tile>::row_size * sizeof(float);
  constexpr int fitting = std::clamp(static_cast<int>(most_shared_bytes / (2 * row_bytes)), 1, longest_batch);
  p.batch = static_cast<int>(std::clamp<std::int64_t>(p.segments.longest, 1, fitting));
  const std::size_t batches = p.segments.longest > p.batch ? 2 : 1;
  const std::int64_t tiles = (p.V + Tile::count - 1) / Tile::count;
  launch("decayed_outer_product", decayed_outer_product_kernel<decay, Lanes, RowsPerLane>,
         static_cast<unsigned>(p.segments.count * p.H * tiles), threads, batches * static_cast<std::size_t>(p.batch) * row_bytes, stream,
         p);
}

template <Decay decay>
void launch_decay(const Problem& p, cudaStream_t stream) {
  if (p.K <= 32) return launch_tiles<decay, 4, 8>(p, stream);
  if (p.K <= 64) return launch_tiles<decay, 4, 16>(p, stream);
  if (p.K <= 128) return launch_tiles<decay, 4, 32>(p, stream);
  if (p.K <= 256) return launch_tiles<decay, 4, 64>(p, stream);
  if (p.K <= 512) return launch_tiles<decay, 8, 64>(p, stream);
  if (p.K <= 2048) return launch_tiles<decay, 32, 64>(p, stream);
  throw std::invalid_argument("decayed_outer_product: q: found " + std::to_string(p.K) + " channels a head, a GPU takes at most 2048");
}

}  // namespace

void decayed_outer_product(const DecayedOuterProduct& op, const DeviceSegments& segments, cudaStream_t stream) {
  const Shape& state = op.initial_state.shape;
  const Problem p{operand(op.q),
                  operand(op.k),
                  operand(op.v),
                  operand(op.log_decay),
                  f32(op.initial_state),
                  f32(op.final_state),
                  f32(op.o),
                  state[1],
                  state[2],
                  state[3],
                  op.scale,
                  segments,
                  0};
  if (!op.log_decay || op.log_decay.shape.rank() == 2) return launch_decay<Decay::scalar>(p, stream);
  if (op.decay_axis == DecayAxis::rows) return launch_decay<Decay::rows>(p, stream);
  launch_decay<Decay::columns>(p, stream);
}

}  // namespace statescope::cuda

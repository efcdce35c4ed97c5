// The recurrence of the matrix memories over the rows of a segment of any length, with one read and one write of the state. A column of the
// state needs no other column, so each warp keeps a few columns in registers from the first row of a segment to its last. Exact for any
// decay.
#pragma once

#include <cuda_pipeline.h>

#include <algorithm>

#include "kernels/cuda/common/operations.h"

namespace statescope::cuda {

constexpr int recurrence_warps = 4, recurrence_threads = 32 * recurrence_warps;

/// Float32 rows [rows, heads, width].
struct F32Rows {
  Rows<const float> rows;
  std::int64_t heads = 1, width = 0;  // an absent one has no width
  /// Where the row of head h of H begins.
  __device__ const float* at(std::int64_t t, std::int64_t h, std::int64_t H) const {
    return rows.row(t) + producer_head(h, heads, H) * width;
  }
};

inline F32Rows f32_rows(ConstTensor x) {
  if (!x) return {};
  return {f32(x), x.shape[1], x.shape.rank() == 3 ? x.shape[2] : 1};
}

struct RecurrenceProblem {
  F32Rows q, k, v, log_decay, beta;
  Rows<const float> initial;  // [slots, H, K, V]
  Rows<float> final, o;       // [slots, H, K, V], [rows, H, V]
  std::int64_t H, K, V;
  float scale;
  DeviceSegments segments;
  int batch = 0;                             // rows that are loaded at a time
  F32Rows erase_key = {}, erase_along = {};  // of WKV
};

template <class Operation>
RecurrenceProblem recurrence_problem(const Operation& op, ConstTensor beta, const DeviceSegments& segments) {
  const Shape& state = op.initial_state.shape;
  return {f32_rows(op.q),
          f32_rows(op.k),
          f32_rows(op.v),
          f32_rows(op.log_decay),
          f32_rows(beta),
          f32(op.initial_state),
          f32(op.final_state),
          f32(op.o),
          state[1],
          state[2],
          state[3],
          op.scale,
          segments};
}

struct alignas(16) Four {
  float x[4];
};

/// The columns of a block: each warp has 32 / Lanes neighbours, each column Lanes threads of the warp, each thread RowsPerLane rows of it.
/// Rows are dealt out in fours, so that a thread reads four numbers of q at once and the lanes of a column read side by side.
template <int Lanes_, int RowsPerLane_>
struct Columns {
  static constexpr int Lanes = Lanes_, RowsPerLane = RowsPerLane_;
  static constexpr int of_warp = 32 / Lanes, count = recurrence_warps * of_warp, rows = Lanes * RowsPerLane;

  /// Among the block's columns.
  static __device__ int own() { return static_cast<int>(threadIdx.x) / 32 * of_warp + static_cast<int>(threadIdx.x) % of_warp; }
  static __device__ int lane() { return static_cast<int>(threadIdx.x) % 32 / of_warp; }
  static __device__ int row(int i) { return (i / 4 * Lanes + lane()) * 4 + i % 4; }
  /// The sum over the lanes of a column, in all of them.
  static __device__ float sum(float x) {
    for (int distance = of_warp; distance < 32; distance *= 2) x += __shfl_xor_sync(~0U, x, distance);
    return x;
  }
  /// q S for the thread's column; `q` points at the first four numbers that are the thread's.
  static __device__ float read(const float (&S)[RowsPerLane], const Four* q) {
    float of[4] = {};
#pragma unroll
    for (int i = 0; i < RowsPerLane; i += 4) {
      const Four q_i = q[i / 4 * Lanes];
#pragma unroll
      for (int j = 0; j < 4; ++j) of[j] = fmaf(q_i.x[j], S[i + j], of[j]);
    }
    return sum((of[0] + of[1]) + (of[2] + of[3]));
  }
};

/// to [n, width] ← the first `given` numbers of n rows, 0 behind them. Thread i fetches the numbers i, i + threads, ...
template <int width>
__device__ void fetch(float* to, const float* from, std::int64_t stride, int n, std::int64_t given) {
  for (int i = static_cast<int>(threadIdx.x); i < n * width; i += recurrence_threads) {
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
  for (int i = static_cast<int>(threadIdx.x); i < n * width; i += recurrence_threads) x[i] = expf(x[i]);
}

/// One block per (segment, head, Columns::count columns). A Rule has a Tile (Columns) and a Batch (rows in shared memory, what they have
/// beyond K or V is 0), and says how a batch is fetched (by all threads), made ready once it is there (each thread what it fetched), and
/// what row t of a batch does to the thread's rows S of its column, returning the column's q_t S_t.
template <class Rule>
__global__ void __launch_bounds__(recurrence_threads) recurrence_kernel(RecurrenceProblem p) {
  using Tile = typename Rule::Tile;
  using Batch = typename Rule::Batch;
  extern __shared__ __align__(16) float shared[];  // two batches, or one that holds all rows
  begin_overlapped();
  const std::int64_t tiles = (p.V + Tile::count - 1) / Tile::count;
  const std::int64_t first_column = blockIdx.x % tiles * Tile::count, h = blockIdx.x / tiles % p.H, s = blockIdx.x / tiles / p.H;
  const std::int64_t first_row = p.segments.cu_seqlens[s], rows = p.segments.cu_seqlens[s + 1] - first_row;
  const float* initial = p.initial.row(p.segments.slot_of(s)) + h * p.K * p.V;
  float* final = p.final.row(p.segments.slot_of(s)) + h * p.K * p.V;
  if (rows == 0 && initial == final) return;

  Batch batch(shared, p.batch), next(shared + p.batch * Batch::row_size, p.batch);
  if (rows > 0) Rule::fetch_batch(batch, p, first_row, static_cast<int>(min(rows, std::int64_t{p.batch})), h, first_column);

  const std::int64_t column = first_column + Tile::own();
  float S[Tile::RowsPerLane];
#pragma unroll
  for (int i = 0; i < Tile::RowsPerLane; ++i) S[i] = Tile::row(i) < p.K && column < p.V ? initial[Tile::row(i) * p.V + column] : 0;

  for (std::int64_t done = 0; done < rows; done += p.batch) {
    const int n = static_cast<int>(min(rows - done, std::int64_t{p.batch}));
    __pipeline_wait_prior(0);
    Rule::make_ready(batch, n);
    __syncthreads();  // the batch is complete, and all have left the one before it
    const std::int64_t rest = rows - done - n;
    if (rest > 0) Rule::fetch_batch(next, p, first_row + done + n, static_cast<int>(min(rest, std::int64_t{p.batch})), h, first_column);
    for (int t = 0; t < n; ++t) {
      const float o = Rule::step(S, batch, t, p);
      if (Tile::lane() == 0 && column < p.V) p.o.row(first_row + done + t)[h * p.V + column] = p.scale * o;
    }
    const Batch read = batch;
    batch = next;
    next = read;
  }

#pragma unroll
  for (int i = 0; i < Tile::RowsPerLane; ++i) {
    if (Tile::row(i) < p.K && column < p.V) final[Tile::row(i) * p.V + column] = S[i];
  }
}

/// A batch has as many rows as hide the fetching of the next one, fewer where two of them would not leave room for another block.
template <class Rule>
void launch_recurrence(const char* name, RecurrenceProblem p, cudaStream_t stream) {
  constexpr std::size_t longest_batch = 16, most_shared_bytes = 64 << 10, row_bytes = Rule::Batch::row_size * sizeof(float);
  constexpr auto fitting = static_cast<std::int64_t>(std::clamp<std::size_t>(most_shared_bytes / (2 * row_bytes), 1, longest_batch));
  p.batch = static_cast<int>(std::clamp<std::int64_t>(p.segments.longest, 1, fitting));
  const std::size_t batches = p.segments.longest > p.batch ? 2 : 1;
  const std::int64_t tiles = (p.V + Rule::Tile::count - 1) / Rule::Tile::count;
  launch_overlapped(name, recurrence_kernel<Rule>, static_cast<unsigned>(p.segments.count * p.H * tiles), recurrence_threads,
                    batches * static_cast<std::size_t>(p.batch) * row_bytes, stream, p);
}

}  // namespace statescope::cuda

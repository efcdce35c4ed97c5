// Sparse state expansion without the host: a counting sort of the items (one per token and choice) by sequence and partition. For memories
// that cannot gather, one kernel that replicates their rows, and one that sums their outputs.
#include "kernels/cuda/common/operations.h"
#include "kernels/cuda/common/warp.h"
#include "kernels/ops/sparse_state.h"

namespace statescope::cuda {
namespace {

constexpr unsigned warp_size = 32, threads = 256, warps = threads / warp_size;
constexpr unsigned tile = 1024, warps_of_tile = tile / warp_size;  // items a block sorts, one a thread

/// A partition of a sequence is a run: a N + n. Items are counted token by token: i = t C + c.
struct Items {
  Rows<const std::int32_t> selected;  // [T, C]
  const std::int32_t* sequences;      // cu_seqlens [S + 1] of the tokens
  std::int64_t T, C, S, N;
  __host__ __device__ std::int64_t count() const { return T * C; }
  __host__ __device__ std::int64_t runs() const { return S * N; }
  __host__ __device__ std::int64_t tiles() const { return (count() + tile - 1) / tile; }
};

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

/// The sequence of token t: the last one that begins at or before it.
__device__ std::int64_t sequence_of(const Items& items, std::int64_t t) {
  std::int64_t low = 0, high = items.S;
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (items.sequences[middle] <= t ? low : high) = middle;
  }
  return low;
}

__device__ int run_of(const Items& items, unsigned i) {
  const auto choices = static_cast<unsigned>(items.C), t = choices == 1 ? i : i / choices;
  return static_cast<int>(sequence_of(items, t) * items.N) + items.selected.row(t)[i - t * choices];
}

/// The results of the sort (SparseOrder).
struct Sorted {
  SparseItem* items;                // [items]
  std::int32_t* place;              // [items]
  std::int32_t *cu_seqlens, *slot;  // [S + runs + 1], [S + runs]: the shared segments, then the runs
};

/// The factors of items from the gate e; an item beyond the first `readers` does not read, beyond the first `writers` not write.
struct Gating {
  Rows<const float> gate;  // [T, N]
  std::int64_t writers, readers;
  bool q, k;
  float write_scale;

  __device__ SparseItem item(const Items& items, std::int64_t i) const {
    const std::int64_t t = i / items.C, c = i % items.C;
    const float e = gate.row(t)[items.selected.row(t)[c]];
    return {static_cast<std::int32_t>(t), static_cast<std::int32_t>(c),
            c >= readers ? 0
            : q          ? e
                         : 1,
            c >= writers ? 0
            : k          ? write_scale * e
                         : write_scale};
  }
};

/// The segments of the rows [T shared ; items], spec §10, step 5: sequence a owns the states a (1 + N) (shared) and a (1 + N) + 1 + n.
__device__ void list_segments(const Sorted& sorted, const Items& items, std::int64_t r, std::int32_t end) {
  if (r <= items.S) sorted.cu_seqlens[r] = items.sequences[r];
  if (r < items.S) sorted.slot[r] = static_cast<std::int32_t>(r * (1 + items.N));
  if (r >= items.runs()) return;
  sorted.cu_seqlens[items.S + 1 + r] = static_cast<std::int32_t>(items.T) + end;
  sorted.slot[items.S + r] = static_cast<std::int32_t>(r / items.N * (1 + items.N) + 1 + r % items.N);
}

/// The sum of x over the threads of a tile's block before this one; `total`, the same in all of them, grows by the sum over all.
__device__ std::int32_t sum_before(std::int32_t x, std::int32_t* of_warp, std::int32_t& total) {
  const unsigned lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  std::int32_t sum = x;
  for (unsigned distance = 1; distance < warp_size; distance *= 2) {
    const std::int32_t other = __shfl_up_sync(~0U, sum, distance);
    if (lane >= distance) sum += other;
  }
  if (lane == warp_size - 1) of_warp[warp] = sum;
  __syncthreads();
  std::int32_t before = total + sum - x;
#pragma unroll
  for (unsigned w = 0; w < warps_of_tile; ++w) {
    if (w < warp) before += of_warp[w];
    total += of_warp[w];
  }
  __syncthreads();
  return before;
}

/// Counts of the warps of a block, for `some_runs` runs at a time: 32 KB of the 48 that a kernel may declare.
constexpr unsigned some_runs = 256;
using Counts = std::int32_t[warps_of_tile][some_runs];

/// The lanes whose run is this lane's; −1 is a run too.
__device__ unsigned lanes_of_run(int run, int bits) {
  const unsigned none = __ballot_sync(~0U, run < 0);
  unsigned same = run < 0 ? none : ~none;
  for (int b = 0; b < bits; ++b) {
    const unsigned set = __ballot_sync(~0U, run >> b & 1);
    same &= run >> b & 1 ? set : ~set;
  }
  return same;
}

/// A block places the items of its tile: after all of earlier runs and, in their own run, after those of earlier tiles and tokens. It
/// counts all items itself, which is faster than another launch before this one.
__global__ void __launch_bounds__(tile) sort_kernel(Sorted sorted, Items items, Gating gating) {
  __shared__ Counts counts;
  __shared__ std::int32_t of_warp[warps_of_tile];
  grid_dependency_wait();
  launch_dependents();  // kernels that need no items
  const auto runs = static_cast<unsigned>(items.runs()), count = static_cast<unsigned>(items.count());
  const unsigned thread = threadIdx.x, lane = thread % warp_size, warp = thread / warp_size, own_tile = blockIdx.x * tile;
  const unsigned segments = max(static_cast<unsigned>(items.S) + 1, runs);
  const int bits = 32 - __clz(static_cast<int>(runs));
  std::int32_t begin = 0;  // of the runs to come
  for (unsigned from = 0; from < segments; from += some_runs) {
    const auto of_runs = [&](int run) { return static_cast<unsigned>(run) - from < some_runs; };
    /// Counts how often each warp sees a run in these tiles; leaves the run of the thread, and the lanes with the same run, in the last
    /// tile.
    int run = -1;
    unsigned same = 0;
    const auto count_tiles = [&](unsigned first, unsigned end) {
      constexpr unsigned at_once = 8;  // loads in flight
      for (; first < end; first += at_once * tile) {
        int ahead[at_once];
#pragma unroll
        for (unsigned j = 0; j < at_once; ++j) {
          const unsigned i = first + j * tile + thread;
          ahead[j] = i < min(end, count) ? run_of(items, i) : -1;
        }
#pragma unroll
        for (unsigned j = 0; j < at_once && first + j * tile < end; ++j) {
          run = ahead[j], same = lanes_of_run(run, bits);
          if (run >= 0 && of_runs(run) && (same & ((1U << lane) - 1)) == 0) counts[warp][run - from] += __popc(same);
          __syncwarp();
        }
      }
    };
    /// Of run from + thread: the sum over all warps; and the warps' counts begin again.
    const auto sum_of_warps = [&] {
      std::int32_t sum = 0;
      __syncthreads();
      if (thread < some_runs) {
#pragma unroll
        for (unsigned w = 0; w < warps_of_tile; ++w) sum += counts[w][thread], counts[w][thread] = 0;
      }
      __syncthreads();
      return sum;
    };
    for (unsigned i = thread; i < warps_of_tile * some_runs; i += tile) counts[i / some_runs][i % some_runs] = 0;
    __syncthreads();
    count_tiles(0, own_tile);
    const std::int32_t earlier = sum_of_warps();
    count_tiles(own_tile + tile, count);
    const std::int32_t later = sum_of_warps();
    count_tiles(own_tile, own_tile + tile);
    __syncthreads();
    // The warps' counts become the places where their items begin.
    std::int32_t of_tile = 0;
    if (thread < some_runs) {
#pragma unroll
      for (unsigned w = 0; w < warps_of_tile; ++w) of_tile += counts[w][thread];
    }
    const std::int32_t of_run = earlier + of_tile + later, before = sum_before(of_run, of_warp, begin);
    if (thread < some_runs) {
      std::int32_t place = before + earlier;
#pragma unroll
      for (unsigned w = 0; w < warps_of_tile; ++w) {
        const std::int32_t n = counts[w][thread];
        counts[w][thread] = place, place += n;
      }
      if (blockIdx.x == 0) list_segments(sorted, items, from + thread, before + of_run);
    }
    __syncthreads();
    if (run >= 0 && of_runs(run)) {
      const std::int32_t place = counts[warp][run - from] + __popc(same & ((1U << lane) - 1));
      sorted.items[place] = gating.item(items, own_tile + thread);
      sorted.place[own_tile + thread] = place;
    }
    __syncthreads();
  }
}

/// An operand [T, 2, H, n] or, for v, [T, H, n], and the memory's rows [T + items, H, n] that are replicated from it. An absent one has n =
/// 0.
struct ReplicatedOperand {
  Rows<const float> from;
  float* to;
  std::int64_t n;
  __device__ const float* at(std::int64_t t, std::int64_t half, std::int64_t h, std::int64_t H) const {
    return from.row(t) + (half * H + h) * n;
  }
  __device__ float* row(std::int64_t row, std::int64_t h, std::int64_t H) const { return to + (row * H + h) * n; }
};

struct Replication {
  ReplicatedOperand q, k, v, log_decay, beta;
  const SparseItem* items;
  std::int64_t T, rows, H, writers;
  bool l2, before_l2;
};

/// y = f x; for the delta rule y = L2(f x) or f L2(x)   (spec §4.3)
__device__ void replicate_key(float* y, const float* x, std::int64_t n, float f, const Replication& g) {
  const unsigned lane = threadIdx.x % warp_size;
  float factor = f;
  if (g.l2) {
    const float inner = g.before_l2 ? f : 1;
    float sum = 0;
    for (std::int64_t i = lane; i < n; i += warp_size) sum += inner * x[i] * (inner * x[i]);
    factor = f / sqrtf(sum_of_warp(sum) + l2_norm_eps);
  }
  for (std::int64_t i = lane; i < n; i += warp_size) y[i] = factor * x[i];
}

__device__ void replicate_plain(const ReplicatedOperand& x, std::int64_t row, std::int64_t t, std::int64_t half, std::int64_t h,
                                std::int64_t H, bool present) {
  for (std::int64_t i = threadIdx.x % warp_size; i < x.n; i += warp_size) x.row(row, h, H)[i] = present ? x.at(t, half, h, H)[i] : 0;
}

/// A warp writes one head of one row of the memory: row t < T for the shared state, row T + p for an item.
__global__ void replicate_kernel(Replication g) {
  const std::int64_t index = std::int64_t{blockIdx.x} * warps + threadIdx.x / warp_size, row = index / g.H, h = index % g.H;
  if (row >= g.rows) return;
  const bool sparse = row >= g.T;
  const SparseItem item = sparse ? g.items[row - g.T] : own_item(static_cast<int>(row));
  const std::int64_t t = item.row, half = sparse ? 1 : 0;
  const bool writes = !sparse || item.choice < g.writers;
  replicate_key(g.q.row(row, h, g.H), g.q.at(t, half, h, g.H), g.q.n, item.read, g);
  replicate_key(g.k.row(row, h, g.H), g.k.at(t, half, h, g.H), g.k.n, item.write, g);
  replicate_plain(g.v, row, t, 0, h, g.H, true);
  replicate_plain(g.log_decay, row, t, half, h, g.H, writes);
  replicate_plain(g.beta, row, t, half, h, g.H, writes);
}

/// o_t = o_t⁰ + Σ_n o_tⁿ, over the first `readers` choices; rows [T + items, width]
__global__ void combine_kernel(Rows<float> o, const float* rows, const std::int32_t* place, std::int64_t T, std::int64_t choices,
                               std::int64_t readers, std::int64_t width) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x, t = i / width, column = i % width;
  if (t >= T) return;
  float sum = rows[i];
  for (std::int64_t c = 0; c < readers; ++c) sum += rows[(T + place[t * choices + c]) * width + column];
  o.row(t)[column] = sum;
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

ReplicatedOperand replicated_operand(ConstTensor x, Tensor rows) {
  if (!x) return {};
  return {f32(x), rows.f32(), rows.shape.rank() == 3 ? rows.shape[2] : 1};
}

}  // namespace

std::int64_t most_sparse_runs() { return 8192; }

SparseOrder sparse_order(const SparseState& op, const std::int32_t* sequences, Workspace& workspace, cudaStream_t stream) {
  const std::int64_t S = static_cast<std::int64_t>(op.cu_seqlens.size()) - 1;
  const Items items{i32(op.selected), sequences, op.v.rows(), op.selected.row_size(), S, op.gate.row_size()};
  const std::int64_t runs = items.runs();
  const auto numbers = [&](std::int64_t n) { return workspace.tensor({n}, DType::i32).i32(); };
  constexpr auto of_item = static_cast<std::int64_t>(sizeof(SparseItem) / sizeof(std::int32_t));
  const Sorted sorted{reinterpret_cast<SparseItem*>(numbers(of_item * items.count())), numbers(items.count()), numbers(S + runs + 1),
                      numbers(S + runs)};
  const Gating gating{f32(op.gate), op.writers, op.readers, op.gate_q, op.gate_k, op.write_scale};
  // There are segments even without items.
  const auto tiles = std::max(static_cast<unsigned>(items.tiles()), 1U);
  launch_overlapped("sparse_state: sorting", sort_kernel, tiles, tile, 0, stream, sorted, items, gating);
  return {sorted.items, sorted.place, sequences, {sorted.cu_seqlens, sorted.slot, S + runs, items.T}};
}

SparseRows sparse_rows(const SparseState& op, const SparseOrder& order, Workspace& workspace, cudaStream_t stream) {
  const std::int64_t T = op.v.rows(), H = op.v.shape[1], rows = T * (1 + op.selected.row_size());
  SparseRows made;
  const auto row_tensor = [&](ConstTensor x, bool per_channel) {
    return !x ? Tensor{} : per_channel ? workspace.tensor({rows, H, x.shape[x.shape.rank() - 1]}) : workspace.tensor({rows, H});
  };
  made.q = row_tensor(op.q, true);
  made.k = row_tensor(op.k, true);
  made.v = row_tensor(op.v, true);
  made.log_decay = row_tensor(op.log_decay, op.log_decay && op.log_decay.shape.rank() == 4);
  made.beta = row_tensor(op.beta, false);
  made.o = workspace.tensor({rows, H, op.v.shape[2]});
  const Replication replication{replicated_operand(op.q, made.q),
                                replicated_operand(op.k, made.k),
                                replicated_operand(op.v, made.v),
                                replicated_operand(op.log_decay, made.log_decay),
                                replicated_operand(op.beta, made.beta),
                                order.items,
                                T,
                                rows,
                                H,
                                op.writers,
                                static_cast<bool>(op.beta),
                                op.gate_place == GatePlace::before_l2};
  launch("sparse_state: replicating", replicate_kernel, blocks_for(rows * H, warps), threads, 0, stream, replication);
  return made;
}

void sum_sparse_rows(const SparseState& op, const SparseOrder& order, const SparseRows& rows, cudaStream_t stream) {
  const std::int64_t T = op.v.rows(), width = op.o.row_size();
  launch("sparse_state: summing", combine_kernel, blocks_for(T * width, threads), threads, 0, stream, f32(op.o),
         static_cast<const float*>(rows.o.f32()), static_cast<const std::int32_t*>(order.place), T, op.selected.row_size(), op.readers,
         width);
}

}  // namespace statescope::cuda

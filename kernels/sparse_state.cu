// Sparse state expansion without the host: a counting sort of the items (one per token and choice) by sequence and partition. For memories
// that cannot gather, one kernel that makes their rows, and one that sums what they read.
#include "kernels/cuda_operations.h"
#include "kernels/sparse_state.h"

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
  const unsigned choices = static_cast<unsigned>(items.C), t = i / choices;
  return static_cast<int>(sequence_of(items, t) * items.N) + items.selected.row(t)[i % choices];
}

/// What the sort leaves behind (SparseOrder).
struct Sorted {
  SparseItem* items;                // [items]
  std::int32_t* place;              // [items]
  std::int32_t *cu_seqlens, *slot;  // [S + runs + 1], [S + runs]: the shared segments, then the runs
};

/// What the gate e multiplies; an item beyond the first `readers` does not read, beyond the first `writers` not write.
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

/// A block places the items of its tile: behind all of earlier runs and, in their own run, behind those of earlier tiles and tokens. It
/// counts all items itself, which is sooner done than a launch before this one.
__global__ void __launch_bounds__(tile) sort_kernel(Sorted sorted, Items items, Gating gating) {
  extern __shared__ std::int32_t all[];  // [2, runs]: how many items a run has; then, of earlier tiles, and where the next one goes
  __shared__ std::int32_t of_warp[warps_of_tile];
  wait_for_results();
  const auto runs = static_cast<unsigned>(items.runs()), count = static_cast<unsigned>(items.count());
  std::int32_t* const next = all + runs;
  const unsigned lane = threadIdx.x % warp_size, own_tile = blockIdx.x * tile;
  for (unsigned r = threadIdx.x; r < 2 * runs; r += tile) all[r] = 0;
  __syncthreads();
  int run = -1;  // of the thread's own item
  unsigned same = 0;
#pragma unroll 4
  for (unsigned first = 0; first < count; first += tile) {
    const unsigned i = first + threadIdx.x;
    const int r = i < count ? run_of(items, i) : -1;
    const unsigned equal = __match_any_sync(~0U, r);
    if (first == own_tile) run = r, same = equal;
    if (r < 0 || equal >> lane << lane != equal) continue;  // the first lane of a run counts it
    atomicAdd(all + r, __popc(equal));
    if (first < own_tile) atomicAdd(next + r, __popc(equal));
  }
  __syncthreads();
  const unsigned segments = max(static_cast<unsigned>(items.S) + 1, runs);
  std::int32_t begin = 0;
  for (unsigned from = 0; from < segments; from += tile) {
    const unsigned r = from + threadIdx.x;
    const std::int32_t of_run = r < runs ? all[r] : 0, before = sum_before(of_run, of_warp, begin);
    if (r < runs) next[r] += before;
    if (blockIdx.x == 0) list_segments(sorted, items, r, before + of_run);
  }
  // Warp after warp, so that items keep the order of their tokens.
  const unsigned before = same & ((1U << lane) - 1);
  std::int32_t place = 0;
  for (unsigned warp = 0; warp < warps_of_tile; ++warp) {
    __syncthreads();
    if (warp != threadIdx.x / warp_size) continue;
    if (before == 0 && run >= 0) place = next[run], next[run] += __popc(same);
    place = __shfl_sync(~0U, place, same != 0 ? __ffs(static_cast<int>(same)) - 1 : 0) + __popc(before);
  }
  if (run >= 0) {
    const unsigned i = own_tile + threadIdx.x;
    sorted.items[place] = gating.item(items, i);
    sorted.place[i] = place;
  }
  let_next_begin();
}

/// Operands [T, 2, H, n] or, for v, [T, H, n], and the memory's rows [T + items, H, n] that are made of them. What is absent has n = 0.
struct Operand {
  Rows<const float> from;
  float* to;
  std::int64_t n;
  __device__ const float* at(std::int64_t t, std::int64_t half, std::int64_t h, std::int64_t H) const {
    return from.row(t) + (half * H + h) * n;
  }
  __device__ float* row(std::int64_t row, std::int64_t h, std::int64_t H) const { return to + (row * H + h) * n; }
};

struct Gathering {
  Operand q, k, v, log_decay, beta;
  const SparseItem* items;
  std::int64_t T, rows, H, writers;
  bool l2, before_l2;
};

__device__ float sum_of_warp(float x) {
  for (unsigned distance = warp_size / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(~0U, x, distance);
  return x;
}

/// y = f x; for the delta rule y = L2(f x) or f L2(x)   (spec §4.3)
__device__ void gather_key(float* y, const float* x, std::int64_t n, float f, const Gathering& g) {
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

__device__ void gather_plain(const Operand& x, std::int64_t row, std::int64_t t, std::int64_t half, std::int64_t h, std::int64_t H,
                             bool present) {
  for (std::int64_t i = threadIdx.x % warp_size; i < x.n; i += warp_size) x.row(row, h, H)[i] = present ? x.at(t, half, h, H)[i] : 0;
}

/// A warp makes one head of one row of the memory: row t < T for the shared state, row T + p for an item.
__global__ void gather_kernel(Gathering g) {
  const std::int64_t index = std::int64_t{blockIdx.x} * warps + threadIdx.x / warp_size, row = index / g.H, h = index % g.H;
  if (row >= g.rows) return;
  const bool sparse = row >= g.T;
  const SparseItem item = sparse ? g.items[row - g.T] : SparseItem{static_cast<std::int32_t>(row), 0, 1, 1};
  const std::int64_t t = item.row, half = sparse ? 1 : 0;
  const bool writes = !sparse || item.choice < g.writers;
  gather_key(g.q.row(row, h, g.H), g.q.at(t, half, h, g.H), g.q.n, item.read, g);
  gather_key(g.k.row(row, h, g.H), g.k.at(t, half, h, g.H), g.k.n, item.write, g);
  gather_plain(g.v, row, t, 0, h, g.H, true);
  gather_plain(g.log_decay, row, t, half, h, g.H, writes);
  gather_plain(g.beta, row, t, half, h, g.H, writes);
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

Operand operand(ConstTensor x, Tensor rows) {
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
  // Without an item there are segments all the same.
  const auto tiles = std::max(static_cast<unsigned>(items.tiles()), 1U);
  launch_overlapped("sparse_state: sorting", sort_kernel, tiles, tile, 2 * static_cast<std::size_t>(runs) * sizeof(std::int32_t), stream,
                    sorted, items, gating);
  return {sorted.items, sorted.place, {sorted.cu_seqlens, sorted.slot, S + runs, items.T}};
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
  const Gathering gathering{operand(op.q, made.q),
                            operand(op.k, made.k),
                            operand(op.v, made.v),
                            operand(op.log_decay, made.log_decay),
                            operand(op.beta, made.beta),
                            order.items,
                            T,
                            rows,
                            H,
                            op.writers,
                            static_cast<bool>(op.beta),
                            op.gate_place == GatePlace::before_l2};
  launch("sparse_state: gathering", gather_kernel, blocks_for(rows * H, warps), threads, 0, stream, gathering);
  return made;
}

void sum_sparse_rows(const SparseState& op, const SparseOrder& order, const SparseRows& rows, cudaStream_t stream) {
  const std::int64_t T = op.v.rows(), width = op.o.row_size();
  launch("sparse_state: summing", combine_kernel, blocks_for(T * width, threads), threads, 0, stream, f32(op.o),
         static_cast<const float*>(rows.o.f32()), static_cast<const std::int32_t*>(order.place), T, op.selected.row_size(), op.readers,
         width);
}

}  // namespace statescope::cuda

// Softmax attention over tiles of keys with a running maximum, float32 throughout. Many queries: a block takes 64 of them against 64 keys
// at a time. Few queries that choose blocks (softmax_attention_few_queries.cu takes the others): a block takes one of them
// against 256 keys at a time. Where blocks are chosen (MoBA), each thread block chooses for its own queries in shared memory, so that
// nothing but the operands lies in device memory.
#include <algorithm>
#include <limits>

#include "kernels/cuda/any/softmax_sight.h"

namespace statescope::cuda {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

constexpr int tile = 64;       // queries of a block, and keys that it takes at a time
constexpr int channels = 32;   // of q and k in shared memory at a time
constexpr int values = 16;     // rows of v in shared memory at a time
constexpr int pitch_skew = 4;  // keeps rows in shared memory aligned to 16 bytes and apart in their banks
constexpr float infinity = std::numeric_limits<float>::infinity();

extern __shared__ float4 shared_memory[];

struct alignas(16) Four {
  float x[4];
};

// Many queries.

template <int Columns>
struct TileMemory {
  struct Scored {
    float q[tile][channels + pitch_skew], k[tile][channels + pitch_skew];
  };
  union {
    Scored scored;
    float v[values][Columns];
  };
  float weight[tile][tile + pitch_skew];  // e^{score − peak}: row = query
  std::uint64_t visible[tile];            // bit n of a query: it sees key n of the tile
};

/// The queries, keys and columns of a thread: queries 4 y … 4 y + 3, keys x, x + 16, x + 32, x + 48, columns 4 x … 4 x + 3 of every 64.
struct ThreadTile {
  int x = static_cast<int>(threadIdx.x) % 16, y = static_cast<int>(threadIdx.x) / 16;
  __device__ int query(int i) const { return 4 * y + i; }
  __device__ int key(int j) const { return x + 16 * j; }
  __device__ int column(int n) const { return n / 4 * 64 + 4 * x + n % 4; }
};

/// Of 4 queries: Σ e^{score − peak} v in this thread's columns, and its own keys' share of Σ e^{score − peak}.
template <int Columns>
struct Running {
  float o[4][Columns / 16] = {};
  float peak[4] = {-infinity, -infinity, -infinity, -infinity}, total[4] = {};
};

/// to [count, width], `pitch` apart ← the numbers from `column` on of the rows from `first` on; 0 from row `rows` and column `end` on.
template <int count, int width, int pitch>
__device__ void fetch(float* to, Rows<const float> from, std::int64_t first, std::int64_t rows, std::int64_t column, std::int64_t end) {
#pragma unroll 4
  for (int n = 0; n < count * width; n += threads) {
    const int i = n + static_cast<int>(threadIdx.x), r = i / width, c = i % width;
    to[r * pitch + c] = r < rows && column + c < end ? from.row(first + r)[column + c] : 0;
  }
}

/// Whether any query sees any of the keys from `first` on; a barrier. A thread looks for a query; four do where a pattern is followed.
template <int Columns>
__device__ bool look(TileMemory<Columns>& memory, const Problem& p, const Queries& x, const Choice& choice, std::int64_t first) {
  const int shares = p.pattern.block_size > 0 ? threads / tile : 1, keys = tile / shares;
  const int i = static_cast<int>(threadIdx.x) / shares, share = static_cast<int>(threadIdx.x) % shares;
  std::uint64_t seen = 0;
  if (i < x.count) seen = sight_of(p, x, choice, i).of_keys(first, share * keys, (share + 1) * keys);
  for (int distance = 1; distance < shares; distance *= 2) seen |= __shfl_xor_sync(~0U, seen, distance);
  if (share == 0 && i < tile) memory.visible[i] = seen;
  return __syncthreads_or(seen != 0);
}

/// score_ij = q_i · k_j of the thread's queries and keys. Ends with a barrier.
template <int Columns>
__device__ void multiply(float (&score)[4][4], TileMemory<Columns>& memory, const Problem& p, const Queries& x, ThreadTile at,
                         std::int64_t first, int keys) {
  constexpr int pitch = channels + pitch_skew;
  auto& [q, k] = memory.scored;
  for (std::int64_t c = 0; c < p.d; c += channels) {
    fetch<tile, channels, pitch>(&q[0][0], x.q, 0, x.count, c, p.d);
    fetch<tile, channels, pitch>(&k[0][0], x.k, first, keys, c, p.d);
    __syncthreads();
#pragma unroll 1
    for (int n = 0; n < channels; n += 4) {
      Four q_i[4], k_j[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) q_i[i] = *reinterpret_cast<const Four*>(&q[at.query(i)][n]);
#pragma unroll
      for (int j = 0; j < 4; ++j) k_j[j] = *reinterpret_cast<const Four*>(&k[at.key(j)][n]);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
#pragma unroll
          for (int e = 0; e < 4; ++e) score[i][j] = fmaf(q_i[i].x[e], k_j[j].x[e], score[i][j]);
        }
      }
    }
    __syncthreads();
  }
}

/// memory.weight ← e^{scale · score − peak} with a peak that has seen this tile too; o and total follow the peak.
template <int Columns>
__device__ void soften(Running<Columns>& running, float (&score)[4][4], TileMemory<Columns>& memory, float scale, ThreadTile at) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const std::uint64_t visible = memory.visible[at.query(i)];
    float peak = running.peak[i];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      score[i][j] *= scale;
      if (visible >> at.key(j) & 1) peak = fmaxf(peak, score[i][j]);
    }
    // A query's keys lie with 16 neighbouring lanes.
    for (int distance = 8; distance > 0; distance /= 2) peak = fmaxf(peak, __shfl_xor_sync(~0U, peak, distance));
    const float kept = peak > running.peak[i] ? expf(running.peak[i] - peak) : 1;
    running.peak[i] = peak;
    running.total[i] *= kept;
#pragma unroll
    for (int n = 0; n < Columns / 16; ++n) running.o[i][n] *= kept;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float weight = visible >> at.key(j) & 1 ? expf(score[i][j] - peak) : 0;
      running.total[i] += weight;
      memory.weight[at.query(i)][at.key(j)] = weight;
    }
  }
}

/// o += weight · v. Ends with a barrier.
template <int Columns>
__device__ void add_values(Running<Columns>& running, TileMemory<Columns>& memory, const Problem& p, const Queries& x, ThreadTile at,
                           std::int64_t first, int keys) {
  const std::int64_t column = std::int64_t{blockIdx.y} * Columns;
  for (int from = 0; from < keys; from += values) {
    fetch<values, Columns, Columns>(&memory.v[0][0], x.v, first + from, keys - from, column, p.V);
    __syncthreads();
#pragma unroll 1
    for (int n = 0; n < values; n += 4) {
      Four weight[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) weight[i] = *reinterpret_cast<const Four*>(&memory.weight[at.query(i)][from + n]);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
#pragma unroll
        for (int m = 0; m < Columns / 16; m += 4) {
          const Four v = *reinterpret_cast<const Four*>(&memory.v[n + e][at.column(m)]);
#pragma unroll
          for (int i = 0; i < 4; ++i) {
#pragma unroll
            for (int c = 0; c < 4; ++c) running.o[i][m + c] = fmaf(weight[i].x[e], v.x[c], running.o[i][m + c]);
          }
        }
      }
    }
    __syncthreads();
  }
}

template <int Columns>
__device__ void write_output(Running<Columns>& running, const Problem& p, const Queries& x, ThreadTile at) {
  const std::int64_t column = std::int64_t{blockIdx.y} * Columns;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float total = running.total[i];
    for (int distance = 8; distance > 0; distance /= 2) total += __shfl_xor_sync(~0U, total, distance);
    if (at.query(i) >= x.count) continue;
#pragma unroll
    for (int n = 0; n < Columns / 16; ++n) {
      if (column + at.column(n) < p.V) x.o.row(at.query(i))[column + at.column(n)] = running.o[i][n] / total;
    }
  }
}

/// A block: 64 queries of one head of one segment, and `Columns` columns of v (blockIdx.y).
template <int Columns>
__global__ void __launch_bounds__(threads, 2) attend_tile_kernel(Problem p) {
  const Queries x = queries_of(p, tile);
  if (x.count <= 0) return;
  auto& memory = *reinterpret_cast<TileMemory<Columns>*>(shared_memory);
  const Choice choice(p, reinterpret_cast<float*>(&memory + 1), tile);
  choose(choice, p, x);

  // o_t = Σ_s softmax_s(scale · q_t·k_s) v_s
  Running<Columns> running;
  const ThreadTile at;
  const std::int64_t end = x.position + x.count;
  for (std::int64_t first = start_of_keys(p, x, tile); first < end; first += tile) {
    if (!look(memory, p, x, choice, first)) continue;
    const int keys = static_cast<int>(std::min<std::int64_t>(tile, end - first));
    float score[4][4] = {};
    multiply(score, memory, p, x, at, first, keys);
    soften(running, score, memory, p.scale, at);
    add_values(running, memory, p, x, at, first, keys);
  }
  write_output(running, p, x, at);
}

// Few queries.

/// Of all threads, in each of them; `partial` [warps] is free again afterwards.
template <class Combine>
__device__ float block_reduce(float of_warp, float* partial, Combine combine) {
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = of_warp;
  __syncthreads();
  float result = partial[0];
  for (int warp = 1; warp < warps; ++warp) result = combine(result, partial[warp]);
  __syncthreads();
  return result;
}

struct QueryMemory {
  float weight[threads];   // e^{score − peak} of a key
  float partial[threads];  // of a sum or a maximum over the block
};

/// Lane n gets q · (row n of k) for every n in `visible`, which is the same in all lanes.
__device__ float score_of_lane(const float* q, Rows<const float> k, std::int64_t first, std::uint32_t visible, std::int64_t d) {
  float score = 0;
  for (; visible != 0; visible &= visible - 1) {
    const int n = __ffs(static_cast<int>(visible)) - 1;
    const float product = warp_dot(q, k.row(first + n), d);
    if (static_cast<int>(threadIdx.x) % 32 == n) score = product;
  }
  return score;
}

/// A block: one query of one head of one segment, and up to 256 columns of v (blockIdx.y). Of 256 keys a warp scores 32; then a thread adds
/// every `groups`-th value in its column.
__global__ void __launch_bounds__(threads) attend_query_kernel(Problem p) {
  const Queries x = queries_of(p, 1);
  if (x.count <= 0) return;
  auto& memory = *reinterpret_cast<QueryMemory*>(shared_memory);
  float* q = reinterpret_cast<float*>(&memory + 1);  // [d]
  const Choice choice(p, q + p.d, 1);
  const int thread = static_cast<int>(threadIdx.x);
  for (std::int64_t c = thread; c < p.d; c += threads) q[c] = x.q.row(0)[c];
  choose(choice, p, x);

  const Sight sight = sight_of(p, x, choice, 0);
  const std::int64_t first_column = std::int64_t{blockIdx.y} * threads;
  const int columns = static_cast<int>(std::min<std::int64_t>(threads, p.V - first_column)), groups = threads / columns;
  const int group = thread / columns;
  const std::int64_t column = first_column + thread % columns;

  float o = 0, peak = -infinity, total = 0;
  for (std::int64_t first = start_of_keys(p, x, threads); first <= x.position; first += threads) {
    const std::int64_t own = first + thread / 32 * 32;  // the first of the warp's keys
    const auto visible = static_cast<std::uint32_t>(sight.of_keys(own));
    if (!__syncthreads_or(visible != 0)) continue;
    const float score = p.scale * score_of_lane(q, x.k, own, visible, p.d);
    const bool seen = visible >> thread % 32 & 1;
    const float before = peak;
    peak = fmaxf(before, block_reduce(warp_max(seen ? score : -infinity), memory.partial, [](float a, float b) { return fmaxf(a, b); }));
    const float kept = peak > before ? expf(before - peak) : 1;
    const float weight = seen ? expf(score - peak) : 0;
    total = total * kept + weight;
    memory.weight[thread] = weight;
    __syncthreads();
    o *= kept;
    const int keys = static_cast<int>(std::min<std::int64_t>(threads, x.position + 1 - first));
    for (int n = group; group < groups && n < keys; n += groups) o = fmaf(memory.weight[n], x.v.row(first + n)[column], o);
  }
  total = block_reduce(warp_sum(total), memory.partial, [](float a, float b) { return a + b; });
  memory.partial[thread] = o;
  __syncthreads();
  if (thread >= columns) return;
  for (int n = 1; n < groups; ++n) o += memory.partial[n * columns + thread];
  x.o.row(0)[column] = o / total;
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

Problem problem_of(const SoftmaxAttention& op, const DeviceSegments& segments, const std::int32_t* cu_seqlens_k, std::int64_t most_keys) {
  Problem p{.q = f32(op.q),
            .k = f32(op.k),
            .v = f32(op.v),
            .o = f32(op.o),
            .selected = i32(op.selected_blocks),
            .H = op.q.shape[1],
            .Hkv = op.k.shape[1],
            .d = op.q.shape[2],
            .V = op.v.shape[2],
            .selected_width = std::max<std::int64_t>(op.blocks.topk - 1, 0),
            .scale = op.scale,
            .window = op.window,
            .blocks = op.blocks,
            .most_chosen = 0,
            .pattern = op.pattern,
            .given = i32(op.chosen.ids),
            .given_heads = op.chosen.ids.shape.rank() == 3 ? op.chosen.ids.shape[1] : 1,
            .given_width = op.chosen.ids.row_size(),
            .given_size = op.chosen.block_size,
            .segments = segments,
            .cu_seqlens_k = cu_seqlens_k};
  p.given_width /= p.given_heads;
  const BlockTopK& blocks = op.blocks;
  if (blocks.block_size == 0 || blocks.topk <= 1) return p;
  const std::int64_t complete = std::max<std::int64_t>(std::min(most_keys, blocks.until) - 1, 0) / blocks.block_size;
  p.most_chosen = static_cast<int>(std::min(blocks.topk - 1, complete));
  return p;
}

dim3 grid_of(const Problem& p, std::int64_t queries, std::int64_t columns) {
  const std::int64_t pieces = p.segments.count * p.H * ((p.segments.longest + queries - 1) / queries);
  return {static_cast<unsigned>(pieces), blocks_for(p.V, static_cast<unsigned>(columns))};
}

template <int Columns>
constexpr std::size_t tile_bytes = sizeof(TileMemory<Columns>);

template <int Columns>
void attend_tiles(const Problem& p, cudaStream_t stream) {
  launch("softmax_attention", attend_tile_kernel<Columns>, grid_of(p, tile, Columns), threads, tile_bytes<Columns> + Choice::bytes(p, tile),
         stream, p);
}

void attend_queries(const Problem& p, cudaStream_t stream) {
  const std::size_t bytes = sizeof(QueryMemory) + static_cast<std::size_t>(p.d) * sizeof(float) + Choice::bytes(p, 1);
  launch("softmax_attention", attend_query_kernel, grid_of(p, 1, threads), threads, bytes, stream, p);
}

}  // namespace

void softmax_attention(const SoftmaxAttention& op, const DeviceSegments& segments, const std::int32_t* cu_seqlens_k, std::int64_t most_keys,
                       cudaStream_t stream) {
  constexpr std::int64_t few = 8;
  const Problem p = problem_of(op, segments, cu_seqlens_k, most_keys);
  // A choice of hundreds of blocks has no room for 64 queries.
  const bool has_room = p.most_chosen == 0 || tile_bytes<256> + Choice::bytes(p, tile) <= most_shared_bytes();
  if (segments.longest <= few || !has_room) return attend_queries(p, stream);
  if (p.V <= 64) return attend_tiles<64>(p, stream);
  if (p.V <= 128) return attend_tiles<128>(p, stream);
  attend_tiles<256>(p, stream);
}

}  // namespace statescope::cuda

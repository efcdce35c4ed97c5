// The lightning indexer, float32 throughout: scores of some queries with all keys, then the largest of each query's by radix selection; the
// queries come in turns, so that their scores need not lie in memory all at once.
#include <algorithm>

#include "kernels/cuda/common/operations.h"
#include "kernels/cuda/common/order.h"

namespace statescope::cuda {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

constexpr int threads = 256, choose_threads = 1024, choose_warps = choose_threads / 32;
constexpr int digits = 256;  // of the radix selection
constexpr std::int64_t few_queries = 4;
constexpr int tile_keys = 64, tile_queries = 16, queries_of_thread = tile_queries / (threads / tile_keys);

struct Problem {
  Rows<const float> q, k, weight;  // [queries, H, d], [keys, d], [queries, H]
  Rows<float> scores;              // [queries, n] or absent
  Rows<std::int32_t> selected;     // [queries, n]
  float* I;                        // [segments, turn, most_keys] of the queries of this turn
  std::int64_t H, d, n, most_keys;
  std::int64_t first, turn;  // queries [first, first + turn) of every segment
  float scale;
  DeviceSegments segments;
  const std::int32_t* cu_seqlens_k;
};

/// Query i of a segment; row < 0: there is none.
struct Query {
  std::int64_t row = -1, position = 0;

  __device__ Query(const Problem& p, std::int64_t s, std::int64_t i) {
    const std::int64_t queries = p.segments.cu_seqlens[s + 1] - p.segments.cu_seqlens[s];
    if (i >= queries || i >= p.first + p.turn) return;
    row = p.segments.cu_seqlens[s] + i;
    position = p.cu_seqlens_k[s + 1] - p.cu_seqlens_k[s] - queries + i;
  }
};

__device__ float* scores_of(const Problem& p, std::int64_t s, std::int64_t i) { return p.I + (s * p.turn + i - p.first) * p.most_keys; }

extern __shared__ float shared_floats[];

/// blockIdx: 64 keys, 16 queries, a segment. A thread has one key and four queries.
__global__ void __launch_bounds__(threads) index_kernel(Problem p) {
  const std::int64_t s = blockIdx.z, first_key = std::int64_t{blockIdx.x} * tile_keys;
  const std::int64_t first_query = p.first + std::int64_t{blockIdx.y} * tile_queries, keys = p.cu_seqlens_k[s + 1] - p.cu_seqlens_k[s];
  const std::int64_t pitch = p.d + 1;  // keeps the rows of k apart in their banks
  float *k = shared_floats, *q = k + tile_keys * pitch;
  const int thread = static_cast<int>(threadIdx.x), x = thread % tile_keys, y = thread / tile_keys * queries_of_thread;
  for (std::int64_t n = thread; n < tile_keys * p.d; n += threads) {
    const std::int64_t j = n / p.d, c = n % p.d;
    k[j * pitch + c] = first_key + j < keys ? p.k.row(p.cu_seqlens_k[s] + first_key + j)[c] : 0;
  }

  // I_ts = Σ_h w_th relu(scale · q_th·k_s)
  float I[queries_of_thread] = {};
  for (std::int64_t h = 0; h < p.H; ++h) {
    __syncthreads();
    for (std::int64_t n = thread; n < tile_queries * p.d; n += threads) {
      const Query query(p, s, first_query + n / p.d);
      q[n] = query.row < 0 ? 0 : p.q.row(query.row)[h * p.d + n % p.d];
    }
    __syncthreads();
    float product[queries_of_thread] = {};
    for (std::int64_t c = 0; c < p.d; ++c) {
#pragma unroll
      for (int i = 0; i < queries_of_thread; ++i) product[i] = fmaf(q[(y + i) * p.d + c], k[x * pitch + c], product[i]);
    }
#pragma unroll
    for (int i = 0; i < queries_of_thread; ++i) {
      const Query query(p, s, first_query + y + i);
      if (query.row >= 0) I[i] = fmaf(p.weight.row(query.row)[h], fmaxf(p.scale * product[i], 0), I[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < queries_of_thread; ++i) {
    const Query query(p, s, first_query + y + i);
    if (query.row >= 0 && first_key + x <= query.position) scores_of(p, s, first_query + y + i)[first_key + x] = I[i];
  }
}

/// blockIdx: 64 keys, a query, a segment. A thread has one key and every fourth head.
__global__ void __launch_bounds__(threads) index_query_kernel(Problem p) {
  __shared__ float sums[threads];
  const std::int64_t s = blockIdx.z, first_key = std::int64_t{blockIdx.x} * tile_keys, i = p.first + blockIdx.y;
  const Query query(p, s, i);
  const std::int64_t keys = p.cu_seqlens_k[s + 1] - p.cu_seqlens_k[s], pitch = p.d + 1;
  if (query.row < 0 || first_key > query.position) return;
  float *k = shared_floats, *q = k + tile_keys * pitch;  // [64, d], [H, d]
  const int thread = static_cast<int>(threadIdx.x), x = thread % tile_keys;
  for (std::int64_t n = thread; n < tile_keys * p.d; n += threads) {
    const std::int64_t j = n / p.d, c = n % p.d;
    k[j * pitch + c] = first_key + j < keys ? p.k.row(p.cu_seqlens_k[s] + first_key + j)[c] : 0;
  }
  for (std::int64_t n = thread; n < p.H * p.d; n += threads) q[n] = p.q.row(query.row)[n];
  __syncthreads();

  // I_ts = Σ_h w_th relu(scale · q_th·k_s)
  float I = 0;
  for (std::int64_t h = thread / tile_keys; h < p.H; h += threads / tile_keys) {
    float product = 0;
#pragma unroll 8
    for (std::int64_t c = 0; c < p.d; ++c) product = fmaf(q[h * p.d + c], k[x * pitch + c], product);
    I = fmaf(p.weight.row(query.row)[h], fmaxf(p.scale * product, 0), I);
  }
  sums[thread] = I;
  __syncthreads();
  if (thread >= tile_keys || first_key + x > query.position) return;
  for (int n = x + tile_keys; n < threads; n += tile_keys) I += sums[n];
  scores_of(p, s, i)[first_key + x] = I;
}

/// Falls with the place of a score in order; equal for equal scores.
__device__ std::uint32_t size_of_score(float score) { return static_cast<std::uint32_t>(order_of(score, 0) >> 32); }

/// By one warp: the largest digit that has, with those above it, at least `left` scores; `left` ← how many of its own those are.
__device__ void find_digit(const std::uint32_t* counts, std::int64_t& left, std::uint32_t& found) {
  constexpr int each = digits / 32;
  const int lane = static_cast<int>(threadIdx.x), last = digits - 1 - lane * each;  // the lane's digits fall from `last` on
  std::int64_t own = 0;
  for (int i = 0; i < each; ++i) own += counts[last - i];
  std::int64_t before = own;
  for (int distance = 1; distance < 32; distance *= 2) {
    const std::int64_t larger = __shfl_up_sync(~0U, before, distance);
    if (lane >= distance) before += larger;
  }
  before -= own;  // of the lanes with larger digits
  const std::int64_t wanted = left;
  __syncwarp();
  if (before >= wanted || before + own < wanted) return;  // another lane has it
  int digit = last;
  while (wanted - before > counts[digit]) before += counts[digit--];
  left = wanted - before;
  found = static_cast<std::uint32_t>(digit);
}

/// The n-th largest of the scores [0, seen), n ≤ seen, and how many of those equal to it are among the n.
struct Threshold {
  std::uint32_t size;
  std::int64_t equals;
};
__device__ Threshold nth_largest(const float* I, std::int64_t seen, std::int64_t n) {
  __shared__ std::uint32_t counts[digits];
  __shared__ std::uint32_t digit_found;
  __shared__ std::int64_t left;
  std::uint32_t found = 0, mask = 0;
  if (threadIdx.x == 0) left = n;
  for (int shift = 24; shift >= 0; shift -= 8) {
    if (threadIdx.x < digits) counts[threadIdx.x] = 0;
    __syncthreads();
    for (std::int64_t j = threadIdx.x; j < seen; j += choose_threads) {
      const std::uint32_t size = size_of_score(I[j]), digit = size >> shift & (digits - 1);
      if ((size & mask) != found) continue;
      // Scores are alike in their first digits: the lanes of one digit count together.
      const unsigned alike = __match_any_sync(__activemask(), digit);
      if (__ffs(static_cast<int>(alike)) - 1 == static_cast<int>(threadIdx.x) % 32)
        atomicAdd(&counts[digit], static_cast<unsigned>(__popc(alike)));
    }
    __syncthreads();
    if (threadIdx.x < 32) find_digit(counts, left, digit_found);
    __syncthreads();
    found |= digit_found << shift;
    mask |= 255U << shift;
    __syncthreads();
  }
  return {found, left};
}

/// How many threads before this one are `in`, and of all; a barrier.
struct Rank {
  int before, all;
};
__device__ Rank rank_in_block(bool in) {
  __shared__ int of_warp[choose_warps];
  const unsigned lanes = __ballot_sync(~0U, in), lane = threadIdx.x % 32;
  if (lane == 0) of_warp[threadIdx.x / 32] = __popc(lanes);
  __syncthreads();
  Rank rank{__popc(lanes & ((1U << lane) - 1)), 0};
  for (int warp = 0; warp < choose_warps; ++warp) {
    if (warp < static_cast<int>(threadIdx.x) / 32) rank.before += of_warp[warp];
    rank.all += of_warp[warp];
  }
  __syncthreads();
  return rank;
}

/// blockIdx: a query of this turn, a segment.
__global__ void __launch_bounds__(choose_threads) choose_kernel(Problem p) {
  const std::int64_t s = blockIdx.y, i = p.first + blockIdx.x;
  const Query query(p, s, i);
  if (query.row < 0) return;
  const float* I = scores_of(p, s, i);
  const std::int64_t seen = query.position + 1, count = std::min(p.n, seen);
  const Threshold least = count < seen ? nth_largest(I, seen, count) : Threshold{0, seen};
  std::int32_t* selected = p.selected.row(query.row);
  float* scores = p.scores ? p.scores.row(query.row) : nullptr;
  std::int64_t taken = 0, equals = 0;
  for (std::int64_t tile = 0; tile < seen; tile += choose_threads) {
    const std::int64_t j = tile + threadIdx.x;
    const std::uint32_t size = j < seen ? size_of_score(I[j]) : 0;
    // Of equal scores the earlier ones.
    const bool equal = j < seen && count < seen && size == least.size;
    const Rank of_equals = rank_in_block(equal);
    const bool chosen = j < seen && (count == seen || size > least.size || (equal && equals + of_equals.before < least.equals));
    const Rank of_chosen = rank_in_block(chosen);
    if (chosen) {
      selected[taken + of_chosen.before] = static_cast<std::int32_t>(j);
      if (scores) scores[taken + of_chosen.before] = I[j];
    }
    equals += of_equals.all;
    taken += of_chosen.all;
  }
  for (std::int64_t w = count + threadIdx.x; w < p.n; w += choose_threads) {
    selected[w] = -1;
    if (scores) scores[w] = 0;
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

/// Queries of every segment at a time: scores of at most 256 MiB, but of 16 queries at least.
std::int64_t turn_of(const DeviceSegments& segments, std::int64_t most_keys) {
  constexpr std::int64_t most_scores = std::int64_t{1} << 26;
  const std::int64_t fit = most_scores / std::max<std::int64_t>(1, segments.count * most_keys);
  return std::min(segments.longest, std::max<std::int64_t>(fit, tile_queries));
}

}  // namespace

std::size_t token_choice_scratch(const DeviceSegments& segments, std::int64_t most_keys) {
  return static_cast<std::size_t>(segments.count * turn_of(segments, most_keys) * most_keys) * sizeof(float);
}

void choose_tokens(const TokenChoice& op, const DeviceSegments& segments, const std::int32_t* cu_seqlens_k, std::int64_t most_keys,
                   void* scratch, cudaStream_t stream) {
  Problem p{.q = f32(op.q),
            .k = f32(op.k),
            .weight = f32(op.weight),
            .scores = f32(op.scores),
            .selected = i32(op.selected),
            .I = static_cast<float*>(scratch),
            .H = op.q.shape[1],
            .d = op.q.shape[2],
            .n = op.selected.row_size(),
            .most_keys = most_keys,
            .first = 0,
            .turn = turn_of(segments, most_keys),
            .scale = op.scale,
            .segments = segments,
            .cu_seqlens_k = cu_seqlens_k};
  const auto bytes = [&](std::int64_t rows) { return static_cast<std::size_t>(tile_keys * (p.d + 1) + rows * p.d) * sizeof(float); };
  const auto S = static_cast<unsigned>(segments.count), tiles = blocks_for(most_keys, tile_keys);
  // With few queries a thread block has all heads of one, so that they are worked out beside one another.
  const bool few = segments.longest <= few_queries && bytes(p.H) <= most_shared_bytes();
  for (; p.first < segments.longest; p.first += p.turn) {
    if (few) {
      launch("choose_tokens", index_query_kernel, {tiles, static_cast<unsigned>(p.turn), S}, threads, bytes(p.H), stream, p);
    } else {
      launch("choose_tokens", index_kernel, {tiles, blocks_for(p.turn, tile_queries), S}, threads, bytes(tile_queries), stream, p);
    }
    launch("choose_tokens", choose_kernel, {static_cast<unsigned>(p.turn), S}, choose_threads, 0, stream, p);
  }
}

}  // namespace statescope::cuda

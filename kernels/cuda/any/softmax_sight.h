// Which keys the queries of a thread block see: all before them, a window, blocks that they choose themselves, a fixed pattern, or blocks
// that something else has chosen (kernels/ops/softmax_attention.h). Included by softmax_attention.cu alone.
#pragma once

#include <algorithm>

#include "kernels/cuda/common/operations.h"

namespace statescope::cuda {
namespace {

constexpr int threads = 256, warps = threads / 32;

struct Problem {
  Rows<const float> q, k, v;    // [queries, H, d], [keys, Hkv, d], [keys, Hkv, V]
  Rows<float> o;                // [queries, H, V]
  Rows<std::int32_t> selected;  // [queries, H, selected_width]; absent: not wanted
  std::int64_t H, Hkv, d, V, selected_width;
  float scale;
  std::int64_t window;
  BlockTopK blocks;
  int most_chosen;  // blocks that a query can choose; 0: none does
  FixedPattern pattern;
  Rows<const std::int32_t> given;  // [queries, given_heads, given_width]: ascending blocks of given_size keys; absent: none
  std::int64_t given_heads, given_width, given_size;
  DeviceSegments segments;
  const std::int32_t* cu_seqlens_k;
};

/// The queries of this thread block: `count` (0 or less: none) of one head of one segment.
struct Queries {
  std::int64_t head, row, count;  // row: of the first one in q
  std::int64_t position;          // of the first one among its segment's keys
  Rows<const float> q, k, v;      // row 0: the first query, the segment's first key
  Rows<float> o;
};

/// gridDim.x = segments · H · (blocks that the longest segment takes); late queries, which see most keys, come first.
__device__ Queries queries_of(const Problem& p, std::int64_t per_block) {
  const std::int64_t blocks = (p.segments.longest + per_block - 1) / per_block, piece = blockIdx.x / blocks;
  const std::int64_t s = piece / p.H, h = piece % p.H, first = (blocks - 1 - blockIdx.x % blocks) * per_block;
  const std::int64_t queries = p.segments.cu_seqlens[s + 1] - p.segments.cu_seqlens[s], row = p.segments.cu_seqlens[s] + first;
  const std::int64_t first_key = p.cu_seqlens_k[s], keys = p.cu_seqlens_k[s + 1] - first_key;
  const std::int64_t h_kv = producer_head(h, p.Hkv, p.H);
  return {h,
          row,
          std::min(per_block, queries - first),
          keys - queries + first,
          {p.q.row(row) + h * p.d, p.q.stride},
          {p.k.row(first_key) + h_kv * p.d, p.k.stride},
          {p.v.row(first_key) + h_kv * p.V, p.v.stride},
          {p.o.row(row) + h * p.V, p.o.stride}};
}

__device__ float warp_sum(float x) {
  for (int distance = 16; distance > 0; distance /= 2) x += __shfl_xor_sync(~0U, x, distance);
  return x;
}

__device__ float warp_max(float x) {
  for (int distance = 16; distance > 0; distance /= 2) x = fmaxf(x, __shfl_xor_sync(~0U, x, distance));
  return x;
}

/// a · b, in every lane.
__device__ float warp_dot(const float* a, const float* b, std::int64_t n) {
  float sum = 0;
  for (std::int64_t c = threadIdx.x % 32; c < n; c += 32) sum = fmaf(a[c], b[c], sum);
  return warp_sum(sum);
}

// The choice of blocks (spec §4.8).

/// In shared memory: of each query of this thread block the best blocks so far, best first, and −1 behind them.
struct Choice {
  int width;            // Problem::most_chosen
  float* mean;          // [d] key of the block that is looked at
  float* score;         // [queries, width]
  std::int32_t* block;  // [queries, width]

  __device__ Choice(const Problem& p, float* memory, int queries)
      : width(p.most_chosen), mean(memory), score(mean + p.d), block(reinterpret_cast<std::int32_t*>(score + queries * p.most_chosen)) {}
  static std::size_t bytes(const Problem& p, int queries) {
    const auto width = static_cast<std::size_t>(p.most_chosen);
    if (width == 0) return 0;
    return static_cast<std::size_t>(p.d) * sizeof(float) +
           static_cast<std::size_t>(queries) * width * (sizeof(float) + sizeof(std::int32_t));
  }
};

/// Inserts block b, after all before it, among the best; of equal scores the earlier comes first.
__device__ void insert_block(float* score, std::int32_t* block, int width, int b, float found) {
  int place = std::min(b, width);
  while (place > 0 && found > score[place - 1]) --place;
  if (place == width) return;
  for (int n = std::min(b, width - 1); n > place; --n) {
    score[n] = score[n - 1];
    block[n] = block[n - 1];
  }
  score[place] = found;
  block[place] = b;
}

/// Each thread averages some channels of a block's keys, then each warp scores the block for some queries, and its first lane inserts it.
__device__ void choose_blocks(const Choice& choice, const Problem& p, const Queries& x) {
  const int thread = static_cast<int>(threadIdx.x);
  for (std::int64_t i = thread; i < x.count * choice.width; i += threads) choice.block[i] = -1;
  const std::int64_t size = p.blocks.block_size, until = p.blocks.until, last = std::min(x.position + x.count, until) - 1;
  const std::int64_t candidates = last < x.position ? 0 : last / size;
  for (std::int64_t b = 0; b < candidates; ++b) {
    for (std::int64_t c = thread; c < p.d; c += threads) {
      float sum = 0;
#pragma unroll 8
      for (std::int64_t j = b * size; j < (b + 1) * size; ++j) sum += x.k.row(j)[c];
      choice.mean[c] = sum * (1 / static_cast<float>(size));
    }
    __syncthreads();
    for (std::int64_t i = thread / 32; i < x.count; i += warps) {
      if (x.position + i >= until || b >= (x.position + i) / size) continue;
      const float score = warp_dot(x.q.row(i), choice.mean, p.d);
      if (thread % 32 == 0) {
        insert_block(choice.score + i * choice.width, choice.block + i * choice.width, choice.width, static_cast<int>(b), score);
      }
    }
    __syncthreads();
  }
}

/// Every number of `selected` is written by the thread block of its query that has the first columns.
__device__ void write_selected(const Choice& choice, const Problem& p, const Queries& x) {
  if (!p.selected || blockIdx.y > 0) return;
  for (std::int64_t i = threadIdx.x; i < x.count * p.selected_width; i += threads) {
    const std::int64_t query = i / p.selected_width, n = i % p.selected_width;
    p.selected.row(x.row + query)[x.head * p.selected_width + n] = n < choice.width ? choice.block[query * choice.width + n] : -1;
  }
}

/// Ends with a barrier: all threads may read the choices, and what was stored to shared memory before.
__device__ void choose(const Choice& choice, const Problem& p, const Queries& x) {
  if (choice.width > 0) choose_blocks(choice, p, x);
  __syncthreads();
  write_selected(choice, p, x);
}

/// What one query sees: the keys [begin, end) and those of some blocks; or, with a pattern, what that lets it see before `end`.
struct Sight {
  std::int64_t begin, end, block_size;
  const std::int32_t* blocks;  // [width], −1 behind the last one
  std::int64_t width;
  bool given;  // the blocks ascend, and may reach beyond `end`
  const FixedPattern& pattern;
  std::int64_t head;

  /// Bits [from, to) of 64.
  static __device__ std::uint64_t bits(std::int64_t from, std::int64_t to) { return bits_below(to) & ~bits_below(from); }
  static __device__ std::uint64_t bits_below(std::int64_t n) {
    return n <= 0 ? 0 : n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
  }
  /// Bit n: key first + n is seen. Where a pattern is followed, of the keys [from, to) of 64 alone.
  __device__ std::uint64_t of_keys(std::int64_t first, int from = 0, int to = 64) const {
    if (pattern.block_size > 0) return of_pattern(first, from, to);
    return of_range_and_blocks(first);
  }

 private:
  __device__ std::uint64_t of_range_and_blocks(std::int64_t first) const {
    std::uint64_t seen = bits(begin - first, end - first);
    for (std::int64_t n = given ? first_reaching(first) : 0; n < width && blocks[n] >= 0; ++n) {
      const std::int64_t from = blocks[n] * block_size - first;
      if (given && from >= 64) break;
      seen |= bits(from, from + block_size);
    }
    return given ? seen & bits_below(end - first) : seen;
  }
  /// The first of the ascending blocks that has a key from `first` on.
  __device__ std::int64_t first_reaching(std::int64_t first) const {
    const auto block = static_cast<std::uint32_t>(first / block_size);
    std::int64_t low = 0, high = width;
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (static_cast<std::uint32_t>(blocks[middle]) < block)
        low = middle + 1;  // −1 becomes the largest
      else
        high = middle;
    }
    return low;
  }
  __device__ std::uint64_t of_pattern(std::int64_t first, int from, int to) const {
    const std::int64_t size = pattern.block_size, own = (end - 1) / size;
    std::uint64_t seen = 0;
    for (std::int64_t b = (first + from) / size; b <= own && b * size < first + to; ++b) {
      if (pattern.sees(head, own, b)) seen |= bits(b * size - first, (b + 1) * size - first);
    }
    return seen & bits(from, to) & bits_below(end - first);
  }
};

/// What query i of this thread block sees.
__device__ Sight sight_of(const Problem& p, const Queries& x, const Choice& choice, int i) {
  const std::int64_t position = x.position + i, size = p.blocks.block_size, end = position + 1;
  if (p.given) {
    const std::int32_t* blocks = p.given.row(x.row + i) + producer_head(x.head, p.given_heads, p.H) * p.given_width;
    return {end, end, p.given_size, blocks, p.given_width, true, p.pattern, x.head};
  }
  const bool chooses = choice.width > 0 && position < p.blocks.until;
  const std::int64_t oldest = p.window > 0 ? std::max<std::int64_t>(0, position + 1 - p.window) : 0;
  const std::int64_t begin = chooses ? position / size * size : oldest;
  return {begin, end, size, choice.block + i * choice.width, choice.width, false, p.pattern, x.head};
}

/// The first key to look at, a multiple of `keys`: none before is seen by the first query or a later one.
__device__ std::int64_t start_of_keys(const Problem& p, const Queries& x, int keys) {
  return p.window > 0 ? std::max<std::int64_t>(0, x.position + 1 - p.window) / keys * keys : 0;
}

}  // namespace
}  // namespace statescope::cuda

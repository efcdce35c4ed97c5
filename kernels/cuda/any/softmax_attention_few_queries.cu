// Softmax attention of few queries over many keys, float32 throughout: a token's step. It is bound by the bytes of the keys and values, so
// the keys of a query are cut into parts, and a thread block takes one part for several heads that read the same keys. Of a part P
//
//   m_P = max_s scale · q·k_s,   l_P = Σ_s e^{scale · q·k_s − m_P},   o_P = Σ_s e^{scale · q·k_s − m_P} v_s      over s in P
//
// (many heads share a key, as with latents: each warp takes some of them, and the keys come through shared memory), and a second kernel
// puts the parts together (Dao et al. 2023, Flash-Decoding): with m = max_P m_P
//
//   o = Σ_P e^{m_P − m} o_P / Σ_P e^{m_P − m} l_P
#include <cuda_pipeline.h>

#include <algorithm>
#include <limits>

#include "kernels/cuda/common/operations.h"

namespace statescope::cuda {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

constexpr int threads = 256, warps = threads / 32;
constexpr int least_part = 128, most_parts = 128;  // keys of a part, parts of a query
constexpr float infinity = std::numeric_limits<float>::infinity();

struct Softmax {
  float peak, total;  // m_P, l_P
};

struct Problem {
  Rows<const float> q, k, v;  // [queries, H, d], [keys, Hkv, d], [keys, Hkv, V]
  Rows<float> o;              // [queries, H, V]
  std::int64_t H, Hkv, d, V;
  std::int64_t blocks_per_kv_head;  // thread blocks that share the heads of a key head
  float scale;
  std::int64_t window;
  FixedPattern pattern;
  Rows<const std::int32_t> given;  // [queries, given_heads, given_width]: ascending blocks of given_size keys; absent: all keys are seen
  std::int64_t given_heads, given_width, given_size;
  DeviceSegments segments;
  const std::int32_t* cu_seqlens_k;
  bool values_in_keys;    // v is the first columns of k
  std::int64_t parts;     // of the query that sees most keys
  Softmax* part_softmax;  // [queries, H, parts]
  float* part_o;          // [queries, H, parts, V]
};

/// One query of a thread block, and the keys that it sees, counted from 0.
struct Query {
  std::int64_t row, first_key;  // in q; of its segment's keys
  std::int64_t begin, end;      // of the positions that it may see
  const std::int32_t* blocks;   // null: it sees all of them, or what the pattern lets it see
  std::int64_t size, count;     // keys of a block; keys, of which a list or the pattern may hide some
  std::int64_t head;            // that the pattern is of

  __device__ std::int64_t position(std::int64_t n) const { return blocks ? blocks[n / size] * size + n % size : begin + n; }
  __device__ bool sees(const FixedPattern& pattern, std::int64_t n) const {
    if (blocks) return blocks[n / size] >= 0 && position(n) < end;
    return pattern.block_size == 0 || pattern.sees(head, (end - 1) / pattern.block_size, n / pattern.block_size);
  }
  /// Where key n lies; of one that is not `seen`, a row that is there.
  __device__ std::int64_t row_of(std::int64_t n, bool seen) const { return first_key + (seen ? position(n) : 0); }
  /// Keys of a part, a multiple of least_part.
  __device__ std::int64_t part() const {
    constexpr std::int64_t step = std::int64_t{least_part} * most_parts;
    return std::max<std::int64_t>((count + step - 1) / step, 1) * least_part;
  }
};

/// Query i of segment s and head h; `count` 0 where the segment has no such query.
__device__ Query query_of(const Problem& p, std::int64_t s, std::int64_t i, std::int64_t h) {
  const std::int64_t first = p.segments.cu_seqlens[s], queries = p.segments.cu_seqlens[s + 1] - first;
  const std::int64_t first_key = p.cu_seqlens_k[s], end = p.cu_seqlens_k[s + 1] - first_key - queries + i + 1;
  if (i >= queries) return {};
  if (p.given) {
    const std::int32_t* blocks = p.given.row(first + i) + producer_head(h, p.given_heads, p.H) * p.given_width;
    return {first + i, first_key, 0, end, blocks, p.given_size, p.given_width * p.given_size, h};
  }
  const std::int64_t begin = p.window > 0 ? std::max<std::int64_t>(0, end - p.window) : 0;
  return {first + i, first_key, begin, end, nullptr, 1, end - begin, h};
}

/// Lane l gets Σ over all lanes of their x[l % n]: it exchanges half of what is left with a neighbour that keeps the other half.
template <int n, int size>
__device__ float sum_over_lanes(float (&x)[size]) {
  constexpr int half = n / 2;
  if constexpr (half > 0) {
    const bool upper = static_cast<int>(threadIdx.x) & half;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const float sent = upper ? x[i] : x[i + half], kept = upper ? x[i + half] : x[i];
      x[i] = kept + __shfl_xor_sync(~0U, sent, half);
    }
    return sum_over_lanes<half>(x);
  } else {
    for (int distance = size; distance < 32; distance *= 2) x[0] += __shfl_xor_sync(~0U, x[0], distance);
    return x[0];
  }
}

/// x[c] ← number lane + 32 c of a row of n; 0 behind the last one.
template <int Columns>
__device__ void load_row(float (&x)[Columns], const float* row, std::int64_t n) {
#pragma unroll
  for (int c = 0; c < Columns; ++c) {
    const int column = static_cast<int>(threadIdx.x) % 32 + 32 * c;
    x[c] = column < n ? row[column] : 0;
  }
}

/// Keys that a warp takes at a time.
template <int Heads>
constexpr int keys_at_a_time = Heads == 8 ? 4 : 8;

/// `Heads` queries of a warp. Lane l has of columns l, l + 32, …, and the softmax of head l % Heads; its own share of the total.
template <int Columns, int Heads>
struct Running {
  float o[Heads][Columns] = {};
  float peak = -infinity, total = 0;
};

/// Bit i: the query sees key n + i, which lies before `end`.
template <int Heads>
__device__ unsigned seen_keys_from(const Problem& p, const Query& x, std::int64_t n, std::int64_t end) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return __ballot_sync(~0U, lane < keys_at_a_time<Heads> && n + lane < end && x.sees(p.pattern, n + lane));
}

/// Some keys join the warp, of which it sees those of `seen_keys`; k_row(i) and v_row(i) are there for all of them.
template <int Columns, int Heads, class KeyRow, class ValueRow>
__device__ void attend(Running<Columns, Heads>& running, const float (&q)[Heads][Columns], const Problem& p, unsigned seen_keys,
                       const KeyRow& k_row, const ValueRow& v_row) {
  constexpr int keys = keys_at_a_time<Heads>, scores = keys * Heads, at_once = Columns * Heads > 64 ? 1 : Columns > 8 ? 2 : 4;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (seen_keys == 0) return;
  const auto sees = [&](int i) { return (seen_keys >> i & 1) != 0; };

  float score[scores] = {};  // of key i and head h at i · Heads + h: this lane's columns of q_h · k_i
#pragma unroll
  for (int first = 0; first < keys; first += at_once) {
    float row[at_once][Columns];
#pragma unroll
    for (int i = 0; i < at_once; ++i) load_row(row[i], k_row(first + i), p.d);
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
#pragma unroll
      for (int h = 0; h < Heads; ++h) {
#pragma unroll
        for (int c = 0; c < Columns; ++c) score[(first + i) * Heads + h] = fmaf(q[h][c], row[i][c], score[(first + i) * Heads + h]);
      }
    }
  }
  const bool seen = sees(lane % scores / Heads);  // the key of this lane's score
  const float scaled = p.scale * sum_over_lanes<scores>(score);
  float peak = seen ? fmaxf(running.peak, scaled) : running.peak;
#pragma unroll
  for (int distance = Heads; distance < scores; distance *= 2) peak = fmaxf(peak, __shfl_xor_sync(~0U, peak, distance));
  const float weight = seen ? expf(scaled - peak) : 0;
  const float kept = peak > running.peak ? expf(running.peak - peak) : 1;
  running.total = running.total * kept + weight;
  running.peak = peak;
  if (__any_sync(~0U, kept < 1)) {
#pragma unroll
    for (int h = 0; h < Heads; ++h) {
      const float kept_h = __shfl_sync(~0U, kept, h);
#pragma unroll
      for (int c = 0; c < Columns; ++c) running.o[h][c] *= kept_h;
    }
  }
#pragma unroll
  for (int first = 0; first < keys; first += at_once) {
    float row[at_once][Columns];
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      // A value that is not seen counts as 0, whatever lies there.
      load_row(row[i], v_row(first + i), sees(first + i) ? p.V : 0);
    }
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
#pragma unroll
      for (int h = 0; h < Heads; ++h) {
        const float weight_h = __shfl_sync(~0U, weight, (first + i) * Heads + h);
#pragma unroll
        for (int c = 0; c < Columns; ++c) running.o[h][c] = fmaf(weight_h, row[i][c], running.o[h][c]);
      }
    }
  }
}

template <int Columns, int Heads>
struct BlockMemory {
  Softmax softmax[warps][Heads];
  float o[warps][32 * Columns];
};

/// A block: one query, up to `Heads` heads that read the same keys, one part of the keys (blockIdx.y). A warp takes every eighth few keys.
template <int Columns, int Heads>
__global__ void __launch_bounds__(threads, 1) attend_part_kernel(Problem p) {
  __shared__ BlockMemory<Columns, Heads> memory;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t group = blockIdx.x % (p.Hkv * p.blocks_per_kv_head), piece = blockIdx.x / (p.Hkv * p.blocks_per_kv_head);
  const std::int64_t kv_head = group / p.blocks_per_kv_head, group_heads = p.H / p.Hkv;
  const std::int64_t first_of_group = group % p.blocks_per_kv_head * Heads;
  const int heads = static_cast<int>(std::min<std::int64_t>(Heads, group_heads - first_of_group));
  const std::int64_t first_head = kv_head * group_heads + first_of_group;
  const Query x = query_of(p, piece / p.segments.longest, piece % p.segments.longest, first_head);
  const std::int64_t part = x.part(), begin = blockIdx.y * part, end = std::min(begin + part, x.count);
  if (begin >= end) return;

  float q[Heads][Columns];
#pragma unroll
  for (int h = 0; h < Heads; ++h) load_row(q[h], p.q.row(x.row) + (first_head + h) * p.d, h < heads ? p.d : 0);
  const Rows<const float> k{p.k.row(0) + kv_head * p.d, p.k.stride}, v{p.v.row(0) + kv_head * p.V, p.v.stride};
  Running<Columns, Heads> running;
  constexpr int keys = keys_at_a_time<Heads>, scores = keys * Heads;
  for (std::int64_t n = begin + warp * keys; n < end; n += warps * keys) {
    const unsigned seen = seen_keys_from<Heads>(p, x, n, end);
    const auto row = [&](int i) { return x.row_of(n + i, seen >> i & 1); };
    attend(
        running, q, p, seen, [&](int i) { return k.row(row(i)); }, [&](int i) { return v.row(row(i)); });
  }

#pragma unroll
  for (int distance = Heads; distance < scores; distance *= 2) running.total += __shfl_xor_sync(~0U, running.total, distance);
  if (lane < Heads) memory.softmax[warp][lane] = {running.peak, running.total};
  const bool whole = x.count <= part;
#pragma unroll
  for (int h = 0; h < Heads; ++h) {
#pragma unroll
    for (int c = 0; c < Columns; ++c) memory.o[warp][lane + 32 * c] = running.o[h][c];
    __syncthreads();
    float peak = -infinity, total = 0;
    for (int w = 0; w < warps; ++w) peak = fmaxf(peak, memory.softmax[w][h].peak);
    float factor[warps];
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      factor[w] = memory.softmax[w][h].peak == peak ? 1 : expf(memory.softmax[w][h].peak - peak);
      total = fmaf(factor[w], memory.softmax[w][h].total, total);
    }
    const std::int64_t head = x.row * p.H + first_head + h, at = head * p.parts + blockIdx.y;
    for (int c = static_cast<int>(threadIdx.x); h < heads && c < p.V; c += threads) {
      float sum = 0;
#pragma unroll
      for (int w = 0; w < warps; ++w) sum = fmaf(factor[w], memory.o[w][c], sum);
      (whole ? p.o.row(x.row) + (first_head + h) * p.V : p.part_o + at * p.V)[c] = whole ? sum / total : sum;
    }
    if (!whole && h < heads && threadIdx.x == 0) p.part_softmax[at] = {peak, total};
    __syncthreads();
  }
}

// Many heads.

constexpr int stages = 4;  // few keys each, on their way into shared memory

/// A block: one query, up to 8 · `Heads` heads that read the same keys, one part of the keys (blockIdx.y). A warp takes `Heads` of them.
template <int Columns, int Heads>
__global__ void __launch_bounds__(threads, 1) attend_part_heads_kernel(Problem p) {
  constexpr int keys = keys_at_a_time<Heads>, scores = keys * Heads;
  extern __shared__ float4 shared_memory[];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t group = blockIdx.x % (p.Hkv * p.blocks_per_kv_head), piece = blockIdx.x / (p.Hkv * p.blocks_per_kv_head);
  const std::int64_t kv_head = group / p.blocks_per_kv_head, group_heads = p.H / p.Hkv;
  const std::int64_t first_of_group = (group % p.blocks_per_kv_head * warps + warp) * Heads,
                     first_head = kv_head * group_heads + first_of_group;
  const int heads = static_cast<int>(std::clamp<std::int64_t>(group_heads - first_of_group, 0, Heads));
  const Query x = query_of(p, piece / p.segments.longest, piece % p.segments.longest, kv_head * group_heads);
  const std::int64_t part = x.part(), begin = blockIdx.y * part, end = std::min(begin + part, x.count);
  if (begin >= end) return;

  float q[Heads][Columns];
#pragma unroll
  for (int h = 0; h < Heads; ++h) load_row(q[h], p.q.row(x.row) + (first_head + h) * p.d, h < heads ? p.d : 0);

  // Of a stage: k [keys, d], v [keys, V].
  const std::int64_t stage_size = keys * (p.d + (p.values_in_keys ? 0 : p.V));
  const auto stage = [&](std::int64_t n) { return reinterpret_cast<float*>(shared_memory) + (n - begin) / keys % stages * stage_size; };
  const auto fetch = [&](float* to, const float* from, std::int64_t width) {
    for (int c = 4 * lane; c < width; c += 4 * 32) __pipeline_memcpy_async(to + c, from + c, sizeof(float4));
  };
  const auto fetch_keys = [&](std::int64_t n) {  // a warp copies a key
    if (warp < keys && n + warp < end) {
      const std::int64_t row = x.row_of(n + warp, x.sees(p.pattern, n + warp));
      fetch(stage(n) + warp * p.d, p.k.row(row) + kv_head * p.d, p.d);
      if (!p.values_in_keys) fetch(stage(n) + keys * p.d + warp * p.V, p.v.row(row) + kv_head * p.V, p.V);
    }
    __pipeline_commit();
  };
  for (int i = 0; i < stages; ++i) fetch_keys(begin + i * keys);

  Running<Columns, Heads> running;
  for (std::int64_t n = begin; n < end; n += keys) {
    __pipeline_wait_prior(stages - 1);
    __syncthreads();
    const float *k = stage(n), *v = p.values_in_keys ? k : k + keys * p.d;
    const std::int64_t v_pitch = p.values_in_keys ? p.d : p.V;
    const unsigned seen = heads > 0 ? seen_keys_from<Heads>(p, x, n, end) : 0;
    attend(
        running, q, p, seen, [&](int i) { return k + i * p.d; }, [&](int i) { return v + i * v_pitch; });
    __syncthreads();
    fetch_keys(n + stages * keys);
  }

#pragma unroll
  for (int distance = Heads; distance < scores; distance *= 2) running.total += __shfl_xor_sync(~0U, running.total, distance);
  const bool whole = x.count <= part;
#pragma unroll
  for (int h = 0; h < Heads; ++h) {
    const float peak = __shfl_sync(~0U, running.peak, h), total = __shfl_sync(~0U, running.total, h);
    const std::int64_t head = first_head + h, at = (x.row * p.H + head) * p.parts + blockIdx.y;
    float* o = whole ? p.o.row(x.row) + head * p.V : p.part_o + at * p.V;
#pragma unroll
    for (int c = 0; c < Columns; ++c) {
      if (h < heads && lane + 32 * c < p.V) o[lane + 32 * c] = whole ? running.o[h][c] / total : running.o[h][c];
    }
    if (!whole && h < heads && lane == 0) p.part_softmax[at] = {peak, total};
  }
}

/// A block: one head of one query (blockIdx.x), whose keys were more than one part.
__global__ void __launch_bounds__(threads) combine_parts_kernel(Problem p) {
  __shared__ float factor[most_parts];
  const std::int64_t piece = blockIdx.x / p.H, h = blockIdx.x % p.H;
  const Query x = query_of(p, piece / p.segments.longest, piece % p.segments.longest, h);
  if (x.count <= x.part()) return;
  const int parts = static_cast<int>((x.count + x.part() - 1) / x.part());
  const std::int64_t first = (x.row * p.H + h) * p.parts;
  float peak = -infinity, total = 0;
  for (int i = 0; i < parts; ++i) peak = fmaxf(peak, p.part_softmax[first + i].peak);
  for (int i = static_cast<int>(threadIdx.x); i < parts; i += threads) {
    const float own = p.part_softmax[first + i].peak;
    factor[i] = own == peak ? 1 : expf(own - peak);
  }
  __syncthreads();
  for (int i = 0; i < parts; ++i) total = fmaf(factor[i], p.part_softmax[first + i].total, total);
  for (std::int64_t c = threadIdx.x; c < p.V; c += threads) {
    float sum = 0;
#pragma unroll 8
    for (int i = 0; i < parts; ++i) sum = fmaf(factor[i], p.part_o[(first + i) * p.V + c], sum);
    p.o.row(x.row)[h * p.V + c] = sum / total;
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

/// Parts of the query that sees most keys.
std::int64_t parts_of(const SoftmaxAttention& op, std::int64_t most_keys) {
  std::int64_t keys = op.window > 0 ? std::min(op.window, most_keys) : most_keys;
  if (op.chosen.ids) keys = op.chosen.ids.shape[op.chosen.ids.shape.rank() - 1] * op.chosen.block_size;
  return std::clamp<std::int64_t>((keys + least_part - 1) / least_part, 1, most_parts);
}

/// Whether rows can be copied 16 bytes at a time.
bool is_aligned(Rows<const float> x, std::int64_t width) {
  constexpr std::int64_t step = sizeof(float4) / sizeof(float);
  return width % step == 0 && x.stride % step == 0 && reinterpret_cast<std::uintptr_t>(x.data) % sizeof(float4) == 0;
}

/// `heads` of a block, which read the same keys.
void launch_parts(Problem p, void (*kernel)(Problem), std::int64_t heads, std::size_t shared_bytes, cudaStream_t stream) {
  p.blocks_per_kv_head = (p.H / p.Hkv + heads - 1) / heads;
  const auto parts = static_cast<unsigned>(p.parts);
  const std::int64_t pieces = p.segments.count * p.segments.longest;
  launch("softmax_attention", kernel, {static_cast<unsigned>(pieces * p.Hkv * p.blocks_per_kv_head), parts}, threads, shared_bytes, stream,
         p);
  if (parts == 1) return;
  launch("softmax_attention", combine_parts_kernel, static_cast<unsigned>(pieces * p.H), threads, 0, stream, p);
}

template <int Columns, int Heads>
void attend_parts(const Problem& p, cudaStream_t stream) {
  launch_parts(p, attend_part_kernel<Columns, Heads>, Heads, 0, stream);
}

template <int Columns, int Heads>
void attend_part_heads(const Problem& p, cudaStream_t stream) {
  const std::int64_t stage_size = keys_at_a_time<Heads> * (p.d + (p.values_in_keys ? 0 : p.V));
  launch_parts(p, attend_part_heads_kernel<Columns, Heads>, warps * Heads, static_cast<std::size_t>(stages * stage_size) * sizeof(float),
               stream);
}

template <int Columns>
void attend_heads(const Problem& p, cudaStream_t stream) {
  const std::int64_t heads = p.H / p.Hkv;
  // Heads of a pattern do not see the same keys.
  if (heads == 1 || p.pattern.block_size > 0) return attend_parts<Columns, 1>(p, stream);
  if (heads == 2) return attend_parts<Columns, 2>(p, stream);
  constexpr int most = Columns > 8 ? 4 : 8;  // as many queries as registers hold
  if (heads <= 4) return attend_parts<Columns, 4>(p, stream);
  if (heads >= 4 * most && is_aligned(p.k, p.d) && is_aligned(p.v, p.V)) return attend_part_heads<Columns, most>(p, stream);

  attend_parts<Columns, most>(p, stream);
}

/// The least position of a query among its segment's keys.
std::int64_t first_position(const SoftmaxAttention& op) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (std::size_t s = 0; s + 1 < op.cu_seqlens_k.size(); ++s) {
    const std::int32_t queries = op.segments.cu_seqlens[s + 1] - op.segments.cu_seqlens[s];
    const std::int32_t keys = op.cu_seqlens_k[s + 1] - op.cu_seqlens_k[s];
    if (queries > 0) first = std::min<std::int64_t>(first, keys - queries);
  }
  return first;
}

}  // namespace

bool softmax_attention_few_queries_supported(const SoftmaxAttention& op, const DeviceSegments& segments) {
  constexpr std::int64_t few = 8, widest = 576;
  const bool chooses = op.blocks.block_size > 0 && op.blocks.topk > 1 && first_position(op) < op.blocks.until;
  const std::int64_t lists = op.chosen.ids.shape.rank() == 3 ? op.chosen.ids.shape[1] : 1;
  return segments.longest <= few && !chooses && op.k.shape[1] % lists == 0 && std::max(op.q.shape[2], op.v.shape[2]) <= widest;
}

std::size_t softmax_attention_few_queries_scratch(const SoftmaxAttention& op, std::int64_t most_keys) {
  const std::int64_t parts = parts_of(op, most_keys);
  if (parts == 1) return 0;
  return static_cast<std::size_t>(op.q.rows() * op.q.shape[1] * parts) *
         (sizeof(Softmax) + static_cast<std::size_t>(op.v.shape[2]) * sizeof(float));
}

void softmax_attention_few_queries(const SoftmaxAttention& op, const DeviceSegments& segments, const std::int32_t* cu_seqlens_k,
                                   std::int64_t most_keys, void* scratch, cudaStream_t stream) {
  const std::int64_t H = op.q.shape[1], parts = parts_of(op, most_keys);
  Problem p{.q = f32(op.q),
            .k = f32(op.k),
            .v = f32(op.v),
            .o = f32(op.o),
            .H = H,
            .Hkv = op.k.shape[1],
            .d = op.q.shape[2],
            .V = op.v.shape[2],
            .blocks_per_kv_head = 0,
            .scale = op.scale,
            .window = op.window,
            .pattern = op.pattern,
            .given = i32(op.chosen.ids),
            .given_heads = op.chosen.ids.shape.rank() == 3 ? op.chosen.ids.shape[1] : 1,
            .given_width = op.chosen.ids.row_size(),
            .given_size = op.chosen.block_size,
            .segments = segments,
            .cu_seqlens_k = cu_seqlens_k,
            .values_in_keys = op.v.data == op.k.data && op.v.stride == op.k.stride && op.k.shape[1] == 1,
            .parts = parts,
            .part_softmax = static_cast<Softmax*>(scratch),
            .part_o = reinterpret_cast<float*>(static_cast<Softmax*>(scratch) + op.q.rows() * H * parts)};
  p.given_width /= p.given_heads;
  if (const Tensor& none = op.selected_blocks) {
    const std::size_t width = static_cast<std::size_t>(none.row_size()) * sizeof(std::int32_t);
    check(cudaMemset2DAsync(none.data, static_cast<std::size_t>(none.stride) * sizeof(std::int32_t), 0xFF, width,
                            static_cast<std::size_t>(none.rows()), stream),
          "softmax_attention");
  }
  const std::int64_t widest = std::max(p.d, p.V);
  if (widest <= 64) return attend_heads<2>(p, stream);
  if (widest <= 128) return attend_heads<4>(p, stream);
  if (widest <= 256) return attend_heads<8>(p, stream);
  attend_heads<18>(p, stream);
}

}  // namespace statescope::cuda

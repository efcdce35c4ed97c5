// Attention to the means of blocks and the choice that follows from it, float32 throughout: first the means of all blocks of keys and
// values, then a thread block for each query and head of keys. Where a segment has few queries, a thread block for each of their heads
// comes first, so that a token's step does not wait for one head after the other.
#include <algorithm>

#include "kernels/cuda/common/operations.h"
#include "kernels/cuda/common/order.h"
#include "kernels/cuda/common/warp.h"

namespace statescope::cuda {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

constexpr int threads = 128, warps = threads / 32;
constexpr float infinity = std::numeric_limits<float>::infinity();

struct Problem {
  Rows<const float> q, k, v;    // [queries, H, d], [keys, Hkv, d], [keys, Hkv, V]
  Rows<float> o, importance;    // [queries, H, V], [queries, Hkv, n] or absent
  Rows<std::int32_t> selected;  // [queries, Hkv, n]
  float* means;                 // [blocks of all segments, Hkv, d + V]
  float* weights;               // [queries, H, most_blocks]: p_tb, where heads have thread blocks of their own
  std::int64_t H, Hkv, d, V, n, size, most_blocks;
  float scale;
  DeviceSegments segments;
  const std::int32_t* cu_seqlens_k;

  /// [k̄ | v̄] of block b of segment s: a segment has room for a block more than it may have.
  __device__ float* mean(std::int64_t s, std::int64_t b, std::int64_t g) const {
    return means + ((cu_seqlens_k[s] / size + s + b) * Hkv + g) * (d + V);
  }
};

/// blockIdx: a block, its segment, its head; a thread has some channels.
__global__ void __launch_bounds__(threads) mean_kernel(Problem p) {
  const std::int64_t b = blockIdx.x, s = blockIdx.y, g = blockIdx.z, first = p.cu_seqlens_k[s];
  if (b >= (p.cu_seqlens_k[s + 1] - first) / p.size) return;
  for (std::int64_t c = threadIdx.x; c < p.d + p.V; c += threads) {
    const Rows<const float> x = c < p.d ? Rows<const float>{p.k.row(first) + g * p.d + c, p.k.stride}
                                        : Rows<const float>{p.v.row(first) + g * p.V + c - p.d, p.v.stride};
    float sum = 0;
#pragma unroll 8
    for (std::int64_t j = b * p.size; j < (b + 1) * p.size; ++j) sum += *x.row(j);
    p.mean(s, b, g)[c] = sum * (1 / static_cast<float>(p.size));
  }
}

extern __shared__ float shared_floats[];

/// In shared memory, of one query and head of keys.
struct Memory {
  float* q;              // [d]
  float* weight;         // [most_blocks + 1]: p of a query head; in the end what a block is chosen by
  float* importance;     // [most_blocks + 1]
  std::int32_t* chosen;  // [n]

  __device__ explicit Memory(const Problem& p)
      : q(shared_floats),
        weight(q + p.d),
        importance(weight + p.most_blocks + 1),
        chosen(reinterpret_cast<std::int32_t*>(importance + p.most_blocks + 1)) {}
  static std::size_t bytes(const Problem& p) {
    return static_cast<std::size_t>(p.d + 2 * (p.most_blocks + 1)) * sizeof(float) + static_cast<std::size_t>(p.n) * sizeof(std::int32_t);
  }
};

/// One query head: p = softmax_b(scale · q·k̄_b) over `complete` blocks, o = Σ_b p_b v̄_b. Ends with a barrier.
__device__ void attend(const Memory& memory, const Problem& p, std::int64_t s, std::int64_t g, std::int64_t row, std::int64_t h,
                       std::int64_t complete) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const float* means = p.mean(s, 0, g);  // of the blocks, `pitch` apart
  const std::int64_t pitch = p.Hkv * (p.d + p.V);
  for (std::int64_t c = thread; c < p.d; c += threads) memory.q[c] = p.q.row(row)[h * p.d + c];
  __syncthreads();
  float peak = -infinity;
  for (std::int64_t b = thread / 32; b < complete; b += warps) {
    const float* k = means + b * pitch;
    float product = 0;
    for (std::int64_t c = lane; c < p.d; c += 32) product = fmaf(memory.q[c], k[c], product);
    product = p.scale * sum_of_warp(product);
    if (lane == 0) memory.weight[b] = product;
    peak = fmaxf(peak, product);
  }
  peak = combined<threads>(peak, [](float a, float b) { return fmaxf(a, b); });
  float total = 0;
  for (std::int64_t b = thread; b < complete; b += threads) {
    memory.weight[b] = expf(memory.weight[b] - peak);
    total += memory.weight[b];
  }
  total = combined<threads>(total, [](float a, float b) { return a + b; });
  for (std::int64_t b = thread; b < complete; b += threads) memory.weight[b] /= total;
  __syncthreads();
  for (std::int64_t c = thread; c < p.V; c += threads) {
    float o = 0;
#pragma unroll 8
    for (std::int64_t b = 0; b < complete; ++b) o = fmaf(memory.weight[b], means[b * pitch + p.d + c], o);
    p.o.row(row)[h * p.V + c] = o;
  }
  __syncthreads();
}

/// importance of block b ← + p_tb / (heads that read the key head). Ends with a barrier.
__device__ void add_importance(const Memory& memory, const Problem& p, const float* weight, std::int64_t complete) {
  for (std::int64_t b = threadIdx.x; b < complete; b += threads) memory.importance[b] += weight[b] / static_cast<float>(p.H / p.Hkv);
  __syncthreads();
}

/// The first block, block `own` and the one before it come before all others; `own` may be one that is not complete.
__device__ void choose(const Memory& memory, const Problem& p, std::int64_t g, std::int64_t row, std::int64_t complete, std::int64_t own) {
  const int thread = static_cast<int>(threadIdx.x);
  for (std::int64_t b = thread; b <= own; b += threads) memory.weight[b] = b == 0 || b + 1 >= own ? infinity : memory.importance[b];
  __syncthreads();
  const int count = static_cast<int>(std::min(p.n, own + 1));
  if (thread < 32) {
    Order last = before_all;
    for (int w = 0; w < count; ++w) {
      last = next_in_order(memory.weight, static_cast<std::uint32_t>(own + 1), static_cast<std::uint32_t>(thread), last);
      if (thread == 0) memory.chosen[w] = index_of(last);
    }
  }
  __syncthreads();
  std::int32_t* selected = p.selected.row(row) + g * p.n;
  float* importance = p.importance ? p.importance.row(row) + g * p.n : nullptr;
  for (int w = thread; w < p.n; w += threads) {
    int place = w;
    const std::int32_t b = w < count ? memory.chosen[w] : -1;
    if (w < count) {
      place = 0;
      for (int other = 0; other < count; ++other) place += memory.chosen[other] < b;
    }
    selected[place] = b;
    if (importance) importance[place] = b < 0 || b >= complete ? 0 : memory.importance[b];
  }
}

/// blockIdx: a query of its segment, the segment. Late queries, which see most blocks, come first. row < 0: there is none.
struct Query {
  std::int64_t row = -1, position = 0;

  __device__ explicit Query(const Problem& p) {
    const std::int64_t s = blockIdx.y, i = p.segments.longest - 1 - blockIdx.x;
    const std::int64_t queries = p.segments.cu_seqlens[s + 1] - p.segments.cu_seqlens[s];
    if (i >= queries) return;
    row = p.segments.cu_seqlens[s] + i;
    position = p.cu_seqlens_k[s + 1] - p.cu_seqlens_k[s] - queries + i;
  }
  __device__ std::int64_t complete(const Problem& p) const { return (position + 1) / p.size; }
};

/// blockIdx.z: a head.
__global__ void __launch_bounds__(threads) attend_head_kernel(Problem p) {
  const Query query(p);
  if (query.row < 0) return;
  const std::int64_t h = blockIdx.z, complete = query.complete(p);
  const Memory memory(p);
  attend(memory, p, blockIdx.y, producer_head(h, p.Hkv, p.H), query.row, h, complete);
  float* weights = p.weights + (query.row * p.H + h) * p.most_blocks;
  for (std::int64_t b = threadIdx.x; b < complete; b += threads) weights[b] = memory.weight[b];
}

/// blockIdx.z: a head of keys.
template <bool has_weights>
__global__ void __launch_bounds__(threads) choose_kernel(Problem p) {
  const Query query(p);
  if (query.row < 0) return;
  const std::int64_t g = blockIdx.z, group = p.H / p.Hkv, complete = query.complete(p);
  const Memory memory(p);
  for (std::int64_t b = threadIdx.x; b <= p.most_blocks; b += threads) memory.importance[b] = 0;
  __syncthreads();
  for (std::int64_t h = g * group; h < (g + 1) * group; ++h) {
    if (!has_weights) attend(memory, p, blockIdx.y, g, query.row, h, complete);
    add_importance(memory, p, has_weights ? p.weights + (query.row * p.H + h) * p.most_blocks : memory.weight, complete);
  }
  choose(memory, p, g, query.row, complete, query.position / p.size);
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

/// Of means, of all segments.
std::int64_t numbers_of_means(const CompressedAttention& op, std::int64_t segments) {
  return (op.k.rows() / op.block_size + segments) * op.k.shape[1] * (op.k.shape[2] + op.v.shape[2]);
}

bool is_few(const DeviceSegments& segments) { return segments.longest <= 8; }

}  // namespace

std::size_t compressed_attention_scratch(const CompressedAttention& op, const DeviceSegments& segments, std::int64_t most_keys) {
  const std::int64_t weights = is_few(segments) ? op.q.rows() * op.q.shape[1] * (most_keys / op.block_size) : 0;
  return static_cast<std::size_t>(numbers_of_means(op, segments.count) + weights) * sizeof(float);
}

void compressed_attention(const CompressedAttention& op, const DeviceSegments& segments, const std::int32_t* cu_seqlens_k,
                          std::int64_t most_keys, void* scratch, cudaStream_t stream) {
  const Problem p{.q = f32(op.q),
                  .k = f32(op.k),
                  .v = f32(op.v),
                  .o = f32(op.o),
                  .importance = f32(op.importance),
                  .selected = i32(op.selected),
                  .means = static_cast<float*>(scratch),
                  .weights = static_cast<float*>(scratch) + numbers_of_means(op, segments.count),
                  .H = op.q.shape[1],
                  .Hkv = op.k.shape[1],
                  .d = op.q.shape[2],
                  .V = op.v.shape[2],
                  .n = op.selected.shape[2],
                  .size = op.block_size,
                  .most_blocks = most_keys / op.block_size,
                  .scale = op.scale,
                  .segments = segments,
                  .cu_seqlens_k = cu_seqlens_k};
  const std::size_t bytes = Memory::bytes(p);
  if (bytes > most_shared_bytes())
    throw std::invalid_argument("compressed_attention: " + std::to_string(p.most_blocks) + " blocks are more than a GPU takes");
  const auto queries = static_cast<unsigned>(segments.longest), S = static_cast<unsigned>(segments.count);
  const auto H = static_cast<unsigned>(p.H), Hkv = static_cast<unsigned>(p.Hkv);
  launch("compressed_attention", mean_kernel, {static_cast<unsigned>(p.most_blocks), S, Hkv}, threads, 0, stream, p);
  if (!is_few(segments)) return launch("compressed_attention", choose_kernel<false>, {queries, S, Hkv}, threads, bytes, stream, p);
  launch("compressed_attention", attend_head_kernel, {queries, S, H}, threads, bytes, stream, p);
  launch("compressed_attention", choose_kernel<true>, {queries, S, Hkv}, threads, bytes, stream, p);
}

}  // namespace statescope::cuda

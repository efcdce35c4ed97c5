// What the tile forms of softmax attention share: bf16 products, scores and sums in float32. A block takes 64 or 128 queries of one head of
// one segment against some keys at a time, a warp 16 of the queries. Scores and outputs lie as the accumulators of the tensor cores: with
// g = lane / 4 and t = 2 (lane % 4) a lane holds of columns 8 j … 8 j + 7 the numbers (g, t), (g, t + 1), (g + 8, t), (g + 8, t + 1).
#pragma once

#include <limits>

#include "kernels/cuda/common/chunk.h"

namespace statescope::cuda {

/// A bf16 operand whose rows and heads begin at multiples of 16 bytes.
struct AttentionOperand {
  const Bf16* data;
  std::int64_t rows, heads, width;  // columns that hold values; others count as 0
  std::int64_t stride, pitch;       // from row to row, from head to head
};

/// The operands of a launch.
struct AttentionTiles {
  AttentionOperand q, k, v;  // [queries, H, d], [keys, Hkv, d], [keys, Hkv, V]
  void* o;                   // [queries, H, V], rows `o_stride` apart; float32, or bf16 where o_bf16
  std::int64_t o_stride;
  bool o_bf16;
  int H, Hkv, V;
  float scale;  // log2 e · scale: a power of two instead of one of e
  int window;   // no limit: the largest int
  DeviceSegments segments;
  const std::int32_t* cu_seqlens_k;
};

/// The queries of a thread block.
struct QueryTile {
  int head, kv_head;
  std::int64_t row, first_key;  // of the first query among all queries; of its segment's first key among all keys
  int count;                    // of queries; 0 or less: none
  int position;                 // of the first query among its segment's keys

  /// The keys that any of the queries sees, counted from first_key.
  __device__ int begin(int window) const { return window > position ? 0 : position + 1 - window; }
  __device__ int end() const { return position + count; }
};

/// Thread blocks for all queries, `queries` in each.
inline unsigned tiles_of(const AttentionTiles& p, int queries) {
  return blocks_for(p.segments.longest, static_cast<unsigned>(queries)) * static_cast<unsigned>(p.segments.count * p.H);
}

/// blockIdx.x counts tiles × segments × heads; the longest segment's last queries, which see most keys, come first.
__device__ inline QueryTile query_tile(const AttentionTiles& p, int most) {
  const auto pieces = static_cast<int>(p.segments.count) * p.H, piece = static_cast<int>(blockIdx.x) % pieces;
  const int s = piece / p.H, h = piece % p.H;
  const int first = (static_cast<int>(gridDim.x) / pieces - 1 - static_cast<int>(blockIdx.x) / pieces) * most;
  const int row = p.segments.cu_seqlens[s], queries = p.segments.cu_seqlens[s + 1] - row;
  const int first_key = p.cu_seqlens_k[s], keys = p.cu_seqlens_k[s + 1] - first_key;
  return {h, static_cast<int>(producer_head(h, p.Hkv, p.H)), row + first, first_key, min(most, queries - first), keys - queries + first};
}

__device__ inline float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Of a lane's two queries g and g + 8: the largest score so far, and the lane's share of Σ e^{scale (score − peak)}.
struct RunningSoftmax {
  float peak[2] = {-std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}, total[2] = {};
};

/// Sets the scores of keys that a query does not see to −∞. `ahead`: the position of the first key minus that of the lane's query g.
template <int n>
__device__ void hide_unseen(float (&score)[n][4], int ahead, int window) {
  const int column = 2 * static_cast<int>(threadIdx.x % 4);
#pragma unroll
  for (int j = 0; j < n; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int distance = ahead + 8 * j + column + e % 2 - 8 * (e / 2);  // of a key from the query; later keys are not seen
      if (distance > 0 || distance <= -window) score[j][e] = -std::numeric_limits<float>::infinity();
    }
  }
}

/// Whether any of a warp's 16 queries does not see one of `keys` keys; `ahead` as above, of its first query.
__device__ inline bool any_unseen(int ahead, int keys, int window) { return ahead + keys - 1 > 0 || ahead - 15 <= -window; }

/// score ← e^{scale (score − peak)} with a peak that has seen these scores too; what was summed before is to be multiplied by `kept`.
template <int n>
__device__ void soften(float (&score)[n][4], RunningSoftmax& running, float scale, float (&kept)[2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float peak = running.peak[half];
#pragma unroll
    for (int j = 0; j < n; ++j) peak = fmaxf(peak, fmaxf(score[j][2 * half], score[j][2 * half + 1]));
    // A query's keys lie with four neighbouring lanes.
    peak = fmaxf(peak, __shfl_xor_sync(~0U, peak, 1));
    peak = fmaxf(peak, __shfl_xor_sync(~0U, peak, 2));
    const float base = peak == -std::numeric_limits<float>::infinity() ? 0 : scale * peak;  // nothing seen yet: all weights are 0
    kept[half] = power_of_two(scale * running.peak[half] - base);
    running.peak[half] = peak;
    float total = 0;
#pragma unroll
    for (int j = 0; j < n; ++j) {
#pragma unroll
      for (int e = 2 * half; e < 2 * half + 2; ++e) {
        score[j][e] = power_of_two(fmaf(scale, score[j][e], -base));
        total += score[j][e];
      }
    }
    running.total[half] = fmaf(running.total[half], kept[half], total);
  }
}

template <int n>
__device__ void multiply_rows(float (&o)[n][4], const float (&factor)[2]) {
#pragma unroll
  for (int j = 0; j < n; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) o[j][e] *= factor[e / 2];
  }
}

/// o ← (Σ e^{…} v) / Σ e^{…} of the warp's queries, the first of them `query` of the tile.
template <int n>
__device__ void write_output(float (&o)[n][4], const RunningSoftmax& running, const AttentionTiles& p, const QueryTile& x, int query) {
  float factor[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float total = running.total[half];
    total += __shfl_xor_sync(~0U, total, 1);
    total += __shfl_xor_sync(~0U, total, 2);
    factor[half] = 1 / total;
  }
  multiply_rows(o, factor);
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = query + lane / 4 + 8 * half;
    if (i >= x.count) continue;
    const std::int64_t at = (x.row + i) * p.o_stride + std::int64_t{x.head} * p.V;
#pragma unroll
    for (int j = 0; j < n; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int column = 8 * j + lane % 4 * 2 + e;
        if (column >= p.V) continue;
        if (p.o_bf16) {
          static_cast<Bf16*>(p.o)[at + column] = __float2bfloat16(o[j][2 * half + e]);
        } else {
          static_cast<float*>(p.o)[at + column] = o[j][2 * half + e];
        }
      }
    }
  }
}

// softmax_attention_tiles.cu: q, k, v and o float32 or bf16; every query sees all keys before it, or a window of them
bool softmax_attention_tiles_supported(const SoftmaxAttention& op);
/// Scratch that a call needs, in bytes.
std::size_t softmax_attention_tiles_scratch(const SoftmaxAttention& op);
/// `scratch` on the device, 16-byte aligned.
void softmax_attention_tiles(const SoftmaxAttention& op, const DeviceSegments& segments, const std::int32_t* cu_seqlens_k, void* scratch,
                             cudaStream_t stream);

// hopper/softmax_attention.cu: TMA and wgmma
void attend_hopper(const AttentionTiles& p, cudaStream_t stream);

}  // namespace statescope::cuda

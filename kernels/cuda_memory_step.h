// One row of one sequence and its memory, a matrix or sparse states: what the launch of it (memory_step.cu) and the level of a token
// (levels_hopper.cu) share. Included by .cu files alone.
#pragma once

#include "kernels/cuda_activation.h"
#include "kernels/cuda_operations.h"
#include "kernels/cuda_order.h"

namespace statescope::cuda::memory_step {

constexpr int warp_size = 32, own_columns = 4, most_channels = 512;  // of a head: a thread owns four columns
constexpr int most_choices = 16, most_partitions = 256;

/// An operand [heads, width] of the row; sparse states have a second one behind it.
struct Operand {
  const float* x = nullptr;
  int heads = 1, width = 0;
  bool awaited = false;  // among levels: comes by mail (cuda_mail.h)
  __device__ const float* at(int half, int h, int H) const { return x + (half * heads + producer_head(h, heads, H)) * width; }
};

/// Which states the row touches: the first one, then the chosen ones.
struct Choices {
  const std::int32_t* selected = nullptr;  // [count]
  const float* gate = nullptr;             // [N]
  int count = 0, writers = 0, readers = 0;
  bool gate_q = false, gate_k = false, before_l2 = true;
  float write_scale = 1;
};

/// How q or k is made of products first (sparse_state.h); `shared` null: it is there. `pair` null: nobody reads it.
struct Source {
  float* pair = nullptr;
  const float *shared = nullptr, *sparse = nullptr, *more = nullptr;
  Activation act = Activation::identity;
  bool softmax = false;
  bool shared_awaited = false, sparse_awaited = false, more_awaited = false;
};
/// The same of the choices; gate and selected null: nobody reads them.
struct Routing {
  float* gate = nullptr;
  std::int32_t* selected = nullptr;
  const float* logits = nullptr;
  int N = 0;
  bool by_logits = false, awaited = false;
};

struct Step {
  Operand q, k, v, log_decay, beta;
  float *state, *o;  // [slots, H, K, V], [H, V]
  int H, K, V;
  float scale;
  bool l2;  // q and k are brought to unit length
  Choices choices;
  Source q_source, k_source;
  Routing routing;
};

// ---- in kernels ----

/// What a head has of the row. Index 0 is for the first state, 1 for the chosen ones.
struct Row {
  float q[2][most_channels], k[2][most_channels], alpha[2][most_channels];
};
struct Chosen {
  std::int32_t partition[most_choices];
  float gate[most_choices], e[most_partitions];
};
/// A number of q and one of k for each index, or sums of such numbers.
struct Four {
  float q[2], k[2];
  /// What belongs to one index.
  __device__ void set(int half, float q_, float k_) {
    if (half == 0) q[0] = q_, k[0] = k_;
    if (half == 1) q[1] = q_, k[1] = k_;
  }
  __device__ float q_of(int half) const { return half == 0 ? q[0] : q[1]; }
  __device__ float k_of(int half) const { return half == 0 ? k[0] : k[1]; }
};

__device__ inline void prefetch(const float* x) { asm volatile("prefetch.global.L2 [%0];" ::"l"(x)); }

__device__ inline float4 operator+(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }
__device__ inline float4 operator*(float s, float4 a) { return {s * a.x, s * a.y, s * a.z, s * a.w}; }

template <class Combine>
__device__ Four combine_each(const Four& a, const Four& b, Combine combine) {
  return {{combine(a.q[0], b.q[0]), combine(a.q[1], b.q[1])}, {combine(a.k[0], b.k[0]), combine(a.k[1], b.k[1])}};
}

/// Over a team: `warps` warps, all threads of which `sync` together. `parts` is free again when all have it.
template <class Team, class Combine>
__device__ Four combined_over(Four x, Four* parts, Combine combine) {
  for (int i = 0; i < 2; ++i) x.q[i] = combined(x.q[i], combine), x.k[i] = combined(x.k[i], combine);
  if (threadIdx.x % warp_size == 0) parts[threadIdx.x / warp_size] = x;
  Team::sync();
  x = parts[0];
  for (int w = 1; w < Team::warps; ++w) x = combine_each(x, parts[w], combine);
  Team::sync();
  return x;
}

/// By one warp: which partitions, and their gates. The first block writes what the routing says.
__device__ inline void choose(Chosen& chosen, const Choices& choices, const Routing& routing, bool first_block) {
  const int lane = threadIdx.x % warp_size;
  if (routing.logits == nullptr) {
    if (lane >= choices.count) return;
    chosen.partition[lane] = choices.selected[lane];
    chosen.gate[lane] = choices.gate[chosen.partition[lane]];
    return;
  }
  // e = softmax(logits)
  constexpr float lowest = -INFINITY;
  float largest = lowest, sum = 0;
  for (int n = lane; n < routing.N; n += warp_size) largest = fmaxf(largest, routing.logits[n]);
  largest = combined(largest, [](float a, float b) { return fmaxf(a, b); });
  const float shift = largest == lowest ? 0 : largest;
  for (int n = lane; n < routing.N; n += warp_size) sum += chosen.e[n] = expf(routing.logits[n] - shift);
  sum = combined(sum, [](float a, float b) { return a + b; });
  const float inverse = sum == 0 ? 0 : 1 / sum;
  for (int n = lane; n < routing.N; n += warp_size) {
    chosen.e[n] *= inverse;
    if (first_block && routing.gate != nullptr) routing.gate[n] = chosen.e[n];
  }
  __syncwarp();
  Order last = before_all;
  for (int w = 0; w < choices.count; ++w) {
    last = next_in_order(routing.by_logits ? routing.logits : chosen.e, static_cast<std::uint32_t>(routing.N),
                         static_cast<std::uint32_t>(lane), last);
    if (lane != 0) continue;
    chosen.partition[w] = index_of(last);
    chosen.gate[w] = chosen.e[index_of(last)];
    if (first_block && routing.selected != nullptr) routing.selected[w] = index_of(last);
  }
}

/// visit(half, r) for every channel of the thread, of one index or of both: one channel in most models.
template <class Team, class Visit>
__device__ void for_own_channels(const Step& p, const Visit& visit) {
  const int count = p.choices.count > 0 ? 2 * p.K : p.K;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < count; i += Team::warps * warp_size) visit(i < p.K ? 0 : 1, i < p.K ? i : i - p.K);
}

/// q and k of the row become e^{z − max z} / Σ over the channels, where they are asked for so.
template <class Team>
__device__ void softmax(Row& row, Four* parts, const Step& p) {
  constexpr float lowest = -INFINITY;
  Four largest{{lowest, lowest}, {lowest, lowest}}, sum{};
  const auto larger = [](float a, float b) { return fmaxf(a, b); };
  for_own_channels<Team>(p, [&](int half, int r) {
    largest.set(half, larger(largest.q_of(half), row.q[half][r]), larger(largest.k_of(half), row.k[half][r]));
  });
  largest = combined_over<Team>(largest, parts, larger);
  const auto exponential = [](float z, float most) { return expf(z - (most == lowest ? 0 : most)); };
  for_own_channels<Team>(p, [&](int half, int r) {
    if (p.q_source.softmax) row.q[half][r] = exponential(row.q[half][r], largest.q_of(half));
    if (p.k_source.softmax) row.k[half][r] = exponential(row.k[half][r], largest.k_of(half));
    sum.set(half, sum.q_of(half) + row.q[half][r], sum.k_of(half) + row.k[half][r]);
  });
  sum = combined_over<Team>(sum, parts, [](float a, float b) { return a + b; });
  const auto inverse = [](float x) { return x == 0 ? 0 : 1 / x; };
  for_own_channels<Team>(p, [&](int half, int r) {
    if (p.q_source.softmax) row.q[half][r] *= inverse(sum.q_of(half));
    if (p.k_source.softmax) row.k[half][r] *= inverse(sum.k_of(half));
  });
}

/// What a channel has of the row.
struct Channel {
  float q, k, log_decay;
};
/// The row of head h into shared memory; get(half, r) is a channel of it. Not yet seen by other threads.
template <class Team, class Get>
__device__ void load_row(Row& row, Four* parts, const Step& p, int h, bool first_of_head, const Get& get) {
  for_own_channels<Team>(p, [&](int half, int r) {
    const Channel channel = get(half, r);
    row.q[half][r] = channel.q, row.k[half][r] = channel.k, row.alpha[half][r] = expf(channel.log_decay);
  });
  if (p.q_source.softmax || p.k_source.softmax) softmax<Team>(row, parts, p);
  if (!first_of_head) return;
  for_own_channels<Team>(p, [&](int half, int r) {
    const int i = (half * p.H + h) * p.K + r;
    if (p.q_source.pair != nullptr) p.q_source.pair[i] = row.q[half][r];
    if (p.k_source.pair != nullptr) p.k_source.pair[i] = row.k[half][r];
  });
}

/// What x is multiplied with: f, or so that it becomes L2(f x) where the factor comes before, else f · L2(x)   (spec §4.3)
__device__ inline float factor_of(float f, float square, const Step& p) {
  constexpr float eps = 1e-6F;
  return !p.l2 ? f : f / sqrtf((p.choices.before_l2 ? f * f : 1) * square + eps);
}

/// What a state does with the row: with n = 0 the first one, then the chosen ones.
struct Use {
  bool writes;
  float read, write;  // factors of q and k
  __device__ Use(const Step& p, int n, float gate, const Four& squares) : writes(n <= p.choices.writers) {
    const Choices& c = p.choices;
    const int half = n > 0 ? 1 : 0;
    const bool reads = n <= c.readers;
    read = factor_of(!reads ? 0 : c.gate_q ? gate : 1, squares.q_of(half), p);
    write = factor_of(!writes ? 0 : n == 0 ? 1 : c.gate_k ? c.write_scale * gate : c.write_scale, squares.k_of(half), p);
  }
};

}  // namespace statescope::cuda::memory_step

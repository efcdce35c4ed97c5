// One row of one sequence and its memory, a matrix or sparse states: a token's decoding. Many blocks with few columns each, so that the
// states are read and written at once; all states that a token touches are one step.
#pragma once

#include "kernels/cuda_activation.h"
#include "kernels/cuda_mail.h"
#include "kernels/cuda_operations.h"
#include "kernels/cuda_order.h"

namespace statescope::cuda::memory_step {

constexpr int warp_size = 32, threads = 256, warps = threads / warp_size;
constexpr int few_columns = 16, many_columns = 32, own_columns = 4;  // of a head: a block owns few or many, a thread four
constexpr int most_channels = 512, most_rows = 8;                    // of a head; of those, a thread has so many
constexpr int most_choices = 16, most_partitions = 256;

/// An operand [heads, width] of the row; sparse states have a second one behind it.
struct Operand {
  const float* x = nullptr;
  int heads = 1, width = 0;
  bool awaited = false;  // comes by mail (cuda_mail.h)
  __device__ int head(int h, int H) const { return heads == H ? h : static_cast<int>(producer_head(h, heads, H)); }
  __device__ const float* at(int half, int h, int H) const { return x + (half * heads + head(h, H)) * width; }
};

/// Which states the row touches: the first one, then the chosen ones.
struct Choices {
  const std::int32_t* selected = nullptr;  // [count]
  const float* gate = nullptr;             // [N]
  int count = 0, writers = 0, readers = 0;
  bool gate_q = false, gate_k = false, before_l2 = true;
  float write_scale = 1;
};

/// How q or k is made of products first (sparse_state.h); `shared` null: it is there.
struct Source {
  float* pair = nullptr;  // null: nobody reads it
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
  bool awaited = false;
  int N = 0;
  bool by_logits = false;
};

struct Step {
  Operand q, k, v, log_decay, beta;
  float *state, *o, *o_mail;  // [slots, H, K, V], [H, V]; o null: nobody reads it; o_mail: for later levels of one kernel, or null
  int H, K, V;
  int columns;  // of a block
  float scale;
  bool l2;  // q and k are brought to unit length
  Choices choices;
  Source q_source, k_source;
  Routing routing;
};

// ---- in kernels ----

/// Of the threads that take part; a block may have others.
__device__ inline void sync() { asm volatile("bar.sync 1, %0;" ::"n"(threads) : "memory"); }

/// What a head has of the row. Index 0 is for the first state, 1 for the chosen ones.
struct Row {
  float q[2][most_channels], k[2][most_channels], alpha[2][most_channels];
};
struct Chosen {
  std::int32_t partition[most_choices];
  float gate[most_choices], e[most_partitions], logits[most_partitions];
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
/// s a + b. Said, not left to the compiler: a step has the same bits by itself and as a level of many.
__device__ inline float4 multiply_add(float s, float4 a, float4 b) {
  return {fmaf(s, a.x, b.x), fmaf(s, a.y, b.y), fmaf(s, a.z, b.z), fmaf(s, a.w, b.w)};
}

template <class Combine>
__device__ Four combine_each(const Four& a, const Four& b, Combine combine) {
  return {{combine(a.q[0], b.q[0]), combine(a.q[1], b.q[1])}, {combine(a.k[0], b.k[0]), combine(a.k[1], b.k[1])}};
}

/// Over the block; `parts` is free again when all have it.
template <class Combine>
__device__ Four combined_over_block(Four x, Four* parts, Combine combine) {
  for (int i = 0; i < 2; ++i) x.q[i] = combined(x.q[i], combine), x.k[i] = combined(x.k[i], combine);
  if (threadIdx.x % warp_size == 0) parts[threadIdx.x / warp_size] = x;
  sync();
  x = parts[0];
  for (int w = 1; w < warps; ++w) x = combine_each(x, parts[w], combine);
  sync();
  return x;
}

/// The sum over the threads that share columns, in all of them.
__device__ inline float4 sum_of_rows(float4 x, float4 (*parts)[many_columns / own_columns], int of_warp) {
#pragma unroll 1
  for (int distance = of_warp; distance < warp_size; distance *= 2) {
    x = x + float4{__shfl_xor_sync(~0U, x.x, distance), __shfl_xor_sync(~0U, x.y, distance), __shfl_xor_sync(~0U, x.z, distance),
                   __shfl_xor_sync(~0U, x.w, distance)};
  }
  const int own = threadIdx.x % of_warp;
  if (threadIdx.x % warp_size < of_warp) parts[threadIdx.x / warp_size][own] = x;
  sync();
  float4 sum = parts[0][own];
  for (int w = 1; w < warps; ++w) sum = sum + parts[w][own];
  sync();
  return sum;
}

/// By one warp: which partitions, and their gates. `first_logit` has been seen in the lane's first place. The first block writes what the
/// routing says.
__device__ inline void choose(Chosen& chosen, const Choices& choices, const Routing& routing, float first_logit, bool first_block) {
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
  for (int n = lane; n < routing.N; n += warp_size) {
    const bool seen = n == lane && !(routing.awaited && is_absent(first_logit));
    chosen.logits[n] = seen ? first_logit : arrived(routing.logits + n, routing.awaited);
    largest = fmaxf(largest, chosen.logits[n]);
  }
  largest = combined(largest, [](float a, float b) { return fmaxf(a, b); });
  const float shift = largest == lowest ? 0 : largest;
  for (int n = lane; n < routing.N; n += warp_size) sum += chosen.e[n] = expf(chosen.logits[n] - shift);
  sum = combined(sum, [](float a, float b) { return a + b; });
  const float inverse = sum == 0 ? 0 : 1 / sum;
  for (int n = lane; n < routing.N; n += warp_size) {
    chosen.e[n] *= inverse;
    if (first_block && routing.gate != nullptr) routing.gate[n] = chosen.e[n];
  }
  __syncwarp();
  Order last = before_all;
  for (int w = 0; w < choices.count; ++w) {
    last = next_in_order(routing.by_logits ? chosen.logits : chosen.e, static_cast<std::uint32_t>(routing.N),
                         static_cast<std::uint32_t>(lane), last);
    if (lane != 0) continue;
    chosen.partition[w] = index_of(last);
    chosen.gate[w] = chosen.e[index_of(last)];
    if (first_block && routing.selected != nullptr) routing.selected[w] = index_of(last);
  }
}

/// A number of q or k: lies at one place, or is made of what lies at one or two.
struct Seen {
  const float *at = nullptr, *more = nullptr;
  bool awaited = false, more_awaited = false;
  float x = 0, added = 0;

  __device__ Seen(const Operand& operand, const Source& source, int half, int h, int H, int r) {
    const int i = operand.head(h, H) * operand.width + r;
    if (source.shared == nullptr) {
      at = operand.at(half, h, H) + r, awaited = operand.awaited;
    } else if (half == 0) {
      at = source.shared + i, awaited = source.shared_awaited;
    } else {
      at = source.sparse + i, awaited = source.sparse_awaited, more = source.more + i, more_awaited = source.more_awaited;
    }
    x = look(at);
    if (more != nullptr) added = look(more);
  }
  __device__ float number(const Source& source) {
    while (awaited && is_absent(x)) x = look(at);
    while (more_awaited && is_absent(added)) added = look(more);
    const float z = x + added;
    return source.shared == nullptr || source.softmax ? z : activated_by_one(z, source.act);
  }
};

/// What a channel has of the row; all of it is on its way before somebody waits for it.
struct Channel {
  Seen q, k;
  const float* decay_at = nullptr;
  float log_decay = 0;
  __device__ Channel(const Step& p, int half, int h, int r) : q(p.q, p.q_source, half, h, p.H, r), k(p.k, p.k_source, half, h, p.H, r) {
    if (p.log_decay.x == nullptr) return;
    decay_at = p.log_decay.at(half, h, p.H) + (p.log_decay.width > 1 ? r : 0);
    log_decay = look(decay_at);
  }
  __device__ void put(Row& row, const Step& p, int half, int r) {
    while (p.log_decay.awaited && is_absent(log_decay)) log_decay = look(decay_at);
    row.q[half][r] = q.number(p.q_source), row.k[half][r] = k.number(p.k_source), row.alpha[half][r] = expf(log_decay);
  }
};

/// visit(half, r) for every channel of the thread, of one index or of both: one channel in most models.
template <class Visit>
__device__ void for_own_channels(const Step& p, const Visit& visit) {
  const int count = p.choices.count > 0 ? 2 * p.K : p.K;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < count; i += threads) visit(i < p.K ? 0 : 1, i < p.K ? i : i - p.K);
}

/// q and k of the row become e^{z − max z} / Σ over the channels, where they are asked for so.
__device__ inline void softmax(Row& row, Four* parts, const Step& p) {
  constexpr float lowest = -INFINITY;
  Four largest{{lowest, lowest}, {lowest, lowest}}, sum{};
  const auto larger = [](float a, float b) { return fmaxf(a, b); };
  for_own_channels(p, [&](int half, int r) {
    largest.set(half, larger(largest.q_of(half), row.q[half][r]), larger(largest.k_of(half), row.k[half][r]));
  });
  largest = combined_over_block(largest, parts, larger);
  const auto exponential = [](float z, float most) { return expf(z - (most == lowest ? 0 : most)); };
  for_own_channels(p, [&](int half, int r) {
    if (p.q_source.softmax) row.q[half][r] = exponential(row.q[half][r], largest.q_of(half));
    if (p.k_source.softmax) row.k[half][r] = exponential(row.k[half][r], largest.k_of(half));
    sum.set(half, sum.q_of(half) + row.q[half][r], sum.k_of(half) + row.k[half][r]);
  });
  sum = combined_over_block(sum, parts, [](float a, float b) { return a + b; });
  const auto inverse = [](float x) { return x == 0 ? 0 : 1 / x; };
  for_own_channels(p, [&](int half, int r) {
    if (p.q_source.softmax) row.q[half][r] *= inverse(sum.q_of(half));
    if (p.k_source.softmax) row.k[half][r] *= inverse(sum.k_of(half));
  });
}

/// The row of head h into shared memory. Returns the squares of the lengths of q and k where somebody wants them.
__device__ inline Four load_row(Row& row, Four* parts, const Step& p, int h, bool first_of_head) {
  for_own_channels(p, [&](int half, int r) { Channel(p, half, h, r).put(row, p, half, r); });
  if (p.q_source.softmax || p.k_source.softmax) softmax(row, parts, p);
  if (first_of_head) {
    for_own_channels(p, [&](int half, int r) {
      const int i = (half * p.H + h) * p.K + r;
      if (p.q_source.pair != nullptr) p.q_source.pair[i] = row.q[half][r];
      if (p.k_source.pair != nullptr) p.k_source.pair[i] = row.k[half][r];
    });
  }
  Four squares{};
  if (!p.l2) return squares;
  for_own_channels(p, [&](int half, int r) {
    const float q = row.q[half][r], k = row.k[half][r];
    squares.set(half, fmaf(q, q, squares.q_of(half)), fmaf(k, k, squares.k_of(half)));
  });
  return combined_over_block(squares, parts, [](float a, float b) { return a + b; });
}

/// What x is multiplied with: f, or so that it becomes L2(f x) where the factor comes before, else f · L2(x)   (spec §4.3)
__device__ inline float factor_of(float f, float square, const Step& p) {
  constexpr float eps = 1e-6F;
  return !p.l2 ? f : f / sqrtf(fmaf(p.choices.before_l2 ? f * f : 1, square, eps));
}

/// What a block shares.
struct Shared {
  Row row;
  Chosen chosen;
  Four parts[warps];
  float4 of_warps[warps][many_columns / own_columns];
};

__host__ __device__ inline int blocks_of(const Step& p) { return p.H * ((p.V + p.columns - 1) / p.columns); }
/// Rows of the state that a block reads at once.
__host__ __device__ inline int rows_at_once(int columns) { return threads * own_columns / columns; }

__host__ inline int rows_of_thread(const Step& p) { return (p.K + rows_at_once(p.columns) - 1) / rows_at_once(p.columns); }

/// A block owns columns of a head, a thread four of them and some rows. `wait` returns when what the step reads is there.
/// early: nothing before the step in the same kernel or the one before it touches the states, so they may be read before that.
template <bool delta_rule, int RowsPerThread, bool early, class Wait>
__device__ void step(const Step& p, Shared& shared, int block, const Wait& wait) {
  Row& row = shared.row;
  Chosen& chosen = shared.chosen;
  const int columns = p.columns, sharing = columns / own_columns, tiles = (p.V + columns - 1) / columns, h = block / tiles,
            tile = block % tiles;
  const int column = tile * columns + static_cast<int>(threadIdx.x) % sharing * own_columns;
  const int first_row = static_cast<int>(threadIdx.x) / sharing, apart = rows_at_once(columns);
  const auto row_at = [&](int i) { return first_row + i * apart; };
  const bool present = column < p.V;
  const auto state_at = [&](int slot) { return p.state + (static_cast<std::int64_t>(slot) * p.H + h) * p.K * p.V; };
  const auto prefetch_state = [&](int slot) {
#pragma unroll 1
    for (int r = static_cast<int>(threadIdx.x); r < p.K; r += threads)
      prefetch(state_at(slot) + static_cast<std::int64_t>(r) * p.V + tile * columns);
  };
  float4 S[RowsPerThread];
  const auto read = [&](const float* state) {
#pragma unroll
    for (int i = 0; i < RowsPerThread; ++i) {
      if (row_at(i) < p.K && present) S[i] = *reinterpret_cast<const float4*>(state + static_cast<std::int64_t>(row_at(i)) * p.V);
    }
  };
  early ? read(state_at(0) + column) : prefetch_state(0);
  wait();

  const bool sparse = p.choices.count > 0;
  const auto* const v_at = reinterpret_cast<const float4*>(p.v.at(0, h, p.H) + column);
  const auto look_at_beta = [&](int half) { return p.beta.x != nullptr && (half == 0 || sparse) ? look(p.beta.at(half, h, p.H)) : 1; };
  const auto wait_for_beta = [&](float& seen, int half) {
    while (p.beta.awaited && is_absent(seen)) seen = look(p.beta.at(half, h, p.H));
  };
  float4 v{0, 0, 0, 0};
  if (present) v = look(v_at);
  float beta = look_at_beta(0), sparse_beta = look_at_beta(1);
  const float logit = p.routing.logits != nullptr && threadIdx.x < min(warp_size, p.routing.N) ? look(p.routing.logits + threadIdx.x) : 0;
  const Four squares = load_row(row, shared.parts, p, h, tile == 0);
  if (threadIdx.x < warp_size) choose(chosen, p.choices, p.routing, logit, block == 0);
  while (present && p.v.awaited && is_absent(v)) v = look(v_at);
  wait_for_beta(beta, 0), wait_for_beta(sparse_beta, 1);
  sync();
#pragma unroll 1
  for (int n = 0; n < p.choices.count; ++n) prefetch_state(1 + chosen.partition[n]);

  float4 o{0, 0, 0, 0};
#pragma unroll 1
  for (int n = 0; n <= p.choices.count; ++n) {
    const Choices& c = p.choices;
    const int half = n > 0 ? 1 : 0;
    const float e = n > 0 ? chosen.gate[n - 1] : 1;
    const bool reads = n <= c.readers, writes = n <= c.writers;  // n = 0: always
    const float reading = factor_of(!reads ? 0 : c.gate_q ? e : 1, squares.q_of(half), p);
    const float writing = factor_of(!writes ? 0 : n == 0 ? 1 : c.gate_k ? c.write_scale * e : c.write_scale, squares.k_of(half), p);
    float* const state = state_at(n > 0 ? 1 + chosen.partition[n - 1] : 0) + column;
    if (!early || n > 0) read(state);
    float4 u = v;
    if constexpr (delta_rule) {
      // u = β (v − k S̄),  S̄ = α S
      float4 predicted{0, 0, 0, 0};
#pragma unroll
      for (int i = 0; i < RowsPerThread; ++i) {
        if (row_at(i) < p.K && present) predicted = multiply_add(writing * row.k[half][row_at(i)], S[i], predicted);
      }
      const float alpha = writes ? row.alpha[half][0] : 1;
      u = (!writes ? 0 : n > 0 ? sparse_beta : beta) * multiply_add(-alpha, sum_of_rows(predicted, shared.of_warps, sharing), v);
    }
#pragma unroll
    for (int i = 0; i < RowsPerThread; ++i) {
      const int r = row_at(i);
      if (r >= p.K || !present) continue;
      // S ← α S + kᵀ u,  o = o + q S
      S[i] = multiply_add(writing * row.k[half][r], u, (writes ? row.alpha[half][r] : 1) * S[i]);
      o = multiply_add(reading * row.q[half][r], S[i], o);
      *reinterpret_cast<float4*>(state + static_cast<std::int64_t>(r) * p.V) = S[i];
    }
  }
  o = sum_of_rows(o, shared.of_warps, sharing);
  if (first_row != 0 || !present) return;
  o = p.scale * o;
  const int place = h * p.V + column;
  if (p.o != nullptr) *reinterpret_cast<float4*>(p.o + place) = o;
  if (p.o_mail == nullptr) return;
  post(p.o_mail + place, o.x), post(p.o_mail + place + 1, o.y), post(p.o_mail + place + 2, o.z), post(p.o_mail + place + 3, o.w);
}

}  // namespace statescope::cuda::memory_step

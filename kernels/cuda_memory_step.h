// A row's step of a matrix memory or of sparse states, as a kernel's blocks take it (memory_step.cu, chain_hopper.cu). Included by .cu
// files alone.
#pragma once

#include "kernels/cuda_activation.h"
#include "kernels/cuda_numbers.h"
#include "kernels/cuda_one_row.h"
#include "kernels/cuda_operations.h"
#include "kernels/cuda_order.h"

namespace statescope::cuda::memory_step {

constexpr int warp_size = 32, threads = 256, warps = threads / warp_size;                   // the first ones of a block
constexpr int least_columns = 16, most_columns = 32, own_columns = 4, most_channels = 512;  // 4 or 8 threads share a row
constexpr int most_rows_of_thread = 8, most_choices = 16, most_partitions = 256;
constexpr int decay_rank = 16;  // of a low-rank gate whose second product a step makes

/// An operand [heads, width] of the row; sparse states have a second one behind it.
struct Operand {
  const float* x = nullptr;
  int heads = 1, width = 0;
  /// The operand's head for a state's: producer_head (memory.h), in ints less code.
  __device__ int head_of(int h, int H) const { return heads == H ? h : h * heads / H; }
  __device__ const float* at(int half, int h, int H) const { return x + (half * heads + head_of(h, H)) * width; }
};

/// Which states the row touches: the first one, then the chosen ones.
struct Choices {
  const std::int32_t* selected = nullptr;  // [count]
  const float* gate = nullptr;             // [N]
  int count = 0, writers = 0, readers = 0;
  bool gate_q = false, gate_k = false, before_l2 = true;
  float write_scale = 1;
};

/// How q or k is made of products first (sparse_state.h); `pair` null: it is there.
struct Source {
  float* pair = nullptr;
  const float *shared = nullptr, *sparse = nullptr, *more = nullptr;
  Activation act = Activation::identity;
  bool softmax = false;
};
/// The same of the choices.
struct Routing {
  float* gate = nullptr;
  std::int32_t* selected = nullptr;
  const float* logits = nullptr;
  int N = 0;
  bool by_logits = false;
};

struct Step {
  Operand q, k, v, log_decay, beta;
  float *state, *o;  // [slots, H, K, V], [H, V]
  int H, K, V;
  int columns = least_columns;  // of a head that a task owns
  float scale;
  bool l2;  // q and k are brought to unit length
  Choices choices;
  Source q_source, k_source;
  Routing routing;
  /// A low-rank gate's second product [heads · width, decay_rank] in bf16 that becomes log_decay, of each half: made by each task for its
  /// head, in chains alone. out 0: log_decay is there.
  one_row::Product decays[2];

  /// How many threads share a row of a task, as a power of two: a division is many instructions one behind the other.
  __host__ __device__ int threads_of_row_log2() const { return columns == most_columns ? 3 : 2; }
  /// How many indices there are: the first state's and the chosen ones', or the one of a matrix memory.
  __host__ __device__ int halves() const { return choices.count > 0 ? 2 : 1; }
  /// Decays are a head's, or of each channel.
  __device__ bool decays_heads() const { return log_decay.x != nullptr && log_decay.width == 1; }
  __device__ bool decays_channels() const { return log_decay.width > 1; }

  __host__ __device__ int tiles() const { return (V + columns - 1) >> (2 + threads_of_row_log2()); }
  /// That can be done at the same time.
  __host__ __device__ int tasks() const { return H * tiles(); }
  /// How many rows all threads have at once.
  __host__ __device__ int rows_at_once() const { return threads >> threads_of_row_log2(); }
  /// How many rows a thread has at most, as it is built: 1, 2, 4 or 8.
  __host__ __device__ int rows_of_thread() const {
    const int at_once = rows_at_once();
    return K <= at_once ? 1 : K <= 2 * at_once ? 2 : K <= 4 * at_once ? 4 : most_rows_of_thread;
  }
};

// ---- in kernels ----

/// Where a task finds what it reads: index 0 is for the first state, 1 for the chosen ones. Found ahead of the task, or by each thread.
struct Task {
  int number, head, tile;
  float* state;                                       // of the head in the first slot, from the task's columns on
  const float *q[2], *k[2], *log_decay[2], *beta[2];  // of the head
  const float* features[2];                           // that the decays are made of
  const float *more_q, *more_k;                       // what is added to q[1] and k[1]
  const float *v, *logits;                            // of the task's columns; of all partitions

  /// Of the block's, in a chain: a warp of its own brings for it what all of them need.
  __device__ bool is_first() const { return number == static_cast<int>(blockIdx.x); }
};
/// in_turn(x): where x stands.
template <class InTurn>
__device__ void find(Task& t, const Step& p, int task, const InTurn& in_turn) {
  const int tiles = p.tiles(), h = task / tiles, tile = task % tiles;
  t = {.number = task, .head = h, .tile = tile, .state = p.state + static_cast<std::int64_t>(h) * p.K * p.V + tile * p.columns};
  const auto place = [&](const float* x) { return x == nullptr ? nullptr : in_turn(x); };
  const auto number = [&](const Operand& of, const Source& source, int half) {
    if (source.pair == nullptr) return place(of.at(half, h, p.H));
    return place((half == 0 ? source.shared : source.sparse) + of.head_of(h, p.H) * of.width);
  };
  const int halves = p.halves();
#pragma unroll 1
  for (int half = 0; half < halves; ++half) {
    t.q[half] = number(p.q, p.q_source, half), t.k[half] = number(p.k, p.k_source, half);
    if (p.log_decay.x != nullptr) t.log_decay[half] = place(p.log_decay.at(half, h, p.H));
    t.features[half] = place(p.decays[half].made);
    if (p.beta.x != nullptr) t.beta[half] = place(p.beta.at(half, h, p.H));
  }
  if (p.q_source.pair != nullptr) t.more_q = place(p.q_source.more + p.q.head_of(h, p.H) * p.q.width);
  if (p.k_source.pair != nullptr) t.more_k = place(p.k_source.more + p.k.head_of(h, p.H) * p.k.width);
  t.v = place(p.v.at(0, h, p.H) + tile * p.columns), t.logits = place(p.routing.logits);
}

/// What a head has of the row. Index 0 is for the first state, 1 for the chosen ones.
struct Row {
  float q[2][most_channels], k[2][most_channels], alpha[2][most_channels];
};
struct Chosen {
  std::int32_t partition[most_choices];
  float gate[most_choices], e[most_partitions], logit[most_partitions];
};
/// What all channels share, of each index; alpha: where the decay is a head's.
struct Scalars {
  float beta[2], alpha[2];
};
/// A number of q and one of k.
struct Pair {
  float q, k;
};
/// What the warps have of a row, for each index: the largest, the sum of what is e to the power of each below that, the sum of squares.
struct Parts {
  Pair largest[2][warps], sum[2][warps], squares[2][warps];
};
/// Of k and q with some columns of a state, and with each other.
struct RowSums {
  float4 kS, qS;
  float qk;
};
struct Shared {
  Row row;
  Chosen chosen;
  Parts parts;
  Scalars scalars;
  alignas(16) float features[2][decay_rank];
  float4 o_of_warps[warps][most_columns / own_columns];
  RowSums sums_of_warps[2][warps][most_columns / own_columns];  // in turn
};

/// A block may have other warps, which do not come here.
__device__ inline void sync_step() { asm volatile("bar.sync 1, %0;" ::"n"(threads) : "memory"); }
/// The same for what a warp beside them brings, which goes on at once; and that it is there.
constexpr int features_there = 2, chosen_there = 3;
template <int what>
__device__ void wait_for() {
  asm volatile("bar.sync %0, %1;" ::"n"(what), "n"(threads + warp_size) : "memory");
}
template <int what>
__device__ void bring() {
  __syncwarp();
  asm volatile("bar.arrive %0, %1;" ::"n"(what), "n"(threads + warp_size) : "memory");
}

__device__ inline void prefetch_line(const float* x) { asm volatile("prefetch.global.L2 [%0];" ::"l"(x)); }

__device__ inline float4 operator+(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }
__device__ inline float4 operator*(float s, float4 a) { return {s * a.x, s * a.y, s * a.z, s * a.w}; }

/// The thread's first channel of one index, and whether its warp has any.
__device__ inline int first_channel(const Step& p, int half) { return (static_cast<int>(threadIdx.x) - half * p.K) & (threads - 1); }
__device__ inline bool has_channels(const Step& p, int half) { return __any_sync(~0U, first_channel(p, half) < p.K) != 0; }
/// visit(r) for every channel of the thread of one index.
template <class Visit>
__device__ void for_own_channels_of(const Step& p, int half, const Visit& visit) {
#pragma unroll 1
  for (int r = first_channel(p, half); r < p.K; r += threads) visit(r);
}

template <class Combine>
__device__ Pair combined_each(Pair x, Combine combine) {
  return {combined(x.q, combine), combined(x.k, combine)};
}
/// Of a number of each warp, in all lanes.
template <class Combine>
__device__ float combined_warps(float x, Combine combine) {
#pragma unroll
  for (int distance = warps / 2; distance > 0; distance /= 2) x = combine(x, __shfl_xor_sync(~0U, x, distance));
  return x;
}
__device__ inline float sum_of(float a, float b) { return a + b; }

__device__ inline float4 shuffled(float4 x, int distance) {
  return {__shfl_xor_sync(~0U, x.x, distance), __shfl_xor_sync(~0U, x.y, distance), __shfl_xor_sync(~0U, x.z, distance),
          __shfl_xor_sync(~0U, x.w, distance)};
}
__device__ inline RowSums operator+(const RowSums& a, const RowSums& b) { return {a.kS + b.kS, a.qS + b.qS, a.qk + b.qk}; }
__device__ inline RowSums shuffled(const RowSums& x, int distance) {
  return {shuffled(x.kS, distance), shuffled(x.qS, distance), __shfl_xor_sync(~0U, x.qk, distance)};
}
/// The sum over the threads that share columns, in all of them. `parts` is free when another such sum has been made.
template <class Numbers>
__device__ Numbers sum_of_rows(Numbers x, Numbers (*parts)[most_columns / own_columns], int of_warp) {
#pragma unroll 1
  for (int distance = of_warp; distance < warp_size; distance *= 2) x = x + shuffled(x, distance);
  const int own = threadIdx.x & (of_warp - 1);
  if (threadIdx.x % warp_size < of_warp) parts[threadIdx.x / warp_size][own] = x;
  sync_step();
  Numbers sum = parts[0][own];
#pragma unroll 2
  for (int w = 1; w < warps; ++w) sum = sum + parts[w][own];
  return sum;
}

/// How a step reads what others have made, where it simply lies there: asked for, then taken. `in_chain`: a warp beside those of the step
/// brings what all of them need.
struct Lies {
  using Asked = float;
  using AskedFour = float4;
  static constexpr bool in_chain = false;
  __device__ float ask(const float* x) const { return *x; }
  __device__ float4 ask_four(const float* x) const { return *reinterpret_cast<const float4*>(x); }
  template <class Numbers>
  __device__ Numbers get(const Numbers& x) const {
    return x;
  }
};

/// By one warp: which partitions, and their gates. One task publishes what the routing says.
template <class Read>
__device__ void choose(Chosen& chosen, const Step& p, const Task& t, const Read& read) {
  const Choices& choices = p.choices;
  const Routing& routing = p.routing;
  const float* const logits = t.logits;
  const bool publishes = t.number == 0;
  const int lane = threadIdx.x % warp_size;
  if (logits == nullptr) {
    if (lane >= choices.count) return;
    chosen.partition[lane] = choices.selected[lane];
    chosen.gate[lane] = choices.gate[chosen.partition[lane]];
    return;
  }
  // e = softmax(logits)
  constexpr float lowest = -INFINITY;
  float largest = lowest, sum = 0;
  for (int n = lane; n < routing.N; n += warp_size) largest = fmaxf(largest, chosen.logit[n] = read.get(read.ask(logits + n)));
  largest = combined(largest, [](float a, float b) { return fmaxf(a, b); });
  const float shift = largest == lowest ? 0 : largest;
  for (int n = lane; n < routing.N; n += warp_size) sum += chosen.e[n] = expf(chosen.logit[n] - shift);
  sum = combined(sum, [](float a, float b) { return a + b; });
  const float inverse = sum == 0 ? 0 : 1 / sum;
  for (int n = lane; n < routing.N; n += warp_size) {
    chosen.e[n] *= inverse;
    if (publishes) routing.gate[n] = chosen.e[n];
  }
  __syncwarp();
  Order last = before_all;
  for (int w = 0; w < choices.count; ++w) {
    last = next_in_order(routing.by_logits ? chosen.logit : chosen.e, static_cast<std::uint32_t>(routing.N),
                         static_cast<std::uint32_t>(lane), last);
    if (lane != 0) continue;
    chosen.partition[w] = index_of(last);
    chosen.gate[w] = chosen.e[index_of(last)];
    if (publishes) routing.selected[w] = index_of(last);
  }
}

/// A channel of q or k, from x, and where it is the sum of two from `more`.
template <class Read>
struct AskedNumber {
  typename Read::Asked x, more;
  bool sum;

  __device__ AskedNumber(const float* x_, const float* more_, bool sum_, const Read& read) : x{read.ask(x_)}, more{}, sum(sum_) {
    if (sum) more = read.ask(more_);
  }
  __device__ float get(const Source& source, const Read& read) const {
    const float z = sum ? read.get(x) + read.get(more) : read.get(x);
    return source.pair == nullptr || source.softmax ? z : activated_by_one(z, source.act);
  }
};

/// By one warp: what all channels share.
template <class Read>
__device__ void load_scalars(Scalars& scalars, const Step& p, const Task& t, const Read& read) {
  const int half = threadIdx.x % warp_size;
  if (half >= p.halves()) return;
  typename Read::Asked log_decay{}, beta{};
  if (p.decays_heads()) log_decay = read.ask(t.log_decay[half]);
  if (p.beta.x != nullptr) beta = read.ask(t.beta[half]);
  scalars.alpha[half] = expf(read.get(log_decay));
  scalars.beta[half] = p.beta.x != nullptr ? read.get(beta) : 1;
}
/// By one warp: what low-rank decays are made of.
template <class Read>
__device__ void load_features(float (*features)[decay_rank], const Task& t, const Read& read) {
  const int lane = threadIdx.x % warp_size, half = lane / decay_rank, i = lane % decay_rank;
  if (t.features[half] != nullptr) features[half][i] = read.get(read.ask(t.features[half] + i));
}
/// A row of a low-rank gate, that of the thread's channel, of which it has one at most; o = −1: none.
struct DecayRow {
  uint4 weight[decay_rank / 8] = {};
  float bias = 0;
  int half = 0, r = 0, o = -1;

  __device__ void load(const Step& p, const Task& t) {
    const int i = static_cast<int>(threadIdx.x);
    half = i < p.K ? 0 : 1, r = i - half * p.K;
    const one_row::Product& product = p.decays[half];
    if (r >= p.K || product.out == 0) return;
    o = p.log_decay.head_of(t.head, p.H) * p.K + r;
    const auto* from = reinterpret_cast<const uint4*>(product.weight) + o * (decay_rank / 8);
    for (uint4& w : weight) w = *from++;
    if (product.bias != nullptr) bias = product.bias[o];
  }
  /// Its log_decay, the sum in the order of a chain's products.
  __device__ float log_decay(const one_row::Product& product, const float (*features)[decay_rank]) const {
    float sums[decay_rank / 8] = {};
#pragma unroll
    for (int i = 0; i < decay_rank / 8; ++i) {
      const float* in = features[half] + 8 * i;
      const unsigned words[] = {weight[i].x, weight[i].y, weight[i].z, weight[i].w};
#pragma unroll
      for (int k = 0; k < 4; ++k) sums[i] = fmaf(in[2 * k], first_of(words[k]), fmaf(in[2 * k + 1], second_of(words[k]), sums[i]));
    }
    return log_sigmoid_decay(sums[0] + sums[1] + bias, product.scale, product.clamp_min);
  }
};

/// visit(half, r) for every channel of the thread, of one index or of both: one channel in most models.
template <class Visit>
__device__ void for_own_channels(const Step& p, const Visit& visit) {
  const int halves = p.halves();
#pragma unroll 1
  for (int half = 0; half < halves; ++half) for_own_channels_of(p, half, [&](int r) { visit(half, r); });
}

/// q and k of the row become e^{z − max z} / Σ over the channels, where they are asked for so. Each warp has a maximum of its own at first.
__device__ inline void softmax(Row& row, Parts& parts, const Step& p) {
  constexpr float lowest = -INFINITY;
  const int lane = threadIdx.x % warp_size, warp = static_cast<int>(threadIdx.x) / warp_size, halves = p.halves();
  const auto larger = [](float a, float b) { return fmaxf(a, b); };
  const auto exponential = [](float z, float most) { return expf(z - (most == lowest ? 0 : most)); };
#pragma unroll 1
  for (int half = 0; half < halves; ++half) {
    Pair largest{lowest, lowest}, sum{};
    if (has_channels(p, half)) {
      for_own_channels_of(p, half, [&](int r) { largest = {larger(largest.q, row.q[half][r]), larger(largest.k, row.k[half][r])}; });
      largest = combined_each(largest, larger);
      for_own_channels_of(p, half, [&](int r) {
        const Pair e{exponential(row.q[half][r], largest.q), exponential(row.k[half][r], largest.k)};
        if (p.q_source.softmax) row.q[half][r] = e.q;
        if (p.k_source.softmax) row.k[half][r] = e.k;
        sum = {sum.q + e.q, sum.k + e.k};
      });
      sum = combined_each(sum, sum_of);
    }
    if (lane == 0) parts.largest[half][warp] = largest, parts.sum[half][warp] = sum;
  }
  sync_step();
  // Of a warp's numbers: e^{its maximum − that of all} / Σ.
  const auto factor = [&](float of_lane, float sum, float of_warp) {
    const float all = combined_warps(of_lane, larger);
    const auto weight = [&](float largest) { return largest == lowest ? 0 : expf(largest - all); };
    const float total = combined_warps(weight(of_lane) * sum, sum_of);
    return total == 0 ? 0 : weight(of_warp) / total;
  };
#pragma unroll 1
  for (int half = 0; half < halves; ++half) {
    if (!has_channels(p, half)) continue;
    const Pair largest = parts.largest[half][lane % warps], sum = parts.sum[half][lane % warps], own = parts.largest[half][warp];
    const float of_q = factor(largest.q, sum.q, own.q), of_k = factor(largest.k, sum.k, own.k);
    for_own_channels_of(p, half, [&](int r) {
      if (p.q_source.softmax) row.q[half][r] *= of_q;
      if (p.k_source.softmax) row.k[half][r] *= of_k;
    });
  }
}

/// The squares of the lengths of q and k, of each warp's channels.
__device__ inline void sum_squares(const Row& row, Parts& parts, const Step& p) {
  const int halves = p.halves();
#pragma unroll 1
  for (int half = 0; half < halves; ++half) {
    Pair sum{};
    if (has_channels(p, half)) {
      for_own_channels_of(p, half, [&](int r) {
        const float q = row.q[half][r], k = row.k[half][r];
        sum = {sum.q + q * q, sum.k + k * k};
      });
      sum = combined_each(sum, sum_of);
    }
    if (threadIdx.x % warp_size == 0) parts.squares[half][threadIdx.x / warp_size] = sum;
  }
}

/// The row of head h into shared memory, and where somebody wants them the squares of the lengths of q and k.
template <class Read>
__device__ void load_row(Shared& shared, const Step& p, const Task& t, const Read& read) {
  Row& row = shared.row;
  const bool makes_decays = Read::in_chain && p.decays[0].out > 0, decays = p.decays_channels() && !makes_decays;
  const int h = t.head;
  DecayRow decay;
  if (makes_decays) decay.load(p, t);
  for_own_channels(p, [&](int half, int r) {
    const AskedNumber<Read> q(t.q[half] + r, t.more_q + r, half == 1 && t.more_q != nullptr, read),
        k(t.k[half] + r, t.more_k + r, half == 1 && t.more_k != nullptr, read);
    typename Read::Asked log_decay{};
    if (decays) log_decay = read.ask(t.log_decay[half] + r);
    row.q[half][r] = q.get(p.q_source, read), row.k[half][r] = k.get(p.k_source, read);
    if (decays) row.alpha[half][r] = expf(read.get(log_decay));
  });
  if (makes_decays) {
    if (t.is_first()) wait_for<features_there>();
    if (decay.o >= 0) {
      const one_row::Product& product = p.decays[decay.half];
      const float log_decay = decay.log_decay(product, shared.features);
      if (t.tile == 0) product.y[decay.o] = log_decay;
      row.alpha[decay.half][decay.r] = expf(log_decay);
    }
  }
  if (p.q_source.softmax || p.k_source.softmax) softmax(row, shared.parts, p);
  if (t.tile == 0 && p.q_source.pair != nullptr) {
    for_own_channels(p, [&](int half, int r) {
      const int i = (half * p.H + h) * p.K + r;
      p.q_source.pair[i] = row.q[half][r], p.k_source.pair[i] = row.k[half][r];
    });
  }
  if (p.l2) sum_squares(row, shared.parts, p);
}

/// What x is multiplied with: f, or so that it becomes L2(f x) where the factor comes before, else f · L2(x)   (spec §4.3)
__device__ inline float factor_of(float f, float square, const Step& p) {
  return !p.l2 ? f : f * rsqrtf((p.choices.before_l2 ? f * f : 1) * square + l2_norm_eps);
}

/// The first state of a task into the second cache, and those that may be chosen where they are few; by `own` of so many threads.
__device__ inline void prefetch_task(const Step& p, int task, int own, int count) {
  constexpr int few = 4;
  const int h = task / p.tiles(), tile = task % p.tiles(), states = p.routing.N <= few ? 1 + p.routing.N : 1;
#pragma unroll 1
  for (int i = own; i < states * p.K; i += count)
    prefetch_line(p.state + ((static_cast<std::int64_t>(i / p.K) * p.H + h) * p.K + i % p.K) * p.V + tile * p.columns);
}

/// What a task reads of the weights that decays are made of, into the second cache.
__device__ inline void prefetch_decays(const Step& p, int task, int own, int count) {
  const int head = p.log_decay.head_of(task / p.tiles(), p.H), width = p.log_decay.width;
#pragma unroll 1
  for (const one_row::Product& product : p.decays) {
    if (product.out == 0) continue;
#pragma unroll 1
    for (int r = own * 4; r < width; r += count * 4)
      one_row::prefetch(reinterpret_cast<const float*>(product.weight) + (head * width + r) * (decay_rank / 2));
    if (product.bias == nullptr) continue;
#pragma unroll 1
    for (int r = own * 32; r < width; r += count * 32) one_row::prefetch(product.bias + head * width + r);
  }
}

/// A thread owns four columns of a task's and every so many-th row. `read` waits for what has not been written yet; hand_on(i, o): numbers
/// i to i + 3 of o.
template <bool delta_rule, int RowsPerThread, class Read, class HandOn>
__device__ void take_step(const Step& p, const Task& t, Shared& shared, const Read& read, const HandOn& hand_on) {
  const int of_row = 1 << p.threads_of_row_log2(), thread = static_cast<int>(threadIdx.x), rows_at_once = p.rows_at_once();
  const int in_tile = (thread & (of_row - 1)) * own_columns, column = t.tile * p.columns + in_tile,
            first_row = thread >> p.threads_of_row_log2();
  const auto row_at = [=](int i) { return first_row + i * rows_at_once; };
  const bool present = column < p.V;
  // As ints: less code.
  const auto state_at = [&](int slot) {
    return t.state + in_tile + static_cast<std::size_t>(slot) * static_cast<unsigned>(p.H * p.K * p.V);
  };
  Row& row = shared.row;
  Chosen& chosen = shared.chosen;
  // A state is on its way while what comes before it is worked on.
  float4 next[RowsPerThread] = {};
  const auto load_state = [&](int slot) {
    const float* state = state_at(slot);
#pragma unroll
    for (int i = 0; i < RowsPerThread; ++i) {
      if (row_at(i) < p.K && present) next[i] = *reinterpret_cast<const float4*>(state + row_at(i) * p.V);
    }
  };
  load_state(0);
  typename Read::AskedFour asked_v{};
  if (present) asked_v = read.ask_four(t.v + in_tile);
  // Where K is small the last warp has no channels.
  const bool brought = Read::in_chain && t.is_first();
  if (!brought && thread / warp_size == warps - 1) {
    load_scalars(shared.scalars, p, t, read);
    if (!Read::in_chain) choose(chosen, p, t, read);
  }
  load_row(shared, p, t, read);
  const float4 v = read.get(asked_v);
  brought ? wait_for<chosen_there>() : sync_step();
  const Scalars& scalars = shared.scalars;
  const auto squares = [&](int half) {
    const Pair of_lane = shared.parts.squares[half][thread % warps];
    return p.l2 ? Pair{combined_warps(of_lane.q, sum_of), combined_warps(of_lane.k, sum_of)} : Pair{};
  };

  float4 o{0, 0, 0, 0}, S[RowsPerThread] = {};
  float* state = nullptr;
  const auto store_state = [&] {
#pragma unroll
    for (int i = 0; i < RowsPerThread; ++i) {
      if (row_at(i) < p.K && present) *reinterpret_cast<float4*>(state + row_at(i) * p.V) = S[i];
    }
  };
  const auto hand_on_own = [&] {
    if (first_row != 0 || !present) return;
    o = p.scale * o;
    hand_on(t.head * p.V + column, o);
    *reinterpret_cast<float4*>(p.o + t.head * p.V + column) = o;
  };
#pragma unroll 1
  for (int n = 0; n <= p.choices.count; ++n) {
    if (n > 0) store_state();
    const Choices& c = p.choices;
    const int half = n > 0 ? 1 : 0;
    const float e = n > 0 ? chosen.gate[n - 1] : 1;
    const bool reads = n <= c.readers, writes = n <= c.writers;  // n = 0: always
    const Pair square = squares(half);
    const float read = factor_of(!reads ? 0 : c.gate_q ? e : 1, square.q, p);
    const float write = factor_of(!writes ? 0 : n == 0 ? 1 : c.gate_k ? c.write_scale * e : c.write_scale, square.k, p);
    state = state_at(n > 0 ? 1 + chosen.partition[n - 1] : 0);
#pragma unroll
    for (int i = 0; i < RowsPerThread; ++i) S[i] = next[i];
    if (n < c.count) load_state(1 + chosen.partition[n]);
    float4 u = v;
    if constexpr (delta_rule) {
      RowSums sums{};
#pragma unroll
      for (int i = 0; i < RowsPerThread; ++i) {
        const int r = row_at(i);
        if (r >= p.K || !present) continue;
        const float k = write * row.k[half][r], q = read * row.q[half][r];
        sums = {sums.kS + k * S[i], sums.qS + q * S[i], sums.qk + q * k};
      }
      sums = sum_of_rows(sums, shared.sums_of_warps[n % 2], of_row);
      // u = β (v − α k S),   q (α S + kᵀ u) = α q S + (q kᵀ) u
      const float alpha = writes ? scalars.alpha[half] : 1;
      u = (writes ? scalars.beta[half] : 0) * (v + -alpha * sums.kS);
      o = o + alpha * sums.qS + sums.qk * u;
      if (n == c.count) hand_on_own();
    }
#pragma unroll
    for (int i = 0; i < RowsPerThread; ++i) {
      const int r = row_at(i);
      if (r >= p.K || !present) continue;
      // S ← α S + kᵀ u,  o = o + q S
      S[i] = (!writes ? 1 : p.decays_channels() ? row.alpha[half][r] : scalars.alpha[half]) * S[i] + write * row.k[half][r] * u;
      if constexpr (!delta_rule) o = o + read * row.q[half][r] * S[i];
    }
  }
  if constexpr (!delta_rule) {
    o = sum_of_rows(o, shared.o_of_warps, of_row);
    hand_on_own();
  }
  store_state();
}

}  // namespace statescope::cuda::memory_step

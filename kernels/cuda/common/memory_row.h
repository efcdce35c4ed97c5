// What all threads of a memory's step (memory_step.h) need of the token's row, in shared memory: q, k and decays of a head, the chosen
// partitions. Included by .cu files alone.
#pragma once

#include "kernels/cuda/common/memory_task.h"
#include "kernels/cuda/common/numbers.h"
#include "kernels/cuda/common/order.h"

namespace statescope::cuda::memory_step {

/// The row of one head. Index 0 is for the first state, 1 for the chosen ones.
struct alignas(16) Row {
  float q[2][most_channels], k[2][most_channels], alpha[2][most_channels];
};
struct Chosen {
  std::int32_t partition[most_choices];
  float gate[most_choices], e[most_partitions], logit[most_partitions];
};
/// What all channels share, for each index; alpha: where the decay is that of a head.
struct Scalars {
  float beta[2], alpha[2];
};
/// A value of q and one of k.
struct QkPair {
  float q, k;
};
/// The partial softmax of each warp, for each index: its maximum, and its sum of e^{z − maximum}.
struct SoftmaxPartials {
  QkPair largest[2][warps], sum[2][warps];
};
/// k and q times some columns of a state, times each other, and each times itself.
struct RowSums {
  float4 kS, qS;
  float qk, qq, kk;
};
struct Shared {
  Row row;
  Chosen chosen;
  SoftmaxPartials partials;
  Scalars scalars;
  alignas(16) float features[2][decay_rank];
  float4 o_of_warps[warps][most_columns / own_columns];
  RowSums sums_of_warps[2][warps][most_columns / own_columns];  // two buffers in turn
};

// Named barriers: of the threads of a step, and of what another warp loads for them.
constexpr int step_barrier = 1, features_ready = 2, choices_ready = 3;
/// Other warps of the block take no part. In the persistent kernel this is the barrier of sync_consumers.
__device__ inline void sync_step() { wait_at_barrier<step_barrier, threads>(); }
/// As sync_step, and until the other warp has loaded it.
template <int what>
__device__ void wait_for_signal() {
  wait_at_barrier<what, threads + warp_size>();
}
/// By that warp, which goes on at once.
template <int what>
__device__ void signal() {
  __syncwarp();
  arrive_at_barrier<what, threads + warp_size>();
}

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
__device__ QkPair combined_each(QkPair x, Combine combine) {
  return {combined(x.q, combine), combined(x.k, combine)};
}
/// Combines a value of each warp; the result is in all lanes.
template <class Combine>
__device__ float combined_warps(float x, Combine combine) {
#pragma unroll
  for (int distance = warps / 2; distance > 0; distance /= 2) x = combine(x, __shfl_xor_sync(~0U, x, distance));
  return x;
}
__device__ inline float sum_of(float a, float b) { return a + b; }
__device__ inline float larger_of(float a, float b) { return fmaxf(a, b); }

/// How a step reads operands that simply lie in memory: requested, then taken (decode/mailbox.h has the other way). `in_persistent_kernel`:
/// another warp loads what all threads of the step need.
struct GlobalReader {
  using Pending = float;
  using PendingFour = float4;
  static constexpr bool in_persistent_kernel = false;
  __device__ float request(const float* x) const { return *x; }
  __device__ float4 request_four(const float* x) const { return *reinterpret_cast<const float4*>(x); }
  template <class Numbers>
  __device__ Numbers get(const Numbers& x) const {
    return x;
  }
};

/// By one warp: finds the chosen partitions and their gates. One task writes what the routing says to memory.
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
  for (int n = lane; n < routing.N; n += warp_size) largest = fmaxf(largest, chosen.logit[n] = read.get(read.request(logits + n)));
  largest = combined(largest, larger_of);
  const float shift = largest == lowest ? 0 : largest;
  for (int n = lane; n < routing.N; n += warp_size) sum += chosen.e[n] = expf(chosen.logit[n] - shift);
  sum = combined(sum, sum_of);
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

/// The thread's first channel, in most models its only one.
template <bool sparse>
struct FirstChannel {
  int half, r;
  bool there;
  __device__ explicit FirstChannel(const Step& p) {
    const int thread = static_cast<int>(threadIdx.x);
    half = sparse && thread >= p.K ? 1 : 0, r = thread - half * p.K, there = r < p.K;
  }
};

/// A channel of q or k, loaded from x; of sparse states the sum of x and `more` where that is asked.
template <bool sparse, class Read>
struct PendingValue {
  typename Read::Pending x{}, more{};
  bool sum = false;

  __device__ void request(const float* x_, const float* more_, bool sum_, const Read& read) {
    x = read.request(x_), sum = sparse && sum_;
    if (sum) more = read.request(more_);
  }
  __device__ float get(const PairSource& pair_source, const Read& read) const {
    const float z = sum ? read.get(x) + read.get(more) : read.get(x);
    return !sparse || pair_source.pair == nullptr || pair_source.softmax ? z : activated_by_one(z, pair_source.act);
  }
};
/// Whether there is such a memory whose channels decay by themselves.
template <bool delta_rule, bool sparse>
constexpr bool may_decay_channels = !delta_rule || !sparse;

/// A channel of the row, requested first and then stored to shared memory; with its decay where the step does not compute decays itself.
template <bool delta_rule, bool sparse, class Read>
struct PendingChannel {
  PendingValue<sparse, Read> q, k;
  typename Read::Pending log_decay{};

  __device__ static bool decays(const Step& p) {
    return may_decay_channels<delta_rule, sparse> && p.decays_channels() && !(Read::in_persistent_kernel && p.decays[0].out > 0);
  }
  __device__ void request(const Step& p, const Task& t, int half, int r, const Read& read) {
    q.request(t.q[half] + r, t.more_q + r, half == 1 && t.more_q != nullptr, read);
    k.request(t.k[half] + r, t.more_k + r, half == 1 && t.more_k != nullptr, read);
    if (decays(p)) log_decay = read.request(t.log_decay[half] + r);
  }
  __device__ void put(Row& row, const Step& p, int half, int r, const Read& read) const {
    row.q[half][r] = q.get(p.q_source, read), row.k[half][r] = k.get(p.k_source, read);
    if (decays(p)) row.alpha[half][r] = expf(read.get(log_decay));
  }
};

/// By one warp: loads what all channels share.
template <class Read>
__device__ void load_scalars(Scalars& scalars, const Step& p, const Task& t, const Read& read) {
  const int half = threadIdx.x % warp_size;
  if (half >= p.halves()) return;
  typename Read::Pending log_decay{}, beta{};
  if (p.decays_heads()) log_decay = read.request(t.log_decay[half]);
  if (p.beta.x != nullptr) beta = read.request(t.beta[half]);
  scalars.alpha[half] = expf(read.get(log_decay));
  scalars.beta[half] = p.beta.x != nullptr ? read.get(beta) : 1;
}
/// By one warp: loads the features that low-rank decays are computed from.
template <class Read>
__device__ void load_features(float (*features)[decay_rank], const Task& t, const Read& read) {
  const int lane = threadIdx.x % warp_size, half = lane / decay_rank, i = lane % decay_rank;
  if (t.features[half] != nullptr) features[half][i] = read.get(read.request(t.features[half] + i));
}
/// The row of a low-rank gate for the channel of a thread, which has at most one; o = −1: none.
struct DecayRow {
  uint4 weight[decay_rank / 8] = {};
  float bias = 0;
  int half = 0, r = 0, o = -1;

  template <bool sparse>
  __device__ void load(const Step& p, const Task& t, const FirstChannel<sparse>& first) {
    half = first.half, r = first.r;
    const one_row::Product& product = p.decays[half];
    if (!first.there || product.out == 0) return;
    o = p.log_decay.head_of(t.head, p.H) * p.K + r;
    const auto* from = reinterpret_cast<const uint4*>(product.weight) + o * (decay_rank / 8);
    for (uint4& w : weight) w = *from++;
    if (product.bias != nullptr) bias = product.bias[o];
  }
  /// log_decay; summed in the order of the persistent kernel's dependent products.
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

/// q and k of sparse states become e^{z − max z} / Σ over the channels, where that is asked. Each warp has a maximum of its own at first.
__device__ inline void softmax(Row& row, SoftmaxPartials& partials, const Step& p) {
  constexpr float lowest = -INFINITY;
  constexpr int halves = 2;  // of sparse states
  const int lane = threadIdx.x % warp_size, warp = static_cast<int>(threadIdx.x) / warp_size;
  const auto exponential = [](float z, float most) { return expf(z - (most == lowest ? 0 : most)); };
#pragma unroll 1
  for (int half = 0; half < halves; ++half) {
    QkPair largest{lowest, lowest}, sum{};
    if (has_channels(p, half)) {
      for_own_channels_of(p, half, [&](int r) { largest = {larger_of(largest.q, row.q[half][r]), larger_of(largest.k, row.k[half][r])}; });
      largest = combined_each(largest, larger_of);
      for_own_channels_of(p, half, [&](int r) {
        const QkPair e{exponential(row.q[half][r], largest.q), exponential(row.k[half][r], largest.k)};
        if (p.q_source.softmax) row.q[half][r] = e.q;
        if (p.k_source.softmax) row.k[half][r] = e.k;
        sum = {sum.q + e.q, sum.k + e.k};
      });
      sum = combined_each(sum, sum_of);
    }
    if (lane == 0) partials.largest[half][warp] = largest, partials.sum[half][warp] = sum;
  }
  sync_step();
  // For the values of a warp: e^{its maximum − that of all} / Σ.
  const auto factor = [&](float of_lane, float sum, float of_warp) {
    const float all = combined_warps(of_lane, larger_of);
    const auto weight = [&](float largest) { return largest == lowest ? 0 : expf(largest - all); };
    const float total = combined_warps(weight(of_lane) * sum, sum_of);
    return total == 0 ? 0 : weight(of_warp) / total;
  };
#pragma unroll 1
  for (int half = 0; half < halves; ++half) {
    if (!has_channels(p, half)) continue;
    const QkPair largest = partials.largest[half][lane % warps], sum = partials.sum[half][lane % warps], own = partials.largest[half][warp];
    const float of_q = factor(largest.q, sum.q, own.q), of_k = factor(largest.k, sum.k, own.k);
    for_own_channels_of(p, half, [&](int r) {
      if (p.q_source.softmax) row.q[half][r] *= of_q;
      if (p.k_source.softmax) row.k[half][r] *= of_k;
    });
  }
}

/// Stores the row of head h to shared memory, with zeros after it up to so many channels. The thread's first channel has been requested.
template <bool delta_rule, bool sparse, class Read>
__device__ void load_row(Shared& shared, const Step& p, const Task& t, int channels, const FirstChannel<sparse>& first,
                         const PendingChannel<delta_rule, sparse, Read>& pending, const Read& read) {
  Row& row = shared.row;
  const bool makes_decays = !delta_rule && Read::in_persistent_kernel && p.decays[0].out > 0;
  const int h = t.head;
  DecayRow decay;
  if (makes_decays) decay.load(p, t, first);
  if (first.there) pending.put(row, p, first.half, first.r, read);
#pragma unroll 1
  for (int half = 0; half < (sparse ? 2 : 1); ++half) {
#pragma unroll 1
    for (int r = first_channel(p, half) + (half == first.half ? threads : 0); r < p.K; r += threads) {
      PendingChannel<delta_rule, sparse, Read> other;
      other.request(p, t, half, r, read);
      other.put(row, p, half, r, read);
    }
  }
#pragma unroll 1
  for (int r = p.K + static_cast<int>(threadIdx.x); r < channels; r += threads) {
    for (int half = 0; half < (sparse ? 2 : 1); ++half) row.q[half][r] = row.k[half][r] = row.alpha[half][r] = 0;
  }
  if (makes_decays) {
    if (t.is_first()) wait_for_signal<features_ready>();
    if (decay.o >= 0) {
      const one_row::Product& product = p.decays[decay.half];
      const float log_decay = decay.log_decay(product, shared.features);
      if (t.tile == 0) product.y[decay.o] = log_decay;
      row.alpha[decay.half][decay.r] = expf(log_decay);
    }
  }
  if (sparse && (p.q_source.softmax || p.k_source.softmax)) softmax(row, shared.partials, p);
  if (sparse && t.tile == 0 && p.q_source.pair != nullptr) {
#pragma unroll 1
    for (int half = 0; half < 2; ++half) {
      for_own_channels_of(p, half, [&](int r) {
        const int i = (half * p.H + h) * p.K + r;
        p.q_source.pair[i] = row.q[half][r], p.k_source.pair[i] = row.k[half][r];
      });
    }
  }
}

}  // namespace statescope::cuda::memory_step

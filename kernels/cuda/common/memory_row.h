// What all threads of a memory's step need of a row (cuda_memory_step.h): q, k and decays of a head, the chosen partitions, in shared
// memory. Included by .cu files alone.
#pragma once

#include "kernels/cuda/common/memory_task.h"
#include "kernels/cuda/common/numbers.h"
#include "kernels/cuda/common/order.h"

namespace statescope::cuda::memory_step {

/// What a head has of the row. Index 0 is for the first state, 1 for the chosen ones.
struct alignas(16) Row {
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
/// What the warps have of a row, for each index: the largest, the sum of what is e to the power of each below that.
struct Parts {
  Pair largest[2][warps], sum[2][warps];
};
/// Of k and q with some columns of a state, with each other, and each with itself.
struct RowSums {
  float4 kS, qS;
  float qk, qq, kk;
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

// Numbers of barriers: of the threads of a step, and of what a warp beside them brings.
constexpr int of_step = 1, features_there = 2, chosen_there = 3;
/// A block may have other warps, which do not come here. In chains the same threads meet there as in sync_warps.
__device__ inline void sync_step() { wait_at_barrier<of_step, threads>(); }
/// As sync_step, and until it is there.
template <int what>
__device__ void wait_for() {
  wait_at_barrier<what, threads + warp_size>();
}
/// By that warp, which goes on at once.
template <int what>
__device__ void bring() {
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
__device__ inline float larger_of(float a, float b) { return fmaxf(a, b); }

/// How a step reads what others have made, where it simply lies there: asked for, then taken. `in_chain`: a warp beside those of the step
/// brings what all of them need.
struct InMemory {
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

/// Where a thread's first channel is, in most models its only one.
template <bool sparse>
struct FirstChannel {
  int half, r;
  bool there;
  __device__ explicit FirstChannel(const Step& p) {
    const int thread = static_cast<int>(threadIdx.x);
    half = sparse && thread >= p.K ? 1 : 0, r = thread - half * p.K, there = r < p.K;
  }
};

/// A channel of q or k, from x, and where it is the sum of two from `more`.
template <bool sparse, class Read>
struct AskedNumber {
  typename Read::Asked x{}, more{};
  bool sum = false;

  __device__ void ask(const float* x_, const float* more_, bool sum_, const Read& read) {
    x = read.ask(x_), sum = sparse && sum_;
    if (sum) more = read.ask(more_);
  }
  __device__ float get(const Source& source, const Read& read) const {
    const float z = sum ? read.get(x) + read.get(more) : read.get(x);
    return !sparse || source.pair == nullptr || source.softmax ? z : activated_by_one(z, source.act);
  }
};
/// A channel of the row, asked for and then put into shared memory; its decay where it has one that no weights make.
template <bool delta_rule, bool sparse, class Read>
struct AskedChannel {
  AskedNumber<sparse, Read> q, k;
  typename Read::Asked log_decay{};

  __device__ static bool decays(const Step& p) { return !delta_rule && p.decays_channels() && !(Read::in_chain && p.decays[0].out > 0); }
  __device__ void ask(const Step& p, const Task& t, int half, int r, const Read& read) {
    q.ask(t.q[half] + r, t.more_q + r, half == 1 && t.more_q != nullptr, read);
    k.ask(t.k[half] + r, t.more_k + r, half == 1 && t.more_k != nullptr, read);
    if (decays(p)) log_decay = read.ask(t.log_decay[half] + r);
  }
  __device__ void put(Row& row, const Step& p, int half, int r, const Read& read) const {
    row.q[half][r] = q.get(p.q_source, read), row.k[half][r] = k.get(p.k_source, read);
    if (decays(p)) row.alpha[half][r] = expf(read.get(log_decay));
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

/// q and k of the row of sparse states become e^{z − max z} / Σ over the channels, where they are asked for so. Each warp has a maximum of
/// its own at first.
__device__ inline void softmax(Row& row, Parts& parts, const Step& p) {
  constexpr float lowest = -INFINITY;
  constexpr int halves = 2;  // of sparse states
  const int lane = threadIdx.x % warp_size, warp = static_cast<int>(threadIdx.x) / warp_size;
  const auto exponential = [](float z, float most) { return expf(z - (most == lowest ? 0 : most)); };
#pragma unroll 1
  for (int half = 0; half < halves; ++half) {
    Pair largest{lowest, lowest}, sum{};
    if (has_channels(p, half)) {
      for_own_channels_of(p, half, [&](int r) { largest = {larger_of(largest.q, row.q[half][r]), larger_of(largest.k, row.k[half][r])}; });
      largest = combined_each(largest, larger_of);
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
    const float all = combined_warps(of_lane, larger_of);
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

/// The row of head h into shared memory, zeros behind it up to so many channels. The thread's first one has been asked for.
template <bool delta_rule, bool sparse, class Read>
__device__ void load_row(Shared& shared, const Step& p, const Task& t, int channels, const FirstChannel<sparse>& first,
                         const AskedChannel<delta_rule, sparse, Read>& asked, const Read& read) {
  Row& row = shared.row;
  const bool makes_decays = !delta_rule && Read::in_chain && p.decays[0].out > 0;
  const int h = t.head;
  DecayRow decay;
  if (makes_decays) decay.load(p, t, first);
  if (first.there) asked.put(row, p, first.half, first.r, read);
#pragma unroll 1
  for (int half = 0; half < (sparse ? 2 : 1); ++half) {
#pragma unroll 1
    for (int r = first_channel(p, half) + (half == first.half ? threads : 0); r < p.K; r += threads) {
      AskedChannel<delta_rule, sparse, Read> other;
      other.ask(p, t, half, r, read);
      other.put(row, p, half, r, read);
    }
  }
#pragma unroll 1
  for (int r = p.K + static_cast<int>(threadIdx.x); r < channels; r += threads) {
    for (int half = 0; half < (sparse ? 2 : 1); ++half) row.q[half][r] = row.k[half][r] = row.alpha[half][r] = 0;
  }
  if (makes_decays) {
    if (t.is_first()) wait_for<features_there>();
    if (decay.o >= 0) {
      const one_row::Product& product = p.decays[decay.half];
      const float log_decay = decay.log_decay(product, shared.features);
      if (t.tile == 0) product.y[decay.o] = log_decay;
      row.alpha[decay.half][decay.r] = expf(log_decay);
    }
  }
  if (sparse && (p.q_source.softmax || p.k_source.softmax)) softmax(row, shared.parts, p);
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

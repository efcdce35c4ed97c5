// One token's step of a matrix memory or of sparse states, as the blocks of a kernel compute it (memory_step.cu,
// decode/persistent_kernel.h). Included by .cu files alone.
#pragma once

#include "kernels/cuda/common/memory_row.h"

namespace statescope::cuda::memory_step {

__device__ inline float4 operator+(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }
__device__ inline float4 operator*(float s, float4 a) { return {s * a.x, s * a.y, s * a.z, s * a.w}; }
/// s a + b, rounded once: the same in every form of the step.
__device__ inline float4 fused(float s, float4 a, float4 b) {
  return {fmaf(s, a.x, b.x), fmaf(s, a.y, b.y), fmaf(s, a.z, b.z), fmaf(s, a.w, b.w)};
}

__device__ inline float4 shuffled(float4 x, int distance) {
  return {__shfl_xor_sync(~0U, x.x, distance), __shfl_xor_sync(~0U, x.y, distance), __shfl_xor_sync(~0U, x.z, distance),
          __shfl_xor_sync(~0U, x.w, distance)};
}
__device__ inline RowSums operator+(const RowSums& a, const RowSums& b) {
  return {a.kS + b.kS, a.qS + b.qS, a.qk + b.qk, a.qq + b.qq, a.kk + b.kk};
}
__device__ inline RowSums shuffled(const RowSums& x, int distance) {
  const auto number = [=](float one) { return __shfl_xor_sync(~0U, one, distance); };
  return {shuffled(x.kS, distance), shuffled(x.qS, distance), number(x.qk), number(x.qq), number(x.kk)};
}
/// The sum over the threads that share columns, in all of them. `partials` may be used again after another such sum.
template <class Numbers>
__device__ Numbers sum_of_rows(Numbers x, Numbers (*partials)[most_columns / own_columns], int of_warp) {
#pragma unroll
  for (int distance = least_columns / own_columns; distance < warp_size; distance *= 2) {
    if (distance >= of_warp) x = x + shuffled(x, distance);
  }
  const int own = threadIdx.x & (of_warp - 1);
  if (threadIdx.x % warp_size < of_warp) partials[threadIdx.x / warp_size][own] = x;
  sync_step();
  Numbers sum = partials[0][own];
  constexpr int at_once = sizeof(Numbers) > sizeof(float4) ? 2 : warps - 1;  // loads in flight, as registers allow
#pragma unroll(at_once)
  for (int w = 1; w < warps; ++w) sum = sum + partials[w][own];
  return sum;
}

/// The factor of q or k: f; where they are normalised f / ‖f x‖ if the factor comes before the norm, f / ‖x‖ if it comes after (spec §4.3).
__device__ inline float factor_of(float f, float square, const Step& p) {
  return !p.l2 ? f : f * rsqrtf((p.choices.before_l2 ? f * f : 1) * square + l2_norm_eps);
}

/// Consecutive rows of q, k or decays.
template <int count>
struct alignas(sizeof(float4)) Rows {
  float of[count];
  __device__ static Rows at(const float* first) { return *reinterpret_cast<const Rows*>(first); }
};

/// A thread owns four columns of a task and consecutive rows. `sparse`: p.is_sparse(), a parameter so that a matrix memory runs as little
/// code as it needs. In the persistent kernel another warp loads scalars and choices. `read` waits for values that have not been written
/// yet; publish(i, o): values i to i + 3 of o.
template <bool delta_rule, bool sparse, int RowsPerThread, class Read, class Publish>
__device__ void run_step(const Step& p, const Task& t, Shared& shared, const Read& read, const Publish& publish) {
  using OwnRows = Rows<RowsPerThread>;
  const int K = p.K, V = p.V, of_row = 1 << p.threads_per_row_log2(), thread = static_cast<int>(threadIdx.x);
  const int in_tile = (thread & (of_row - 1)) * own_columns, column = t.tile * p.columns + in_tile,
            first_row = (thread >> p.threads_per_row_log2()) * RowsPerThread;
  const bool present = column < V;
  const int own_rows = present ? K - first_row : 0;  // or more than it has
  // In ints: less code.
  const auto state_at = [&](int slot) {
    return t.state + (first_row * V + in_tile) + static_cast<std::size_t>(slot) * static_cast<unsigned>(p.H * K * V);
  };
  Row& row = shared.row;
  Chosen& chosen = shared.chosen;
  const FirstChannel<sparse> first(p);
  PendingChannel<delta_rule, sparse, Read> channel;
  if (first.there) channel.request(p, t, first.half, first.r, read);
  // The next state is loaded while the current one is computed.
  float4 next[RowsPerThread] = {};
  const auto load_state = [&](int slot) {
    const float* state = state_at(slot);
#pragma unroll
    for (int i = 0; i < RowsPerThread; ++i, state += V) {
      if (i < own_rows) next[i] = *reinterpret_cast<const float4*>(state);
    }
  };
  load_state(0);
  typename Read::PendingFour pending_v{};
  if (present) pending_v = read.request_four(t.v + in_tile);
  if constexpr (!Read::in_persistent_kernel) {
    // Where K is small the last warp has no channels.
    if (thread / warp_size == warps - 1) {
      load_scalars(shared.scalars, p, t, read);
      if (sparse) choose(chosen, p, t, read);
    }
  }
  load_row(shared, p, t, RowsPerThread * p.rows_at_once(), first, channel, read);
  const float4 v = read.get(pending_v);
  const bool signalled = Read::in_persistent_kernel && t.is_first();
  signalled ? wait_for_signal<choices_ready>() : sync_step();
  const Scalars& scalars = shared.scalars;

  float4 o{0, 0, 0, 0}, S[RowsPerThread] = {};
  float* state = nullptr;
  const auto store_state = [&] {
#pragma unroll
    for (int i = 0; i < RowsPerThread; ++i, state += V) {
      if (i < own_rows) *reinterpret_cast<float4*>(state) = S[i];
    }
  };
  const auto publish_own = [&] {
    if (first_row != 0 || !present) return;
    o = p.scale * o;
    publish(t.head * V + column, o);
    *reinterpret_cast<float4*>(p.o + t.head * V + column) = o;
  };
  const Choices& c = p.choices;
  const int last = sparse ? c.count : 0;
#pragma unroll 1
  for (int n = 0; n <= last; ++n) {
    if (n > 0) store_state();
    const int half = n > 0 ? 1 : 0;
    const float e = n > 0 ? chosen.gate[n - 1] : 1;
    const bool reads = n == 0 || n <= c.readers, writes = n == 0 || n <= c.writers;
    // The factors of q and k.
    float read = !reads ? 0 : c.gate_q ? e : 1, write = !writes ? 0 : n == 0 ? 1 : c.gate_k ? c.write_scale * e : c.write_scale;
    state = state_at(n > 0 ? 1 + chosen.partition[n - 1] : 0);
#pragma unroll
    for (int i = 0; i < RowsPerThread; ++i) S[i] = next[i];
    if (n < last) load_state(1 + chosen.partition[n]);
    const bool decays_channels = !delta_rule && writes && p.decays_channels();
    const float decay = writes ? scalars.alpha[half] : 1;
    const OwnRows q = OwnRows::at(row.q[half] + first_row), k = OwnRows::at(row.k[half] + first_row);
    float4 u = v, qS{};
    if constexpr (delta_rule) {
      if constexpr (may_decay_channels<delta_rule, sparse>) {
        if (p.decays_channels()) {
          // S ← diag(α) S; `decay` is 1
          const OwnRows alpha = OwnRows::at(row.alpha[half] + first_row);
#pragma unroll
          for (int i = 0; i < RowsPerThread; ++i) S[i] = alpha.of[i] * S[i];
        }
      }
      RowSums sums{};
#pragma unroll
      for (int i = 0; i < RowsPerThread; ++i) {
        const float q_i = q.of[i], k_i = k.of[i];
        sums = {sums.kS + k_i * S[i], sums.qS + q_i * S[i], sums.qk + q_i * k_i, sums.qq + q_i * q_i, sums.kk + k_i * k_i};
      }
      sums = sum_of_rows(sums, shared.sums_of_warps[n % 2], of_row);
      read = factor_of(read, sums.qq, p), write = factor_of(write, sums.kk, p);
      // u = β (v − α k S),   q (α S + kᵀ u) = α q S + (q kᵀ) u
      u = (writes ? scalars.beta[half] : 0) * (v + -(decay * write) * sums.kS);
      o = o + read * (decay * sums.qS + (write * sums.qk) * u);
      if (n == last) publish_own();
    }
    // S ← α S + kᵀ u,  o = o + q S
    u = write * u;
    OwnRows alpha;
    if (decays_channels) alpha = OwnRows::at(row.alpha[half] + first_row);
#pragma unroll
    for (int i = 0; i < RowsPerThread; ++i) {
      S[i] = fused(decays_channels ? alpha.of[i] : decay, S[i], k.of[i] * u);
      if constexpr (!delta_rule) qS = qS + q.of[i] * S[i];
    }
    if constexpr (!delta_rule) o = o + read * qS;
  }
  if constexpr (!delta_rule) {
    o = sum_of_rows(o, shared.o_of_warps, of_row);
    publish_own();
  }
  store_state();
}

}  // namespace statescope::cuda::memory_step

// A row's step of a matrix memory or of sparse states, as a kernel's blocks take it (memory_step.cu, chain_hopper.cu). Included by .cu
// files alone.
#pragma once

#include "kernels/cuda_memory_row.h"

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
__device__ inline RowSums operator+(const RowSums& a, const RowSums& b) { return {a.kS + b.kS, a.qS + b.qS, a.qk + b.qk}; }
__device__ inline RowSums shuffled(const RowSums& x, int distance) {
  return {shuffled(x.kS, distance), shuffled(x.qS, distance), __shfl_xor_sync(~0U, x.qk, distance)};
}
/// The sum over the threads that share columns, in all of them. `parts` is free when another such sum has been made.
template <class Numbers>
__device__ Numbers sum_of_rows(Numbers x, Numbers (*parts)[most_columns / own_columns], int of_warp) {
#pragma unroll
  for (int distance = least_columns / own_columns; distance < warp_size; distance *= 2) {
    if (distance >= of_warp) x = x + shuffled(x, distance);
  }
  const int own = threadIdx.x & (of_warp - 1);
  if (threadIdx.x % warp_size < of_warp) parts[threadIdx.x / warp_size][own] = x;
  sync_step();
  Numbers sum = parts[0][own];
  constexpr int at_once = sizeof(Numbers) > sizeof(float4) ? 2 : warps - 1;  // in registers
#pragma unroll(at_once)
  for (int w = 1; w < warps; ++w) sum = sum + parts[w][own];
  return sum;
}

/// What x is multiplied with: f, or so that it becomes L2(f x) where the factor comes before, else f · L2(x)   (spec §4.3)
__device__ inline float factor_of(float f, float square, const Step& p) {
  return !p.l2 ? f : f * rsqrtf((p.choices.before_l2 ? f * f : 1) * square + l2_norm_eps);
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
    // Rows behind the last one are zeros: no branch between the others, unless they are so many that registers run out.
    constexpr bool branches = RowsPerThread > 4;
    const auto skips = [&](int i) { return branches && row_at(i) >= p.K; };
    const auto number = [&](const float* of_row, int i) { return row_at(i) < p.K ? of_row[row_at(i)] : 0; };
    const auto q = [&](int i) { return read * number(row.q[half], i); };
    const auto k = [&](int i) { return write * number(row.k[half], i); };
    const bool decays_channels = writes && p.decays_channels();
    const float decay = writes ? scalars.alpha[half] : 1;
    float4 u = v;
    if constexpr (delta_rule) {
      RowSums sums{};
#pragma unroll
      for (int i = 0; i < RowsPerThread; ++i) {
        if (!skips(i)) sums = {sums.kS + k(i) * S[i], sums.qS + q(i) * S[i], sums.qk + q(i) * k(i)};
      }
      sums = sum_of_rows(sums, shared.sums_of_warps[n % 2], of_row);
      // u = β (v − α k S),   q (α S + kᵀ u) = α q S + (q kᵀ) u
      u = (writes ? scalars.beta[half] : 0) * (v + -decay * sums.kS);
      o = o + decay * sums.qS + sums.qk * u;
      if (n == c.count) hand_on_own();
    }
#pragma unroll
    for (int i = 0; i < RowsPerThread; ++i) {
      if (skips(i)) continue;
      // S ← α S + kᵀ u,  o = o + q S
      S[i] = fused(decays_channels ? number(row.alpha[half], i) : decay, S[i], k(i) * u);
      if constexpr (!delta_rule) o = o + q(i) * S[i];
    }
  }
  if constexpr (!delta_rule) {
    o = sum_of_rows(o, shared.o_of_warps, of_row);
    hand_on_own();
  }
  store_state();
}

}  // namespace statescope::cuda::memory_step

// The prologue of a GEMV: its input row x is polled from the mailbox, passes its norm and gate, and is stored to shared memory as three
// bf16 terms (bf16x3.h). Included by .cu files alone.
#pragma once

#include "kernels/cuda/decode/operation.h"

namespace statescope::cuda::decode {

constexpr int vector_values = 8;  // bf16 values of 16 bytes
// 16-byte vectors (as bf16) that a thread has of an x that passes a norm. A kernel of its own takes the long rows: with their code in it,
// one for shorter rows is up to 4 % slower.
constexpr int few_normed_vectors = 2, most_normed_vectors = 3;
constexpr int most_normed_values = threads * vector_values * most_normed_vectors;
constexpr int most_plain_values = 32 << 10;  // of an x without a norm
constexpr int vectors_per_k_block = k_block_columns / vector_values;

/// All consumers meet. The lanes of a warp converge before it arrives.
__device__ inline void sync_consumers() {
  __syncwarp();
  memory_step::sync_step();
}

/// (Σ x² / group + eps)^{−1/2}
__device__ inline float norm_factor_of(const TiledGemv& gemv, float squares) {
  return rsqrtf(squares * gemv.inverse_group + gemv.input.eps);
}

constexpr int term_padding = 64;  // bytes
/// Where term p of x begins, in bytes: terms are skewed so that lanes that read together hit different banks.
__device__ inline int term_offset(const TiledGemv& gemv, int p) { return p * gemv.term_bytes + (p > 0 ? term_padding : 0); }

/// Stores eight values of x at vector c as three terms. Values 0, 1, 4, 5 come before the others, in the last term after them, again for
/// the banks.
__device__ __noinline__ inline void store_split(char* x, int term_bytes, int c, float4 a, float4 b) {
  char* to = x + c * vector_bytes;
#pragma unroll
  for (int p = 0; p < split_terms; ++p) {
    const uint4 term{packed(a.x, a.y), packed(b.x, b.y), packed(a.z, a.w), packed(b.z, b.w)};
    *reinterpret_cast<uint4*>(to) = p < 2 ? term : uint4{term.z, term.w, term.x, term.y};
    a = {a.x - first_of(term.x), a.y - second_of(term.x), a.z - first_of(term.z), a.w - second_of(term.z)};
    b = {b.x - first_of(term.y), b.y - second_of(term.y), b.z - first_of(term.w), b.w - second_of(term.w)};
    to += p == 0 ? term_bytes + term_padding : term_bytes;
  }
}

struct EightValues {
  float4 a, b;
  __device__ void load(const float* from) { a = *reinterpret_cast<const float4*>(from), b = *reinterpret_cast<const float4*>(from + 4); }
};
using memory_step::operator+;
using memory_step::operator*;
__device__ inline float4 operator*(float4 a, float4 b) { return {a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w}; }
__device__ inline float square(float4 a) { return a.x * a.x + a.y * a.y + a.z * a.z + a.w * a.w; }

/// The vectors from `begin` to `end` of a row that a thread loads: issued together, and again until all have been published. The row is
/// divided among `loading_threads` threads from `first_thread` on.
template <int n, int first_thread = 0, int loading_threads = threads>
struct PollingLoad {
  static constexpr int count = n;
  EightValues in[n] = {};
  const float* from;
  int begin, end;
  bool from_mailbox;
  unsigned missing = 0;  // a bit for each vector

  __device__ PollingLoad(const float* row, int begin_, int end_, const Mailbox& mailbox)
      : from(mailbox.current(row)), begin(begin_), end(end_), from_mailbox(mailbox.has(row)) {
#pragma unroll
    for (int t = 0; t < n; ++t) {
      if (row != nullptr && vector_index(t) < end) missing |= 1U << t;
    }
  }
  __device__ int vector_index(int t) const { return begin + static_cast<int>(threadIdx.x) - first_thread + t * loading_threads; }
  __device__ void request() {
#pragma unroll
    for (int t = 0; t < n; ++t) {
      if ((missing >> t & 1) == 0) continue;
      const float* const own = from + vector_values * vector_index(t);
      Mailbox::load(in[t].a, own), Mailbox::load(in[t].b, own + 4);
    }
  }
  __device__ bool has_arrived() {
#pragma unroll
    for (int t = 0; t < n; ++t) {
      if (!from_mailbox || (Mailbox::has_arrived(in[t].a) & Mailbox::has_arrived(in[t].b))) missing &= ~(1U << t);
    }
    return missing == 0;
  }
};

/// A slice of an x without a norm. Callers that issue one and then multiply wait for it before they do: both kinds of loads share a
/// scoreboard.
template <int first_thread, int loading_threads>
using SliceLoad = PollingLoad<(most_k_blocks * vectors_per_k_block + loading_threads - 1) / loading_threads, first_thread, loading_threads>;
template <class Slice>
__device__ Slice issue_slice(const TiledGemv& gemv, int first_k_block, const Mailbox& mailbox) {
  const int end = gemv.input.group == 0 ? first_k_block + gemv.k_blocks_from(first_k_block) : first_k_block;
  Slice row(gemv.input.x, first_k_block * vectors_per_k_block, end * vectors_per_k_block, mailbox);
  row.request();
  return row;
}
template <class Slice>
__device__ void wait_until_arrived(Slice& row) {
  while (!row.has_arrived()) row.request();
  __syncwarp();
}
/// Stores a slice, from k-block `offset` on.
template <class Slice>
__device__ void store_slice(char* x, const TiledGemv& gemv, const Slice& row, int offset) {
#pragma unroll
  for (int t = 0; t < Slice::count; ++t) {
    const int c = row.vector_index(t);
    if (c < row.end) store_split(x, gemv.term_bytes, c - row.begin + offset * vectors_per_k_block, row.in[t].a, row.in[t].b);
  }
}

// Slices after the first are loaded by the epilogue warps, while the consumers multiply.
using FirstSlice = SliceLoad<0, threads>;
using LaterSlice = SliceLoad<first_epilogue_warp * warp_size, epilogue_threads>;
constexpr int slice_threads = threads + epilogue_threads;
/// By the consumers: the slice that the next one will replace has been read.
__device__ inline void release_slice() {
  __syncwarp();
  arrive_at_barrier<slice_empty, slice_threads>();
}
/// By the consumers: they meet, and the next slice is there.
__device__ inline void wait_for_slice() {
  __syncwarp();
  wait_at_barrier<slice_full, slice_threads>();
}
/// By the epilogue warps: all slices after the first.
__device__ inline void load_later_slices(char* x, const TiledGemv& gemv, const Mailbox& mailbox) {
  if (!gemv.is_sliced()) return;
#pragma unroll 1
  for (int block = gemv.k_blocks_per_slice, offset = gemv.next_slice_offset(0); block < gemv.k_blocks; block += gemv.k_blocks_per_slice) {
    LaterSlice row = issue_slice<LaterSlice>(gemv, block, mailbox);
    wait_until_arrived(row);
    wait_at_barrier<slice_empty, slice_threads>();
    store_slice(x, gemv, row, offset);
    __syncwarp();
    arrive_at_barrier<slice_full, slice_threads>();
    offset = gemv.next_slice_offset(offset);
  }
}

/// A norm over the whole row, without a gate: decided once, so that half as much code runs.
__device__ inline bool is_plain(const Input& input) { return input.gate == nullptr && input.one_group(); }

/// The weights of a norm for the vectors of a thread, without their offset.
template <int vectors, bool plain>
struct ThreadNormWeights {
  EightValues weight[vectors];
  __device__ explicit ThreadNormWeights(const Input& input) {
#pragma unroll
    for (int t = 0; t < vectors; ++t) {
      const int first = vector_values * (static_cast<int>(threadIdx.x) + t * threads);
      const float one = 1 - input.offset;
      const float4 ones{one, one, one, one};
      weight[t] = {ones, ones};
      if (input.weight != nullptr && first < input.n)
        weight[t].load(input.weight + first - (plain ? 0 : input.group_of(first / values_per_sum) * input.group));
    }
  }
};

/// x ⊙ act(gate); identity: the gate has been activated already.
__device__ inline float4 gated(float4 x, float4 gate, Activation act) {
  if (act != Activation::identity)
    gate = {activated_by_one(gate.x, act), activated_by_one(gate.y, act), activated_by_one(gate.z, act), activated_by_one(gate.w, act)};
  return x * gate;
}

/// Loads all of an x that passes a norm, so many vectors a thread. Of a norm over the whole row the factor is left to the epilogue, and
/// each warp writes its sum to `of_warps`; `of_sums` is for this function alone. `plain`: is_plain(gemv.input).
template <int vectors, bool plain>
__device__ void load_normed(char* x, float* of_warps, float* of_sums, const TiledGemv& gemv, const Mailbox& mailbox) {
  const ThreadNormWeights<vectors, plain> norm(gemv.input);
  constexpr int vectors_per_sum = values_per_sum / vector_values;
  const Input& input = gemv.input;
  const int row_vectors = input.n / vector_values, thread = static_cast<int>(threadIdx.x), warp = thread / warp_size;
  const auto is_of_warp = [=](int t) { return warp * warp_size + t * threads < row_vectors; };
  PollingLoad<vectors> row(input.x, 0, row_vectors, mailbox), gates(plain ? nullptr : input.gate, 0, row_vectors, mailbox);
  bool there = false;
  while (!there) {
    row.request();
    if (!plain) gates.request();
    there = row.has_arrived();
    if (!plain) there = gates.has_arrived() && there;
  }
  __syncwarp();
  auto& in = row.in;
  const auto& gate = gates.in;
  float sum[vectors] = {}, factor[vectors];
  const float4 offset{input.offset, input.offset, input.offset, input.offset};
#pragma unroll
  for (int t = 0; t < vectors; ++t) {
    factor[t] = 1;
    if (!is_of_warp(t)) continue;
    sum[t] = square(in[t].a) + square(in[t].b);
    in[t] = {in[t].a * (norm.weight[t].a + offset), in[t].b * (norm.weight[t].b + offset)};
    if (!plain && input.gate != nullptr) in[t] = {gated(in[t].a, gate[t].a, input.act), gated(in[t].b, gate[t].b, input.act)};
  }
  if (plain || input.one_group()) {
    float row_sum = sum[0];
#pragma unroll
    for (int t = 1; t < vectors; ++t) row_sum += sum[t];
    row_sum = sum_of_warp(row_sum);
    if (thread % warp_size == 0) of_warps[warp] = row_sum;
  } else {
#pragma unroll
    for (int t = 0; t < vectors; ++t) {
      if (!is_of_warp(t)) continue;
      const int c = thread + t * threads;
#pragma unroll
      for (int distance = vectors_per_sum / 2; distance > 0; distance /= 2) sum[t] += __shfl_xor_sync(~0U, sum[t], distance);
      if (c % vectors_per_sum == 0 && c < row_vectors) of_sums[c / vectors_per_sum] = sum[t];
    }
    sync_consumers();
#pragma unroll
    for (int t = 0; t < vectors; ++t) {
      if (!is_of_warp(t)) continue;
      float group_sum = 0;
#pragma unroll 4
      for (int j = 0; j < input.sums_per_group; ++j)
        group_sum += of_sums[input.group_of((thread + t * threads) / vectors_per_sum) * input.sums_per_group + j];
      factor[t] = norm_factor_of(gemv, group_sum);
    }
  }
#pragma unroll
  for (int t = 0; t < vectors; ++t) {
    const int c = thread + t * threads;
    if (c < row_vectors) store_split(x, gemv.term_bytes, c, factor[t] * in[t].a, factor[t] * in[t].b);
  }
}

}  // namespace statescope::cuda::decode

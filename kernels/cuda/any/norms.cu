// The CUDA forms of norms and the softmax, of rows or of groups of their numbers.
#include <limits>

#include "kernels/cuda/common/rowwise.h"
#include "kernels/cuda/common/warp.h"

namespace statescope::cuda {
namespace {

using namespace rowwise;

/// Groups of n numbers, `in_row` of them a row.
struct Groups {
  std::int64_t count, in_row, n;
  /// The group of `Threads` threads; all of a warp have the same.
  template <unsigned Threads>
  __device__ std::int64_t own() const {
    return std::int64_t{blockIdx.x} * (most_threads / Threads) + threadIdx.x / Threads;
  }
  __device__ std::int64_t row(std::int64_t group) const { return group / in_row; }
  __device__ std::int64_t column(std::int64_t group) const { return group % in_row * n; }
};

/// y = x / (Σ x + eps)
struct ShareOfSum {
  float eps;
  __device__ float term(float x) const { return x; }
  __device__ float factor(float sum) const { return sum + eps; }
  __device__ float value(float x, std::int64_t, float factor) const { return x / factor; }
};

/// Added to x, and stored there, before the norm.
struct Addend {
  Numbers<const void> rows;  // absent: nothing
  Numbers<void> sum;
};

/// `Threads` threads own a group. y may be x: nobody writes before `combined` has got the terms of all.
template <unsigned Threads, int Width, class Norm, template <class> class Rows>
__global__ void norm_kernel(Rows<void> y, Rows<const void> x, Groups groups, Norm norm, OutputGate<Rows> gate, Addend addend) {
  begin_overlapped();
  const std::int64_t group = groups.own<Threads>();
  if (group >= groups.count) return;
  const std::int64_t t = groups.row(group), first = groups.column(group), begin = threadIdx.x % Threads * Width;
  float sum = 0;
  for (std::int64_t i = begin; i < groups.n; i += Threads * Width) {
    Pack<Width> in = x.template load<Width>(t, first + i);
    if (addend.rows) {
      in = each(in, addend.rows.load<Width>(t, first + i), Plus());
      addend.sum.store(t, first + i, in);
    }
#pragma unroll
    for (int j = 0; j < Width; ++j) sum += norm.term(in.at[j]);
  }
  const float factor = norm.factor(combined<Threads>(sum, Plus()));
  for (std::int64_t i = begin; i < groups.n; i += Threads * Width) {
    Pack<Width> out = x.template load<Width>(t, first + i);
#pragma unroll
    for (int j = 0; j < Width; ++j) out.at[j] = norm.value(out.at[j], i + j, factor);
    if (gate.rows) out = each(out, gate.template factors<Width>(t, first + i), Times());
    y.template store<Width>(t, first + i, out);
  }
}

/// y = (x − m) · (mean((x − m)²) + eps)^{-1/2} ⊙ weight + bias, m = mean(x). `Threads` threads own a group.
template <unsigned Threads>
__global__ void layer_norm_kernel(Numbers<void> y, Numbers<const void> x, Groups groups, const float* weight, const float* bias,
                                  float eps) {
  begin_overlapped();
  const std::int64_t group = groups.own<Threads>();
  if (group >= groups.count) return;
  const std::int64_t t = groups.row(group), first = groups.column(group), begin = threadIdx.x % Threads;
  const auto n = static_cast<float>(groups.n);
  float sum = 0, squares = 0;
  for (std::int64_t i = begin; i < groups.n; i += Threads) sum += x.number(t, first + i);
  const float mean = combined<Threads>(sum, Plus()) / n;
  for (std::int64_t i = begin; i < groups.n; i += Threads) {
    const float away = x.number(t, first + i) - mean;
    squares = fmaf(away, away, squares);
  }
  const float inverse = 1 / sqrtf(combined<Threads>(squares, Plus()) / n + eps);
  for (std::int64_t i = begin; i < groups.n; i += Threads) {
    float out = (x.number(t, first + i) - mean) * inverse;
    if (weight != nullptr) out *= weight[first + i];
    if (bias != nullptr) out += bias[first + i];
    y.store(t, first + i, Pack<1>{{out}});
  }
}

/// y = e^{temperature · x − m} / Σ, m the largest exponent. A group that allows nothing (−∞ only) gives zeros. `Threads` threads own a
/// group. The product is rounded before m is taken away: fused, 1e30 · 0.3 − m would be the rounding error of m, not 0.
template <unsigned Threads, int Width>
__global__ void softmax_kernel(Numbers<void> y, Numbers<const void> x, Groups groups, float temperature) {
  begin_overlapped();
  const std::int64_t group = groups.own<Threads>();
  if (group >= groups.count) return;
  const std::int64_t t = groups.row(group), first = groups.column(group), begin = threadIdx.x % Threads * Width;
  const auto exponents = [&](std::int64_t i, float shift) {
    Pack<Width> z = x.load<Width>(t, first + i);
#pragma unroll
    for (int j = 0; j < Width; ++j) z.at[j] = __fmul_rn(temperature, z.at[j]) - shift;
    return z;
  };
  constexpr float lowest = -std::numeric_limits<float>::infinity();
  float largest = lowest;
  for (std::int64_t i = begin; i < groups.n; i += Threads * Width) {
    const Pack<Width> z = exponents(i, 0);
#pragma unroll
    for (int j = 0; j < Width; ++j) largest = fmaxf(largest, z.at[j]);
  }
  const float m = combined<Threads>(largest, Larger()), shift = m == lowest ? 0 : m;

  float sum = 0;
  for (std::int64_t i = begin; i < groups.n; i += Threads * Width) {
    const Pack<Width> z = exponents(i, shift);
#pragma unroll
    for (int j = 0; j < Width; ++j) sum += expf(z.at[j]);
  }
  const float total = combined<Threads>(sum, Plus()), inverse = total == 0 ? 0 : 1 / total;
  for (std::int64_t i = begin; i < groups.n; i += Threads * Width) {
    Pack<Width> out = exponents(i, shift);
#pragma unroll
    for (int j = 0; j < Width; ++j) out.at[j] = expf(out.at[j]) * inverse;
    y.store(t, first + i, out);
  }
}

/// Launches `of_warp` with a warp for each group or `of_block` with a block: up to 1024 values a warp is faster.
template <template <class> class Rows = Numbers, class Kernel, class... Parameters>
void for_groups(const char* name, Kernel of_warp, Kernel of_block, Tensor y, ConstTensor x, std::int64_t n, cudaStream_t stream,
                Parameters... parameters) {
  require_same_rows(name, y, x);
  if (n <= 0 || x.row_size() % n != 0) fail(name, y, x);
  constexpr std::int64_t most_of_a_warp = 1024;
  const Groups groups{x.shape.size() / n, x.row_size() / n, n};
  const bool warps = n <= most_of_a_warp;
  const unsigned blocks = blocks_for(groups.count, warps ? most_threads / warp_size : 1);
  launch_overlapped(name, warps ? of_warp : of_block, blocks, most_threads, 0, stream, Rows<void>(numbers(y)), Rows<const void>(numbers(x)),
                    groups, parameters...);
}

template <class Norm>
void normalise(const char* name, Tensor y, ConstTensor x, std::int64_t n, cudaStream_t stream, Norm norm, ConstTensor gate = {},
               Activation act = {}, Addend addend = {}) {
  require_same_rows(name, y, x);
  if constexpr (std::is_same_v<Norm, InverseRoot>) {
    if (!addend.rows && normalise_short_groups(name, y, x, n, norm, gate, act, stream)) return;
  }
  const auto start = [&]<template <class> class Rows, int width>() {
    for_groups<Rows>(name, norm_kernel<warp_size, width, Norm, Rows>, norm_kernel<most_threads, width, Norm, Rows>, y, x, n, stream, norm,
                     OutputGate<Rows>{Rows<const void>(numbers(gate)), act}, addend);
  };
  const auto packs = [&](int width) {
    return n % width == 0 && in_packs(y, width) && in_packs(x, width) && in_packs(gate, width) && addend.rows.in_packs(width);
  };
  const auto is_bf16 = [](ConstTensor z) { return !z || z.dtype == DType::bf16; };
  constexpr int wide = 4, widest = 8;  // 16 bytes of float32, of bf16
  if (packs(widest) && is_bf16(y) && is_bf16(x) && is_bf16(gate) && !addend.rows) return start.template operator()<Bf16Numbers, widest>();
  packs(wide) ? start.template operator()<Numbers, wide>() : start.template operator()<Numbers, 1>();
}

}  // namespace

void rms_norm(Tensor y, ConstTensor x, ConstTensor weight, float eps, float offset, cudaStream_t stream) {
  const std::int64_t n = weight.shape.size();
  normalise("rms_norm", y, x, n, stream, InverseRoot{static_cast<float>(n), eps, f32(weight).data, offset});
}

void rms_norm_plain(Tensor y, ConstTensor x, std::int64_t group, float eps, cudaStream_t stream) {
  normalise("rms_norm_plain", y, x, group, stream, InverseRoot{static_cast<float>(group), eps, nullptr, 0});
}

void add_rms_norm(Tensor y, Tensor x, ConstTensor added, ConstTensor weight, float eps, float offset, cudaStream_t stream) {
  require_same_rows("add_rms_norm", x, added);
  const std::int64_t n = x.row_size();
  if (weight && weight.shape.size() != n) fail("add_rms_norm", x, weight);
  normalise("add_rms_norm", y, x, n, stream, InverseRoot{static_cast<float>(n), eps, f32(weight).data, offset}, {}, {},
            {numbers(added), numbers(x)});
}

void gated_rms_norm(Tensor y, ConstTensor x, ConstTensor weight, std::int64_t group, float eps, ConstTensor gate, Activation act,
                    cudaStream_t stream) {
  require_same_rows("gated_rms_norm", y, gate);
  normalise("gated_rms_norm", y, x, group, stream, InverseRoot{static_cast<float>(group), eps, f32(weight).data, 0}, gate, act);
}

void layer_norm(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, std::int64_t group, float eps, cudaStream_t stream) {
  for (const ConstTensor& row : {weight, bias}) {
    if (row && row.shape.size() != x.row_size()) fail("layer_norm", x, row);
  }
  for_groups("layer_norm", layer_norm_kernel<warp_size>, layer_norm_kernel<most_threads>, y, x, group, stream, f32(weight).data,
             f32(bias).data, eps);
}

void l2_norm(Tensor y, ConstTensor x, cudaStream_t stream) {
  normalise("l2_norm", y, x, last_axis(x), stream, InverseRoot{1, l2_norm_eps, nullptr, 0});
}

void sum_norm(Tensor y, ConstTensor x, float eps, cudaStream_t stream) {
  normalise("sum_norm", y, x, last_axis(x), stream, ShareOfSum{eps});
}

void softmax(Tensor y, ConstTensor x, float temperature, cudaStream_t stream) {
  const std::int64_t n = last_axis(x);
  if (temperature == 0) return fill(y, 1 / static_cast<float>(n), stream);  // 0 · ∞ has no value
  require_same_rows("softmax", y, x);
  if (softmax_short_groups(y, x, n, temperature, stream)) return;
  const auto start = [&](auto of_warp, auto of_block) { for_groups("softmax", of_warp, of_block, y, x, n, stream, temperature); };
  constexpr int wide = 4;
  if (n % wide == 0 && in_packs(y, wide) && in_packs(x, wide))
    return start(softmax_kernel<warp_size, wide>, softmax_kernel<most_threads, wide>);
  start(softmax_kernel<warp_size, 1>, softmax_kernel<most_threads, 1>);
}

void softmax_pair(Tensor pair, ConstTensor shared, ConstTensor sparse, ConstTensor more, cudaStream_t stream) {
  for (const ConstTensor& x : {shared, sparse, more}) require_same_rows("softmax_pair", pair.columns(x.row_size(), {x.row_size()}), x);
  if (softmax_pair_short_groups(pair, shared, sparse, more, last_axis(pair), stream)) return;
  sum_pair(pair, shared, sparse, more, Activation::identity, stream);
  softmax(pair, pair, 1, stream);
}

}  // namespace statescope::cuda

// What the kernels that prepare chunks of the delta rule share (delta_chunk.h): rows of any type as bf16, and T, the inverse. Included by
// .cu files alone.
#pragma once

#include "kernels/cuda/common/delta_chunk.h"

namespace statescope::cuda::delta {

constexpr int warps = row_blocks, threads = warps * lanes;  // that compute T; as many again do what else there is

template <class Number>
struct alignas(4 * sizeof(Number)) Quad {
  Number x[4];
};
__device__ inline float number(float x) { return x; }
__device__ inline float number(Bf16 x) { return __bfloat162float(x); }

/// visit(row, column, four numbers as bf16) of `quads` · 4 columns of 64 rows, which begin at data, by `threads` threads. What lies behind
/// the n-th row or the `given` first columns is 0.
template <class Number, int quads, class Visit>
__device__ void visit_rows(const Number* data, const RawOperand& x, int n, std::int64_t given, const Visit& visit) {
  constexpr int together = 8, steps = chunk_rows * quads / threads, rows = threads / quads;  // rows: a step
  const int first = static_cast<int>(threadIdx.x) % threads / quads, c = static_cast<int>(threadIdx.x) % quads * 4;
  const auto stride = static_cast<int>(x.stride);
  data += first * x.stride + c;
  for (int begin = 0; begin < steps; begin += together) {
    Quad<Number> held[together];
#pragma unroll
    for (int i = 0; i < together; ++i) {
      const Number* from = data + (begin + i) * rows * stride;
      held[i] = {};
      if (first + (begin + i) * rows >= n) continue;
      if (x.by_fours) {
        if (c < given) held[i] = *reinterpret_cast<const Quad<Number>*>(from);
      } else {
        for (int j = 0; j < 4; ++j) {
          if (c + j < given) held[i].x[j] = from[j];
        }
      }
    }
#pragma unroll
    for (int i = 0; i < together; ++i) {
      const Number(&y)[4] = held[i].x;
      visit(first + (begin + i) * rows, c, uint2{packed(number(y[0]), number(y[1])), packed(number(y[2]), number(y[3]))});
    }
  }
}

/// Where head h of a row of x begins.
template <class Number>
__device__ const Number* at(const RawOperand& x, std::int64_t row, std::int64_t h, std::int64_t H) {
  return static_cast<const Number*>(x.data) + row * x.stride + producer_head(h, x.heads, H) * x.width;
}

/// to, from row to_row on ← n rows of x as bf16, from `row` on.
template <class Number, int quads>
__device__ void round_rows(const Bf16Rows& to, std::int64_t to_row, const RawOperand& x, std::int64_t row, int n, std::int64_t h,
                           std::int64_t H) {
  const auto stride = static_cast<int>(to.stride), width = static_cast<int>(to.width);
  for (int first = 0; first < width; first += 4 * quads) {
    Bf16* begin = to.at(to_row, h, H) + first;
    visit_rows<Number, quads>(at<Number>(x, row, h, H) + first, x, n, x.width - first, [&](int r, int c, const uint2& four) {
      if (r < n && first + c < width) *reinterpret_cast<uint2*>(begin + r * stride + c) = four;
    });
  }
}

/// The diagonal blocks of I + L are inverted in their place, by two warps: forward substitution, a column a lane.
template <int stride>
__device__ void invert_diagonal(float* L) {
  const int first = 32 * warp() + lane() / 16 * 16, column = lane() % 16;
  float *block = L + first * stride + first, x[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    // x_i = I_i − Σ_{j<i} L_ij x_j
    float sum[4] = {};
#pragma unroll
    for (int j = 0; j < i; j += 4) {
      const float4 l = *reinterpret_cast<const float4*>(block + i * stride + j);
      sum[0] = fmaf(l.x, x[j], sum[0]);
      if (j + 1 < i) sum[1] = fmaf(l.y, x[j + 1], sum[1]);
      if (j + 2 < i) sum[2] = fmaf(l.z, x[j + 2], sum[2]);
      if (j + 3 < i) sum[3] = fmaf(l.w, x[j + 3], sum[3]);
    }
    x[i] = (column == i ? 1.F : 0.F) - ((sum[0] + sum[1]) + (sum[2] + sum[3]));
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 16; ++i) block[i * stride + column] = x[i];
}

/// A or B split into two bf16 terms (bf16x2): the rounded value, and what rounding lost.
struct Bf16x2 {
  uint4 high, low;
};
__device__ inline Bf16x2 split_a(const Block& x) {
  const uint4 a = as_a(x);
  return {a, rest_of_a(x, a)};
}
/// B of xᵀ, from x in shared memory.
template <int stride>
__device__ Bf16x2 split_b_transposed(const float* x) {
  Block block;
  block.each([&](int r, int c, float& number) { number = x[r * stride + c]; });
  const Bf16x2 a = split_a(block);
  return {as_b_transposed(a.high), as_b_transposed(a.low)};
}

/// C ← C + A B, without the product of the low terms.
__device__ inline void multiply(Block& c, const Bf16x2& a, const Bf16x2& b) {
  Block rest;
  multiply(rest, a.high, b.low);
  multiply(c, a.high, b.high);
  multiply(rest, a.low, b.high);
  for (int i = 0; i < 2; ++i) {
    for (int e = 0; e < 4; ++e) c.half[i][e] += rest.half[i][e];
  }
}

/// Block column j of T, a warp: with X = (I + L)⁻¹, X_ijᵀ = −(Σ_{j≤k<i} X_kjᵀ L_ikᵀ) X_iiᵀ and T = X diag(β). put(i, j, T_ijᵀ)
template <class Prepared, class Put>
__device__ void make_T(Prepared& s, const Put& put) {
  constexpr int stride = Prepared::L_stride;
  const int j = warp();
  const auto block_of_L = [&](int i, int k) { return s.L + 16 * i * stride + 16 * k; };
  const auto write = [&](int i, Block X) {
    X.each([&](int r, int, float& x) { x *= s.beta[16 * j + r]; });
    put(i, j, X);
  };

  Block X;
  X.each([&](int r, int c, float& x) { x = block_of_L(j, j)[c * stride + r]; });
  write(j, X);
  Bf16x2 above[row_blocks];  // of X_kjᵀ, k = j …
#pragma unroll
  for (int below = 1; below < row_blocks; ++below) {
    const int i = j + below;
    if (i >= row_blocks) break;
    above[below - 1] = split_a(X);
    Block sum;
#pragma unroll
    for (int k = 0; k < below; ++k) multiply(sum, above[k], split_b_transposed<stride>(block_of_L(i, j + k)));
    X = {};
    multiply(X, split_a(sum), split_b_transposed<stride>(block_of_L(i, i)));
    X.each([](int, int, float& x) { x = -x; });
    write(i, X);
  }
}

}  // namespace statescope::cuda::delta

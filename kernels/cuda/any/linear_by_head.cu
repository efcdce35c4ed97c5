// Products in which every head has a weight of its own, in float32: of few tokens, bound by reading the weight.
#include <cuda_fp16.h>

#include "kernels/cuda/common/numbers.h"
#include "kernels/cuda/common/operations.h"
#include "kernels/cuda/common/warp.h"

namespace statescope::cuda {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

constexpr int threads = 256, lanes = 32, warps = threads / lanes;
constexpr int tokens = 8;    // of a block
constexpr int inputs = 256;  // of each of them in shared memory at a time
constexpr int outputs_of_warp = 8, outputs_of_block = warps * outputs_of_warp;

struct Problem {
  Rows<float> y;        // [T·H, m]; transposed [T·H, n]
  Rows<const float> x;  // [T·H, n]; transposed [T·H, m]
  std::int64_t T, H, m, n;
};

/// x ← the numbers [first, first + inputs) of the block's tokens, 0 from `end` on; ends with a barrier.
__device__ void fetch(float (&x)[tokens][inputs], const Problem& p, std::int64_t token, std::int64_t first, std::int64_t end) {
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < tokens * inputs; i += threads) {
    const int t = i / inputs, c = i % inputs;
    const bool there = token + t < p.T && first + c < end;
    x[t][c] = there ? p.x.row((token + t) * p.H + blockIdx.y)[first + c] : 0;
  }
  __syncthreads();
}

/// y = W_h x. A block: 64 outputs of one head (blockIdx.y) of 8 tokens (blockIdx.z); a warp has 8 of the outputs, one after the other.
template <class Number>
__global__ void __launch_bounds__(threads) rows_kernel(Problem p, Rows<const Number> weight) {
  __shared__ float x[tokens][inputs];
  const int warp = static_cast<int>(threadIdx.x) / lanes, lane = static_cast<int>(threadIdx.x) % lanes;
  const std::int64_t h = blockIdx.y, token = std::int64_t{blockIdx.z} * tokens;
  const std::int64_t output = std::int64_t{blockIdx.x} * outputs_of_block + warp * outputs_of_warp;
  float sum[outputs_of_warp][tokens] = {};
  for (std::int64_t first = 0; first < p.n; first += inputs) {
    fetch(x, p, token, first, p.n);
#pragma unroll
    for (int o = 0; o < outputs_of_warp; ++o) {
      if (output + o >= p.m) break;
      const Number* const w = weight.row(h * p.m + output + o) + first;
      for (int c = lane; c < inputs && first + c < p.n; c += lanes) {
        const float number = to_float(w[c]);
#pragma unroll
        for (int t = 0; t < tokens; ++t) sum[o][t] = fmaf(number, x[t][c], sum[o][t]);
      }
    }
  }
#pragma unroll
  for (int o = 0; o < outputs_of_warp; ++o) {
#pragma unroll
    for (int t = 0; t < tokens; ++t) {
      const float y = sum_of_warp(sum[o][t]);
      if (lane == 0 && output + o < p.m && token + t < p.T) p.y.row((token + t) * p.H + h)[output + o] = y;
    }
  }
}

/// y = W_hᵀ x. A block: 256 outputs of one head of 8 tokens; a thread has one of the outputs.
template <class Number>
__global__ void __launch_bounds__(threads) columns_kernel(Problem p, Rows<const Number> weight) {
  __shared__ float x[tokens][inputs];
  const std::int64_t h = blockIdx.y, token = std::int64_t{blockIdx.z} * tokens, output = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  float sum[tokens] = {};
  for (std::int64_t first = 0; first < p.m; first += inputs) {
    fetch(x, p, token, first, p.m);
    if (output >= p.n) continue;
    const int count = static_cast<int>(p.m - first < inputs ? p.m - first : inputs);
#pragma unroll 4
    for (int c = 0; c < count; ++c) {
      const float number = to_float(weight.row(h * p.m + first + c)[output]);
#pragma unroll
      for (int t = 0; t < tokens; ++t) sum[t] = fmaf(number, x[t][c], sum[t]);
    }
  }
  if (output >= p.n) return;
#pragma unroll
  for (int t = 0; t < tokens; ++t) {
    if (token + t < p.T) p.y.row((token + t) * p.H + h)[output] = sum[t];
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

template <class Number>
void multiply(const LinearByHead& op, cudaStream_t stream) {
  const std::int64_t T = op.x.rows() / op.heads, m = op.weight.rows() / op.heads, n = op.weight.row_size();
  const Problem p{f32(op.y), f32(op.x), T, op.heads, m, n};
  const Rows<const Number> weight{static_cast<const Number*>(op.weight.data), op.weight.stride};
  const unsigned heads = static_cast<unsigned>(op.heads), tiles = blocks_for(T, tokens);
  if (op.transposed)
    return launch("linear_by_head", columns_kernel<Number>, {blocks_for(n, threads), heads, tiles}, threads, 0, stream, p, weight);
  launch("linear_by_head", rows_kernel<Number>, {blocks_for(m, outputs_of_block), heads, tiles}, threads, 0, stream, p, weight);
}

}  // namespace

void linear_by_head(const LinearByHead& op, cudaStream_t stream) {
  switch (op.weight.dtype) {
    case DType::f16:
      return multiply<__half>(op, stream);
    case DType::bf16:
      return multiply<__nv_bfloat16>(op, stream);
    default:
      return multiply<float>(op, stream);
  }
}

}  // namespace statescope::cuda

// Products of many rows with few outputs (gates of heads, routing, the first half of a low-rank gate) on tensor cores: bound by the reading
// of x, which a library's tiles, mostly empty, do slowly.
#include "kernels/cuda_chunk.h"
#include "kernels/cuda_linear.h"
#include "kernels/cuda_numbers.h"

namespace statescope::cuda {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

constexpr int warps = 4, rows_at_once = 16, most_outputs = 16;
constexpr int of_lane = 8, of_step = 4 * of_lane;  // inputs: 16 bytes; of a warp's step

/// A block makes 16 rows of y [T, n]; its warps share out the inputs. Four lanes have a row's 32 inputs of a step, 8 neighbours each: which
/// of them a product calls its k-th is free, if it is the same for x and the weight.
__global__ void __launch_bounds__(32 * warps)
    few_outputs_kernel(Numbers<void> y, Rows<const Bf16> x, Rows<const Bf16> weight, const float* bias, std::int64_t T, int inputs, int n) {
  __shared__ float sums[warps][rows_at_once][most_outputs + 1];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4 * 2;
  const std::int64_t first = std::int64_t{blockIdx.x} * rows_at_once;
  const auto piece = [&](const Rows<const Bf16>& from, std::int64_t row, std::int64_t count, int i) {
    return row < count && i < inputs ? *reinterpret_cast<const uint4*>(from.row(row) + i) : uint4{};
  };
  float c[2][4] = {};
#pragma unroll 4
  for (int begin = warp * of_step; begin < inputs; begin += warps * of_step) {
    const int i = begin + lane % 4 * of_lane;
    const uint4 upper = piece(x, first + g, T, i), lower = piece(x, first + g + 8, T, i);
    const uint4 w[2] = {piece(weight, g, n, i), piece(weight, g + 8, n, i)};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      multiply(c[half], {upper.x, lower.x, upper.y, lower.y}, w[half].x, w[half].y);
      multiply(c[half], {upper.z, lower.z, upper.w, lower.w}, w[half].z, w[half].w);
    }
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) sums[warp][g + i % 4 / 2 * 8][i / 4 * 8 + t + i % 2] = c[i / 4][i % 4];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < rows_at_once * most_outputs; i += 32 * warps) {
    const int row = i / most_outputs, output = i % most_outputs;
    if (first + row >= T || output >= n) continue;
    float sum = bias != nullptr ? bias[output] : 0;
    for (int w = 0; w < warps; ++w) sum += sums[w][row][output];
    y.store<1>(first + row, output, {sum});
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// launchers

bool in_pieces(ConstTensor x) {
  return x.dtype == DType::bf16 && reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0 && x.stride % of_lane == 0;
}
Rows<const Bf16> bf16_rows(ConstTensor x) { return {static_cast<const Bf16*>(x.data), x.stride}; }

}  // namespace

bool few_outputs(ConstTensor x, ConstTensor weight) {
  return weight.rows() <= most_outputs && x.row_size() % of_lane == 0 && in_pieces(x) && in_pieces(weight);
}

void linear_few_outputs(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, cudaStream_t stream) {
  launch("linear", few_outputs_kernel, blocks_for(x.rows(), rows_at_once), 32 * warps, 0, stream, numbers(y), bf16_rows(x),
         bf16_rows(weight), f32(bias).data, x.rows(), static_cast<int>(x.row_size()), static_cast<int>(weight.rows()));
}

}  // namespace statescope::cuda

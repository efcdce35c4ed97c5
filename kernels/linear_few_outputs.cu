// Products of many rows with few outputs (gates of heads, routing, the first half of a low-rank gate) on tensor cores: bound by the reading
// of x, which a library's tiles, mostly empty, do slowly.
#include "kernels/cuda_chunk.h"
#include "kernels/cuda_linear.h"
#include "kernels/cuda_numbers.h"

namespace statescope::cuda {
namespace {

// ---------------------------------------------------------------------------------------------------------------------------------------
// kernels

constexpr int warps = 4, tiles = 2, rows_at_once = 16 * tiles, most_outputs = 16;  // outputs of a product
constexpr int of_lane = 8, of_step = 4 * of_lane;                                  // inputs: 16 bytes; of a warp's step

/// One of the products of x.
struct Part {
  Numbers<void> y;
  Rows<const Bf16> weight;
  const float* bias;
  int outputs;
};
template <int parts>
struct Parts {
  Part at[parts];
};

/// A block makes 32 rows of each y [T, n]; its warps share out the inputs. Four lanes have a row's 32 inputs of a step, 8 neighbours each:
/// which of them a product calls its k-th is free, if it is the same for x and the weight.
template <int parts>
__global__ void __launch_bounds__(32 * warps)
    few_outputs_kernel(const __grid_constant__ Parts<parts> p, Rows<const Bf16> x, std::int64_t T, int inputs) {
  begin_overlapped();
  __shared__ float sums[warps][rows_at_once][parts * most_outputs + 1];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4 * 2;
  const std::int64_t first = std::int64_t{blockIdx.x} * rows_at_once;
  const auto piece = [&](const Rows<const Bf16>& from, std::int64_t row, std::int64_t count, int i) {
    return row < count && i < inputs ? *reinterpret_cast<const uint4*>(from.row(row) + i) : uint4{};
  };
  float c[tiles][parts][2][4] = {};
#pragma unroll 4
  for (int begin = warp * of_step; begin < inputs; begin += warps * of_step) {
    const int i = begin + lane % 4 * of_lane;
    uint4 upper[tiles], lower[tiles], w[parts][2];
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
      upper[tile] = piece(x, first + 16 * tile + g, T, i), lower[tile] = piece(x, first + 16 * tile + g + 8, T, i);
    }
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      const Part& of = p.at[part];
      w[part][0] = piece(of.weight, g, of.outputs, i), w[part][1] = piece(of.weight, g + 8, of.outputs, i);
    }
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
      const uint4 &a = upper[tile], &b = lower[tile];
#pragma unroll
      for (int n = 0; n < 2 * parts; ++n) {
        const uint4& right = w[n / 2][n % 2];
        multiply(c[tile][n / 2][n % 2], {a.x, b.x, a.y, b.y}, right.x, right.y);
        multiply(c[tile][n / 2][n % 2], {a.z, b.z, a.w, b.w}, right.z, right.w);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < tiles * parts * 8; ++i) {
    const int tile = i / (parts * 8), part = i / 8 % parts, half = i / 4 % 2;
    sums[warp][16 * tile + g + i % 4 / 2 * 8][(2 * part + half) * 8 + t + i % 2] = c[tile][part][half][i % 4];
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < rows_at_once * parts * most_outputs; i += 32 * warps) {
    const int row = i / (parts * most_outputs), column = i % (parts * most_outputs), output = column % most_outputs;
    const Part& of = p.at[column / most_outputs];
    if (first + row >= T || output >= of.outputs) continue;
    float sum = of.bias != nullptr ? of.bias[output] : 0;
    for (int w = 0; w < warps; ++w) sum += sums[w][row][column];
    of.y.store<1>(first + row, output, {sum});
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

void linear_few_outputs(std::span<const LinearProduct> products, ConstTensor x, cudaStream_t stream) {
  const auto start = [&]<int parts>() {
    Parts<parts> p;
    for (int i = 0; i < parts; ++i) {
      const LinearProduct& product = products[static_cast<std::size_t>(i)];
      p.at[i] = {numbers(product.y), bf16_rows(product.weight), f32(product.bias).data, static_cast<int>(product.weight.rows())};
    }
    launch_overlapped("linear", few_outputs_kernel<parts>, blocks_for(x.rows(), rows_at_once), 32 * warps, 0, stream, p, bf16_rows(x),
                      x.rows(), static_cast<int>(x.row_size()));
  };
  switch (products.size()) {
    case 1:
      return start.template operator()<1>();
    case 2:
      return start.template operator()<2>();
    default:
      return start.template operator()<static_cast<int>(most_few_outputs)>();
  }
}

}  // namespace statescope::cuda

// The forget gate of GLA from its few features: y[t, c] = max(logσ(x_t · weight_c + bias_c) / normalizer, clamp_min).
#include "kernels/cuda/common/activation.h"
#include "kernels/cuda/common/chunk.h"

namespace statescope::cuda {
namespace {

constexpr unsigned threads = 256;

struct Decay {
  float scale, clamp_min;
  __device__ float operator()(float z) const { return log_sigmoid_decay(z, scale, clamp_min); }
};

// ---- kernels -------------------------------------------------------------------------------------------------------------------------

constexpr unsigned rows_of_block = 32;

/// For any weights. A thread has column c of the rows of a block and keeps weight_c in registers, padded with 0.
template <int Rank>
__global__ void low_rank_decay_kernel(Rows<float> y, Numbers<const void> x, Numbers<const void> weight, const float* bias,
                                      std::int64_t rows, std::int64_t columns, int rank, Decay decay) {
  __shared__ alignas(16) Pack<Rank> features[rows_of_block];  // read in fours
  begin_overlapped();
  const std::int64_t first = std::int64_t{blockIdx.x} * rows_of_block, c = std::int64_t{blockIdx.y} * threads + threadIdx.x;
  const auto count = static_cast<unsigned>(min(rows - first, std::int64_t{rows_of_block}));
  for (unsigned i = threadIdx.x; i < count * Rank; i += threads) {
    const int r = static_cast<int>(i % Rank);
    features[i / Rank].at[r] = r < rank ? x.number(first + i / Rank, r) : 0;
  }
  __syncthreads();
  if (c >= columns) return;
  Pack<Rank> own;
#pragma unroll
  for (int r = 0; r < Rank; ++r) own.at[r] = r < rank ? weight.number(c, r) : 0;
  const float shift = bias != nullptr ? bias[c] : 0;
  for (unsigned t = 0; t < count; ++t) {
    float sum = shift;
#pragma unroll
    for (int r = 0; r < Rank; ++r) sum = fmaf(features[t].at[r], own.at[r], sum);
    y.row(first + t)[c] = decay(sum);
  }
}

constexpr int tile_rank = 16, tiles = 8, columns_of_warp = 8 * tiles, row_tiles = 4, rows_of_warp = 16 * row_tiles;

/// 16 features, bf16 weights: on tensor cores, exact to float32 rounding, since features are split into three bf16 terms. A warp computes
/// 64 rows of 64 columns; its lanes keep their values of the weights.
__global__ void __launch_bounds__(threads) low_rank_tiles_kernel(Rows<float> y, Rows<const float> x, Rows<const Bf16> weight,
                                                                 const float* bias, int rows, int columns, Decay decay) {
  begin_overlapped();
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4 * 2,
            across = (columns + columns_of_warp - 1) / columns_of_warp;
  const int warp = static_cast<int>(blockIdx.x * (threads / 32) + threadIdx.x / 32);
  const int first_row = warp / across * rows_of_warp, first_column = warp % across * columns_of_warp;
  unsigned b[tiles][2];
  float2 shift[tiles];
#pragma unroll
  for (int i = 0; i < tiles; ++i) {
    const int n = first_column + 8 * i;
    const Bf16* const from = weight.row(min(n + g, columns - 1)) + t;
    b[i][0] = *reinterpret_cast<const unsigned*>(from), b[i][1] = *reinterpret_cast<const unsigned*>(from + 8);
    shift[i] = bias != nullptr && n < columns ? float2{bias[n + t], bias[n + t + 1]} : float2{0, 0};
  }
#pragma unroll 1
  for (int row = first_row; row < min(first_row + rows_of_warp, rows); row += 16) {
    const float *const upper = x.row(min(row + g, rows - 1)) + t, *const lower = x.row(min(row + g + 8, rows - 1)) + t;
    const auto split = [](const float* from) { return Bf16x3(*reinterpret_cast<const float2*>(from)); };
    const Bf16x3 a[4] = {split(upper), split(lower), split(upper + 8), split(lower + 8)};
#pragma unroll
    for (int i = 0; i < tiles; ++i) {
      const int n = first_column + 8 * i;
      if (n >= columns) break;
      float c[4] = {shift[i].x, shift[i].y, shift[i].x, shift[i].y};
#pragma unroll
      for (int term = 2; term >= 0; --term)
        multiply(c, {a[0].terms[term], a[1].terms[term], a[2].terms[term], a[3].terms[term]}, b[i][0], b[i][1]);
      if (row + g < rows) *reinterpret_cast<float2*>(y.row(row + g) + n + t) = {decay(c[0]), decay(c[1])};
      if (row + g + 8 < rows) *reinterpret_cast<float2*>(y.row(row + g + 8) + n + t) = {decay(c[2]), decay(c[3])};
    }
  }
}

// ---- launchers -----------------------------------------------------------------------------------------------------------------------

/// Whether two neighbours of every row may be read at once.
bool in_pairs(ConstTensor x) { return reinterpret_cast<std::uintptr_t>(x.data) % (2 * size_of(x.dtype)) == 0 && x.stride % 2 == 0; }

bool fits_tiles(ConstTensor y, ConstTensor x, ConstTensor weight) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  return x.row_size() == tile_rank && x.dtype == DType::f32 && weight.dtype == DType::bf16 && y.row_size() % 8 == 0 &&
         y.shape.size() < most && in_pairs(y) && in_pairs(x) && in_pairs(weight);
}

}  // namespace

void low_rank_decay(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, float normalizer, float clamp_min, cudaStream_t stream) {
  const std::int64_t rank = x.row_size(), columns = y.row_size();
  if (y.rows() != x.rows() || weight.rows() != columns || weight.row_size() != rank || (bias && bias.shape.size() != columns))
    throw std::invalid_argument("low_rank_decay: " + x.shape.to_string() + " and " + weight.shape.to_string() + " do not fit");
  const Decay decay{1 / normalizer, clamp_min};
  if (fits_tiles(y, x, weight)) {
    const std::int64_t warps = blocks_for(y.rows(), rows_of_warp) * std::int64_t{blocks_for(columns, columns_of_warp)};
    return launch_overlapped("low_rank_decay", low_rank_tiles_kernel, blocks_for(warps, threads / 32), threads, 0, stream, f32(y), f32(x),
                             Rows<const Bf16>{static_cast<const Bf16*>(weight.data), weight.stride}, f32(bias).data,
                             static_cast<int>(y.rows()), static_cast<int>(columns), decay);
  }
  constexpr std::int64_t few = 16;
  const dim3 grid(blocks_for(y.rows(), rows_of_block), blocks_for(columns, threads));
  launch_overlapped("low_rank_decay", rank <= few ? low_rank_decay_kernel<few> : low_rank_decay_kernel<most_low_rank>, grid, threads, 0,
                    stream, f32(y), numbers(x), numbers(weight), f32(bias).data, y.rows(), columns, static_cast<int>(rank), decay);
}

}  // namespace statescope::cuda

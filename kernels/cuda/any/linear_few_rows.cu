// Products of a few rows with a weight, which is read once, as it is stored, at the speed of memory. Sums are float32; which thread adds
// what depends on shapes only.
#include <cuda_fp16.h>

#include <algorithm>
#include <type_traits>

#include "kernels/cuda/common/activation.h"
#include "kernels/cuda/common/linear.h"

namespace statescope::cuda {
namespace {

constexpr int warp_size = 32, most_rows = 8, most_warps = 16;
constexpr int outputs = 4;  // rows of weights that a block owns

/// 16-byte vectors of every such row that a thread has in flight; sums of many rows leave fewer registers for them.
constexpr int steps_for(int rows) { return rows > 4 ? 1 : 2; }

/// y = x · weight[0]ᵀ + bias, or silu(x · weight[0]ᵀ) ⊙ (x · weight[1]ᵀ)
struct FewRows {
  const void* weight[2];         // [out, in]
  std::int64_t weight_bytes[2];  // from one row of it to the next
  Rows<const float> x;           // [T, in]
  const float* bias;             // [out] or null
  Rows<float> y;                 // [T, out]
  int T, in, out;
};

// ---- kernels -------------------------------------------------------------------------------------------------------------------------

__device__ void widen_pair(float* w, std::uint32_t word, std::integral_constant<DType, DType::bf16>) {
  w[0] = first_of(word);
  w[1] = second_of(word);
}
__device__ void widen_pair(float* w, std::uint32_t word, std::integral_constant<DType, DType::f16>) {
  const float2 both = __half22float2(*reinterpret_cast<const __half2*>(&word));
  w[0] = both.x;
  w[1] = both.y;
}

/// What a thread loads of a weight at once: 16 bytes, with a streaming load since they are read once.
template <DType dtype, bool wide>
struct WeightVector {
  static constexpr int count = 16 / size_of(dtype), together = 4;  // values; values that are widened at a time
  uint4 words = {0, 0, 0, 0};
  __device__ void read(const char* row, int i) {
    words = __ldcs(reinterpret_cast<const uint4*>(row + i * static_cast<std::int64_t>(size_of(dtype))));
  }
  __device__ void widened(float (&w)[together], int part) const {
    if constexpr (dtype == DType::f32) {
      w[0] = __uint_as_float(words.x);
      w[1] = __uint_as_float(words.y);
      w[2] = __uint_as_float(words.z);
      w[3] = __uint_as_float(words.w);
    } else {
      widen_pair(w, part == 0 ? words.x : words.z, std::integral_constant<DType, dtype>());
      widen_pair(w + 2, part == 0 ? words.y : words.w, std::integral_constant<DType, dtype>());
    }
  }
  static __device__ void inputs(float (&x)[together], const float* from) {
    const float4 four = __ldg(reinterpret_cast<const float4*>(from));
    x[0] = four.x;
    x[1] = four.y;
    x[2] = four.z;
    x[3] = four.w;
  }
};

/// The same for rows of any alignment or length: one value.
template <DType dtype>
struct WeightVector<dtype, false> {
  static constexpr int count = 1, together = 1;
  std::uint32_t word = 0;
  __device__ void read(const char* row, int i) {
    if constexpr (dtype == DType::f32) {
      word = __ldcs(reinterpret_cast<const unsigned*>(row) + i);
    } else {
      word = __ldcs(reinterpret_cast<const unsigned short*>(row) + i);
    }
  }
  __device__ void widened(float (&w)[together], int) const {
    if constexpr (dtype == DType::f32) {
      w[0] = __uint_as_float(word);
    } else {
      float pair[2];
      widen_pair(pair, word, std::integral_constant<DType, dtype>());
      w[0] = pair[0];
    }
  }
  static __device__ void inputs(float (&x)[together], const float* from) { x[0] = __ldg(from); }
};

/// Sums each of n ≤ 32 numbers over the lanes of a warp by halving: of the numbers that two lanes hold, each goes on with half. Lane l ends
/// with the sum of number l · n / 32.
template <int n>
__device__ float sum_over_lanes(float (&x)[n], int lane) {
  int left = n;
#pragma unroll
  for (int distance = warp_size / 2; distance > 0; distance /= 2) {
    if (left == 1) {
      x[0] += __shfl_xor_sync(~0U, x[0], distance);
      continue;
    }
    left /= 2;
    const bool upper = (lane & distance) != 0;
#pragma unroll
    for (int j = 0; j < n / 2; ++j) {
      if (j >= left) break;
      const float kept = upper ? x[j + left] : x[j], given = upper ? x[j] : x[j + left];
      x[j] = kept + __shfl_xor_sync(~0U, given, distance);
    }
  }
  return x[0];
}

/// A block has `outputs` rows of the weight (gated: half as many of each weight), and its threads divide the inputs: thread i takes vectors
/// i, i + blockDim.x, ... of every row, 128 bytes of them (64 for more than 4 rows of x) in flight. x comes from L1, where all blocks of a
/// multiprocessor find it. `rows` ≥ T: what lies beyond T or `out` repeats the last row and is not written.
template <DType dtype, bool wide, int rows, bool gated>
__global__ void __launch_bounds__(most_warps* warp_size) few_rows_kernel(FewRows op) {
  using Weights = WeightVector<dtype, wide>;
  constexpr int own = gated ? outputs / 2 : outputs, steps = steps_for(rows), sums = outputs * rows;
  const int lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size, warps = blockDim.x / warp_size;
  const int apart = blockDim.x * Weights::count, first = blockIdx.x * own;

  const char* weight[outputs];
  const float* x[rows];
#pragma unroll
  for (int o = 0; o < outputs; ++o) {
    const int row = min(first + o % own, op.out - 1);
    weight[o] = static_cast<const char*>(op.weight[o / own]) + row * op.weight_bytes[o / own];
  }
#pragma unroll
  for (int t = 0; t < rows; ++t) x[t] = op.x.row(min(t, op.T - 1));

  float sum[sums] = {};  // of output o and row t at o · rows + t
  for (int begin = threadIdx.x * Weights::count; begin < op.in; begin += steps * apart) {
    Weights vectors[steps][outputs];
#pragma unroll
    for (int s = 0; s < steps; ++s) {
#pragma unroll
      for (int o = 0; o < outputs; ++o) {
        if (begin + s * apart < op.in) vectors[s][o].read(weight[o], begin + s * apart);
      }
    }
#pragma unroll
    for (int s = 0; s < steps; ++s) {
      const int i = begin + s * apart;
      if (i >= op.in) break;
#pragma unroll
      for (int part = 0; part < Weights::count / Weights::together; ++part) {
        float w[outputs][Weights::together];
#pragma unroll
        for (int o = 0; o < outputs; ++o) vectors[s][o].widened(w[o], part);
#pragma unroll
        for (int t = 0; t < rows; ++t) {
          float inputs[Weights::together];
          Weights::inputs(inputs, x[t] + i + part * Weights::together);
          // y[t, o] = Σ_i x[t, i] · weight[o, i]
#pragma unroll
          for (int o = 0; o < outputs; ++o) {
#pragma unroll
            for (int j = 0; j < Weights::together; ++j) sum[o * rows + t] = fmaf(inputs[j], w[o][j], sum[o * rows + t]);
          }
        }
      }
    }
  }

  __shared__ float parts[most_warps][sums];
  const float of_warp = sum_over_lanes(sum, lane);
  if (lane % (warp_size / sums) == 0) parts[warp][lane * sums / warp_size] = of_warp;
  __syncthreads();
  const auto total = [&](int i) {
    float all = 0;
    for (int w = 0; w < warps; ++w) all += parts[w][i];
    return all;
  };
  for (int i = threadIdx.x; i < own * rows; i += blockDim.x) {
    const int t = i % rows;
    const int o = first + i / rows;
    if (t >= op.T || o >= op.out) continue;
    float y = total(i);
    if constexpr (gated) {
      y = activated(y, Activation::silu) * total(own * rows + i);
    } else if (op.bias != nullptr) {
      y += op.bias[o];
    }
    op.y.row(t)[o] = y;
  }
}

// ---- launchers -----------------------------------------------------------------------------------------------------------------------

std::int64_t vectors_of(std::int64_t n, std::int64_t vector_bytes) { return (n + vector_bytes - 1) / vector_bytes; }

/// Warps that share the inputs of a block's outputs: as many as fill a large chip where outputs are few, no more than have something to
/// read.
int warps_for(std::int64_t blocks, std::int64_t turns) {
  constexpr std::int64_t enough = 4096;  // each has up to 4 KB in flight
  std::int64_t warps = 1;
  while (warps < most_warps && warps < turns && (warps < 4 || warps * blocks < enough)) warps *= 2;
  return static_cast<int>(warps);
}

template <DType dtype, bool wide, int rows, bool gated>
void start(const FewRows& op, cudaStream_t stream) {
  constexpr int own = gated ? outputs / 2 : outputs;
  const std::int64_t blocks = vectors_of(op.out, own),
                     turns = vectors_of(op.in, warp_size * steps_for(rows) * WeightVector<dtype, wide>::count);
  const int warps = warps_for(blocks, turns);
  launch("linear of few rows", few_rows_kernel<dtype, wide, rows, gated>, static_cast<unsigned>(blocks), warps * warp_size, 0, stream, op);
}

template <DType dtype, bool wide, bool gated>
void start_rows(const FewRows& op, cudaStream_t stream) {
  if (op.T == 1) return start<dtype, wide, 1, gated>(op, stream);
  if (op.T == 2) return start<dtype, wide, 2, gated>(op, stream);
  if (op.T <= 4) return start<dtype, wide, 4, gated>(op, stream);
  start<dtype, wide, most_rows, gated>(op, stream);
}

template <bool wide, bool gated>
void start_type(const FewRows& op, DType dtype, cudaStream_t stream) {
  if (dtype == DType::f32) return start_rows<DType::f32, wide, gated>(op, stream);
  if (dtype == DType::f16) return start_rows<DType::f16, wide, gated>(op, stream);
  start_rows<DType::bf16, wide, gated>(op, stream);
}

/// Whether every row begins at 16 bytes and consists of 16-byte vectors.
bool in_vectors(ConstTensor x) {
  constexpr std::int64_t vector_bytes = sizeof(uint4);
  const auto bytes = static_cast<std::int64_t>(size_of(x.dtype));
  return reinterpret_cast<std::uintptr_t>(x.data) % vector_bytes == 0 && x.stride * bytes % vector_bytes == 0 &&
         x.row_size() * bytes % vector_bytes == 0;
}

template <bool gated>
void start_any(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor second, ConstTensor bias, cudaStream_t stream) {
  const auto bytes = static_cast<std::int64_t>(size_of(weight.dtype));
  const FewRows op{{weight.data, second.data},
                   {weight.stride * bytes, second.stride * bytes},
                   f32(x),
                   f32(bias).data,
                   f32(y),
                   static_cast<int>(x.rows()),
                   static_cast<int>(x.row_size()),
                   static_cast<int>(weight.rows())};
  if (op.T == 0 || op.out == 0) return;
  if (in_vectors(x) && in_vectors(weight) && in_vectors(second)) return start_type<true, gated>(op, weight.dtype, stream);
  start_type<false, gated>(op, weight.dtype, stream);
}

}  // namespace

bool few_rows(ConstTensor x) { return x.rows() <= most_rows; }

void linear_few_rows(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, cudaStream_t stream) {
  start_any<false>(y, x, weight, weight, bias, stream);
}

void gated_linear_few_rows(Tensor y, ConstTensor x, ConstTensor gate, ConstTensor up, cudaStream_t stream) {
  start_any<true>(y, x, gate, up, {}, stream);
}

}  // namespace statescope::cuda

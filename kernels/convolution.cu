// The CUDA form of the short causal convolution.
#include <algorithm>

#include "kernels/cuda_activation.h"
#include "kernels/cuda_operations.h"

namespace statescope::cuda {
namespace {

// ---- kernels -------------------------------------------------------------------------------------------------------------------------

/// The operands of convolution.h. Pieces of `piece_rows` rows of a segment are worked on side by side.
struct Convolution {
  Rows<const float> x, weight;  // [rows, C], [C, w]
  const float* bias;            // [C] or null
  Rows<const float> initial_cache;
  Rows<float> final_cache, y;
  DeviceSegments segments;
  Activation act;
  std::int64_t C, w, piece_rows;
  unsigned pieces;  // of the longest segment, at least one
};

/// What a thread owns: the rows [begin, end) of channel c in a segment of `length` rows, of which `first` is the first.
struct Piece {
  std::int64_t first, length, begin, end, slot, c;
};

/// Input `t` of the thread's channel; for t < 0 those before the segment, the last of which is the last row of the cache.
__device__ float input(const Convolution& op, const Piece& own, std::int64_t t) {
  if (t < 0) return op.initial_cache.row(own.slot)[(op.w - 1 + t) * op.C + own.c];
  return __ldg(op.x.row(own.first + t) + own.c);
}

/// The inputs of an output are kept in registers and move up by one from output to output; the next few are on their way together.
template <int Taps>
__device__ void convolve(const Convolution& op, const Piece& own, float bias) {
  constexpr int together = 4;
  float weight[Taps], taps[Taps], next[together];
#pragma unroll
  for (int j = 0; j < Taps; ++j) {
    weight[j] = __ldg(op.weight.row(own.c) + j);
    taps[j] = j > 0 ? input(op, own, own.begin - Taps + j) : 0;
  }
  for (std::int64_t begin = own.begin; begin < own.end; begin += together) {
#pragma unroll
    for (int i = 0; i < together; ++i) next[i] = begin + i < own.end ? __ldg(op.x.row(own.first + begin + i) + own.c) : 0;
#pragma unroll
    for (int i = 0; i < together; ++i) {
      if (begin + i >= own.end) break;
#pragma unroll
      for (int j = 0; j + 1 < Taps; ++j) taps[j] = taps[j + 1];
      taps[Taps - 1] = next[i];
      // y[t, c] = act( bias[c] + Σ_j weight[c, j] · x[t − (w − 1) + j, c] )
      float sum = bias;
#pragma unroll
      for (int j = 0; j < Taps; ++j) sum += weight[j] * taps[j];
      op.y.row(own.first + begin + i)[own.c] = activated(sum, op.act);
    }
  }
}

/// Any number of taps.
template <>
__device__ void convolve<0>(const Convolution& op, const Piece& own, float bias) {
  for (std::int64_t t = own.begin; t < own.end; ++t) {
    float sum = bias;
    for (std::int64_t j = 0; j < op.w; ++j) sum += __ldg(op.weight.row(own.c) + j) * input(op, own, t - (op.w - 1) + j);
    op.y.row(own.first + t)[own.c] = activated(sum, op.act);
  }
}

/// The last w − 1 inputs. Where old and new cache are the same memory, oldest first reads each number before it is overwritten.
__device__ void keep_last_inputs(const Convolution& op, const Piece& own) {
  const std::int64_t past = op.w - 1;
  for (std::int64_t j = 0; j < past; ++j) op.final_cache.row(own.slot)[j * op.C + own.c] = input(op, own, own.length - past + j);
}

/// A thread owns a channel of a piece. The cache of a channel is read and then written by one thread alone, that of the segment's first
/// piece: the rows of later pieces have their w − 1 inputs before them in x.
template <int Taps>
__global__ void short_convolution_kernel(Convolution op) {
  const std::int64_t s = blockIdx.x / op.pieces, piece = blockIdx.x % op.pieces;
  const std::int64_t first = op.segments.cu_seqlens[s], length = op.segments.cu_seqlens[s + 1] - first;
  const std::int64_t c = std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x, begin = piece * op.piece_rows;
  if (c >= op.C || (piece > 0 && begin >= length)) return;
  const Piece own{first, length, begin, min(length, begin + op.piece_rows), op.segments.slot_of(s), c};
  convolve<Taps>(op, own, op.bias != nullptr ? op.bias[c] : 0);
  if (piece == 0) keep_last_inputs(op, own);
}

// ---- launchers -----------------------------------------------------------------------------------------------------------------------

void require_fit(const ShortConvolution& op) {
  const std::int64_t C = op.x.row_size(), past = op.weight.row_size() - 1;
  const bool fits = op.weight.rows() == C && past >= 0 && op.y.row_size() == C && op.y.rows() == op.x.rows() &&
                    (!op.bias || op.bias.shape.size() == C) && op.initial_cache.row_size() == past * C &&
                    op.final_cache.row_size() == past * C;
  if (!fits) {
    throw std::invalid_argument("short_convolution: x " + op.x.shape.to_string() + ", weight " + op.weight.shape.to_string() + ", y " +
                                op.y.shape.to_string() + ", caches " + op.initial_cache.shape.to_string() + " and " +
                                op.final_cache.shape.to_string());
  }
}

}  // namespace

void short_convolution(const ShortConvolution& op, const DeviceSegments& segments, cudaStream_t stream) {
  require_fit(op);
  constexpr unsigned block = 128;
  constexpr std::int64_t few_rows = 16;
  const std::int64_t C = op.x.row_size(), w = op.weight.row_size(), piece_rows = std::max(few_rows, w - 1);
  const unsigned pieces = std::max(1U, blocks_for(segments.longest, static_cast<unsigned>(piece_rows)));
  const Convolution operands{
      f32(op.x),  f32(op.weight), f32(op.bias).data, f32(op.initial_cache), f32(op.final_cache), f32(op.y), segments, op.act, C, w,
      piece_rows, pieces};
  const dim3 grid(static_cast<unsigned>(segments.count) * pieces, blocks_for(C, block));
  launch("short_convolution", w == 4 ? short_convolution_kernel<4> : short_convolution_kernel<0>, grid, block, 0, stream, operands);
}

}  // namespace statescope::cuda

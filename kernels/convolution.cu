// The CUDA form of the short causal convolution.
#include <algorithm>

#include "kernels/cuda_activation.h"
#include "kernels/cuda_numbers.h"
#include "kernels/cuda_operations.h"

namespace statescope::cuda {
namespace {

// ---- kernels -------------------------------------------------------------------------------------------------------------------------

/// The operands of convolution.h; x and y as `Rows<const void>` and `Rows<void>`. Pieces of `piece_rows` rows of a segment are worked on
/// side by side.
template <template <class> class Rows>
struct Convolution {
  Rows<const void> x;                         // [rows, C]
  Rows<void> y;                               // [rows, C]
  Numbers<const void> weight, initial_cache;  // [C, w], [slots, w − 1, C]
  const float* bias;                          // [C] or null
  Numbers<void> final_cache;
  DeviceSegments segments;
  Activation act;
  std::int64_t C, w, piece_rows;
  unsigned pieces;  // of the longest segment, at least one
};

/// What a thread owns: the rows [begin, end) of a few channels from c on, in a segment of `length` rows, of which `first` is the first.
struct Piece {
  std::int64_t first, length, begin, end, slot, c;
};

/// Input `t` of the thread's channels; for t < 0 those before the segment, the last of which is the last row of the cache.
template <int Width, class Convolution>
__device__ Pack<Width> input(const Convolution& op, const Piece& own, std::int64_t t) {
  if (t < 0) return op.initial_cache.template load<Width>(own.slot, (op.w - 1 + t) * op.C + own.c);
  return op.x.template load<Width>(own.first + t, own.c);
}

template <int Width, class Convolution>
__device__ Pack<Width> biases(const Convolution& op, const Piece& own) {
  Pack<Width> result{};
  for (int i = 0; i < Width && op.bias != nullptr; ++i) result.at[i] = op.bias[own.c + i];
  return result;
}

template <int Width, class Convolution>
__device__ void put(const Convolution& op, const Piece& own, std::int64_t t, const Pack<Width>& sum) {
  op.y.template store<Width>(own.first + t, own.c, activated(sum, op.act));
}

// Neighbours of a row of x before they are widened: bf16 ones take half as many registers.
template <int Width>
__device__ Pack<Width> as_it_lies(const Numbers<const void>& x, std::int64_t t, std::int64_t c) {
  return x.load<Width>(t, c);
}
template <int Width>
__device__ uint4 as_it_lies(const Bf16Numbers<const void>& x, std::int64_t t, std::int64_t c) {
  static_assert(Width * sizeof(__nv_bfloat16) == sizeof(uint4));
  return *reinterpret_cast<const uint4*>(static_cast<const __nv_bfloat16*>(x.data) + t * x.stride + c);
}
template <int Width>
__device__ const Pack<Width>& widened(const Pack<Width>& x) {
  return x;
}
__device__ Pack<8> widened(const uint4& x) {
  return {first_of(x.x), second_of(x.x), first_of(x.y), second_of(x.y), first_of(x.z), second_of(x.z), first_of(x.w), second_of(x.w)};
}

/// The inputs of an output are kept in registers and move up by one from output to output; while some are used, the next few are on their
/// way together.
template <int Taps, int Width, class Convolution>
__device__ void convolve(const Convolution& op, const Piece& own) {
  constexpr int together = 8;
  const Pack<Width> bias = biases<Width>(op, own);
  Pack<Taps> weight[Width];
  Pack<Width> taps[Taps];
  decltype(as_it_lies<Width>(op.x, 0, 0)) in[together], next[together];
#pragma unroll
  for (int c = 0; c < Width; ++c) weight[c] = op.weight.template load<Taps>(own.c + c, 0);
#pragma unroll
  for (int j = 0; j < Taps; ++j) taps[j] = j > 0 ? input<Width>(op, own, own.begin - Taps + j) : Pack<Width>{};
  const auto fetch = [&](std::int64_t begin) {
#pragma unroll
    for (int i = 0; i < together; ++i) next[i] = as_it_lies<Width>(op.x, own.first + min(begin + i, own.end - 1), own.c);
  };
  if (own.begin < own.end) fetch(own.begin);
  for (std::int64_t begin = own.begin; begin < own.end; begin += together) {
#pragma unroll
    for (int i = 0; i < together; ++i) in[i] = next[i];
    fetch(begin + together);
#pragma unroll
    for (int i = 0; i < together; ++i) {
      if (begin + i >= own.end) break;
#pragma unroll
      for (int j = 0; j + 1 < Taps; ++j) taps[j] = taps[j + 1];
      taps[Taps - 1] = widened(in[i]);
      // y[t, c] = act( bias[c] + Σ_j weight[c, j] · x[t − (w − 1) + j, c] )
      Pack<Width> sum = bias;
#pragma unroll
      for (int j = 0; j < Taps; ++j) {
#pragma unroll
        for (int c = 0; c < Width; ++c) sum.at[c] += weight[c].at[j] * taps[j].at[c];
      }
      put(op, own, begin + i, sum);
    }
  }
}

/// Any number of taps.
template <class Convolution>
__device__ void convolve_any(const Convolution& op, const Piece& own) {
  for (std::int64_t t = own.begin; t < own.end; ++t) {
    Pack<1> sum = biases<1>(op, own);
    for (std::int64_t j = 0; j < op.w; ++j) sum.at[0] += op.weight.number(own.c, j) * input<1>(op, own, t - (op.w - 1) + j).at[0];
    put(op, own, t, sum);
  }
}

/// The last w − 1 inputs. Where old and new cache are the same memory, oldest first reads each number before it is overwritten.
template <int Width, class Convolution>
__device__ void keep_last_inputs(const Convolution& op, const Piece& own) {
  const std::int64_t past = op.w - 1;
  for (std::int64_t j = 0; j < past; ++j) op.final_cache.store(own.slot, j * op.C + own.c, input<Width>(op, own, own.length - past + j));
}

/// A thread owns `Width` channels of a piece. The cache of a channel is read and then written by one thread alone, that of the segment's
/// first piece: the rows of later pieces have their w − 1 inputs before them in x. 0 taps: any number of them.
template <int Taps, int Width, class Convolution>
__global__ void short_convolution_kernel(Convolution op) {
  begin_overlapped();
  const std::int64_t s = blockIdx.x / op.pieces, piece = blockIdx.x % op.pieces;
  const std::int64_t first = op.segments.cu_seqlens[s], length = op.segments.cu_seqlens[s + 1] - first;
  const std::int64_t c = (std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x) * Width, begin = piece * op.piece_rows;
  if (c >= op.C || (piece > 0 && begin >= length)) return;
  const Piece own{first, length, begin, min(length, begin + op.piece_rows), op.segments.slot_of(s), c};
  if constexpr (Taps > 0) {
    convolve<Taps, Width>(op, own);
  } else {
    convolve_any(op, own);
  }
  if (piece == 0) keep_last_inputs<Width>(op, own);
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
  constexpr unsigned block = 64;
  constexpr std::int64_t few_rows = 32;
  const std::int64_t C = op.x.row_size(), w = op.weight.row_size(), piece_rows = std::max(few_rows, w - 1);
  const unsigned pieces = std::max(1U, blocks_for(segments.longest, static_cast<unsigned>(piece_rows)));
  const auto start = [&]<template <class> class Rows, int taps, int width>() {
    const Convolution<Rows> operands{Rows<const void>(numbers(op.x)),
                                     Rows<void>(numbers(op.y)),
                                     numbers(op.weight),
                                     numbers(op.initial_cache),
                                     f32(op.bias).data,
                                     numbers(op.final_cache),
                                     segments,
                                     op.act,
                                     C,
                                     w,
                                     piece_rows,
                                     pieces};
    const dim3 grid(static_cast<unsigned>(segments.count) * pieces, blocks_for(C / width, block));
    launch_overlapped("short_convolution", short_convolution_kernel<taps, width, Convolution<Rows>>, grid, block, 0, stream, operands);
  };
  constexpr int usual = 4, wide = 4, widest = 8;  // taps; channels of a thread
  if (w != usual || !in_packs(op.weight, usual)) return start.template operator()<Numbers, 0, 1>();
  const auto packs = [&](int width) {
    return C % width == 0 && in_packs(op.x, width) && in_packs(op.y, width) && in_packs(op.initial_cache, width) &&
           in_packs(op.final_cache, width);
  };
  if (op.x.dtype == DType::bf16 && op.y.dtype == DType::bf16 && packs(widest))
    return start.template operator()<Bf16Numbers, usual, widest>();
  if (!packs(wide)) return start.template operator()<Numbers, usual, 1>();
  start.template operator()<Numbers, usual, wide>();
}

}  // namespace statescope::cuda

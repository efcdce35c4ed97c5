// The CUDA form of the short causal convolution.
#include <algorithm>

#include "kernels/cuda/common/activation.h"
#include "kernels/cuda/common/numbers.h"
#include "kernels/cuda/common/operations.h"

namespace statescope::cuda {
namespace {

constexpr unsigned threads = 128;

// ---- kernels -------------------------------------------------------------------------------------------------------------------------

/// The operands of convolution.h, all with the same segments; x and y as `Rows<const void>` and `Rows<void>`. Pieces of `piece_rows` rows
/// of a segment are computed in parallel.
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

/// Several convolutions in one launch; blocks are numbered across the channels of one after the other.
constexpr int most_together = 3;
template <template <class> class Rows>
struct Convolutions {
  Convolution<Rows> of[most_together];
  unsigned end[most_together];  // of a convolution's blocks
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

// Adjacent values of a row of x as stored: bf16 ones take half as many registers.
template <int Width>
__device__ Pack<Width> as_it_lies(const Numbers<const void>& x, std::int64_t t, std::int64_t c) {
  return x.load<Width>(t, c);
}
template <int Width>
__device__ uint2 as_it_lies(const Bf16Numbers<const void>& x, std::int64_t t, std::int64_t c) {
  static_assert(Width * sizeof(__nv_bfloat16) == sizeof(uint2));
  return *reinterpret_cast<const uint2*>(static_cast<const __nv_bfloat16*>(x.data) + t * x.stride + c);
}
template <int Width>
__device__ const Pack<Width>& widened(const Pack<Width>& x) {
  return x;
}
__device__ Pack<4> widened(const uint2& x) { return {first_of(x.x), second_of(x.x), first_of(x.y), second_of(x.y)}; }

/// The inputs of an output are in registers and move up by one from output to output; while some are used, the next few are loaded.
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
template <int Taps, int Width, template <class> class Rows>
__global__ void __launch_bounds__(threads) short_convolution_kernel(const __grid_constant__ Convolutions<Rows> p) {
  begin_overlapped();
  int number = 0;
  while (blockIdx.y >= p.end[number]) ++number;
  const Convolution<Rows> op = p.of[number];
  const unsigned across = blockIdx.y - (number > 0 ? p.end[number - 1] : 0);
  const std::int64_t s = blockIdx.x / op.pieces, piece = blockIdx.x % op.pieces;
  const std::int64_t first = op.segments.cu_seqlens[s], length = op.segments.cu_seqlens[s + 1] - first;
  const std::int64_t c = (std::int64_t{across} * threads + threadIdx.x) * Width, begin = piece * op.piece_rows;
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

/// Which kernel takes it.
struct Form {
  int taps, width;  // of a thread: taps, 0 for any number; channels
  bool bf16;
  bool operator==(const Form&) const = default;
};
Form form_of(const ShortConvolution& op) {
  constexpr int usual = 4, wide = 4;
  if (op.weight.row_size() != usual || !in_packs(op.weight, usual)) return {0, 1, false};
  const bool packs = op.x.row_size() % wide == 0 && in_packs(op.x, wide) && in_packs(op.y, wide) && in_packs(op.initial_cache, wide) &&
                     in_packs(op.final_cache, wide);
  if (!packs) return {usual, 1, false};
  return {usual, wide, op.x.dtype == DType::bf16 && op.y.dtype == DType::bf16};
}

template <template <class> class Rows, int taps, int width>
void launch_together(std::span<const ShortConvolution> ops, const DeviceSegments& segments, cudaStream_t stream) {
  constexpr std::int64_t few_rows = 32;
  const std::int64_t w = ops[0].weight.row_size(), piece_rows = std::max(few_rows, w - 1);
  const unsigned pieces = std::max(1U, blocks_for(segments.longest, static_cast<unsigned>(piece_rows)));
  Convolutions<Rows> operands;
  unsigned end = 0;
  for (std::size_t i = 0; i < most_together; ++i) {
    const ShortConvolution& op = ops[std::min(i, ops.size() - 1)];
    const std::int64_t C = op.x.row_size();
    operands.of[i] = {Rows<const void>(numbers(op.x)),
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
    operands.end[i] = end = end + (i < ops.size() ? blocks_for(C / width, threads) : 0);
  }
  const dim3 grid(static_cast<unsigned>(segments.count) * pieces, end);
  launch_overlapped("short_convolution", short_convolution_kernel<taps, width, Rows>, grid, threads, 0, stream, operands);
}

}  // namespace

void short_convolutions(std::span<const ShortConvolution> ops, const DeviceSegments& segments, cudaStream_t stream) {
  for (const ShortConvolution& op : ops) require_fit(op);
  while (!ops.empty()) {
    const Form form = form_of(ops[0]);
    const auto alike = [&](const ShortConvolution& op) { return form_of(op) == form && op.weight.row_size() == ops[0].weight.row_size(); };
    const auto end = std::find_if_not(ops.begin(), ops.begin() + std::min<std::ptrdiff_t>(std::ssize(ops), most_together), alike);
    const std::span<const ShortConvolution> together(ops.begin(), end);
    if (form.taps == 0) {
      launch_together<Numbers, 0, 1>(together, segments, stream);
    } else if (form.width == 1) {
      launch_together<Numbers, 4, 1>(together, segments, stream);
    } else if (form.bf16) {
      launch_together<Bf16Numbers, 4, 4>(together, segments, stream);
    } else {
      launch_together<Numbers, 4, 4>(together, segments, stream);
    }
    ops = ops.subspan(together.size());
  }
}

}  // namespace statescope::cuda

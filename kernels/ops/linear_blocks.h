// What `linear` and `linear_rounded` share; only for them and their tests.
#pragma once

#include <algorithm>

#include "kernels/cpu/parallel.h"
#include "kernels/ops/linear.h"
#include "kernels/ops/memory_parts.h"
#include "kernels/tensor.h"

namespace statescope {

inline std::int64_t pieces_of(std::int64_t n, std::int64_t piece) { return (n + piece - 1) / piece; }

/// Throws std::invalid_argument where the shapes do not fit.
void check_linear(ConstTensor y, ConstTensor x, ConstTensor weight, ConstTensor bias);

/// Few rows: the weight is read once, as it is.
void linear_streamed(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias);

/// y[:, begin … end) by Eigen's product, of one thread.
void linear_block(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, std::int64_t begin, std::int64_t end);

/// multiply(first row, rows, begin, end) for blocks of outputs [begin, end), and of rows where there are few outputs. The blocks do not
/// depend on the number of threads, and so neither do the sums.
template <class Multiply>
void for_blocks(std::int64_t rows, std::int64_t in, std::int64_t out, const Multiply& multiply) {
  constexpr std::int64_t widened_block = 1 << 18;  // floats: what stays in a core's cache between widening and multiplying
  const std::int64_t wide = std::clamp<std::int64_t>(widened_block / std::max<std::int64_t>(in, 1), 64, 256), widths = pieces_of(out, wide);
  const std::int64_t tall = widths >= 8 ? rows : 128, heights = pieces_of(rows, tall);
  const auto piece = [&](std::int64_t i) {
    const std::int64_t begin = i / heights * wide, first = i % heights * tall;
    multiply(first, std::min(tall, rows - first), begin, std::min(out, begin + wide));
  };
  parallel_for(widths * heights, piece, rows * in * out >= 8 * worth_a_fork);
}

/// The form of `linear_rounded` for every processor: the rounded operands multiplied in float32.
void linear_rounded_portably(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias = {});

}  // namespace statescope

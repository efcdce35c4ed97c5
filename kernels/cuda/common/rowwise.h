// Kernels that apply a function to values at the same position (elementwise.cu, norms.cu, rope.cu, rows.cu): threads over a matrix.
// Included by .cu files alone.
#pragma once

#include <algorithm>

#include "kernels/cuda/common/groups.h"
#include "kernels/cuda/common/operations.h"

namespace statescope::cuda::rowwise {

constexpr unsigned most_threads = 256;  // of a block
constexpr int warp_size = 32;

// ---- in kernels ----

/// A thread's row and first column where blocks cover a matrix (`cover` below); its next column is `all_columns()` further on.
__device__ inline std::int64_t own_row() { return std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y; }
__device__ inline unsigned own_column() { return blockIdx.y * blockDim.x + threadIdx.x; }
__device__ inline unsigned all_columns() { return gridDim.y * blockDim.x; }

/// A step that takes all neighbours at once.
template <class Fn>
concept OfNeighbours = requires {
  typename Fn::TakesNeighbours;
};

/// fn(t, i, x...) of numbers i … of row t, or fn.of(x...).
template <int Width, class Fn, class... Inputs>
__device__ Pack<Width> applied(const Fn& fn, std::int64_t t, unsigned i, const Inputs&... x) {
  if constexpr (OfNeighbours<Fn>) {
    return fn.of(x...);
  } else {
    Pack<Width> out;
#pragma unroll
    for (int j = 0; j < Width; ++j) out.at[j] = fn(t, i + j, x.at[j]...);
    return out;
  }
}

/// y[t, i] = fn(t, i, x[t, i]...). A thread owns `Width` neighbours of a row at a time, reads them all, then writes: y may be any x.
template <int Width, class Output, class Fn, class... Inputs>
__global__ void map_kernel(Output y, std::int64_t rows, unsigned n, Fn fn, Inputs... x) {
  begin_overlapped();
  const std::int64_t t = own_row();
  if (t >= rows) return;
  for (unsigned begin = own_column() * Width; begin < n; begin += all_columns() * Width)
    y.template store<Width>(t, begin, applied<Width>(fn, t, begin, x.template load<Width>(t, begin)...));
}

// ---- for launchers ----

[[noreturn]] inline void fail(const char* operation, ConstTensor y, ConstTensor x) {
  throw std::invalid_argument(std::string(operation) + ": " + y.shape.to_string() + " and " + x.shape.to_string() + " do not fit");
}

inline void require_same_rows(const char* operation, ConstTensor y, ConstTensor x) {
  if (y.rows() != x.rows() || y.row_size() != x.row_size()) fail(operation, y, x);
}

inline std::int64_t last_axis(ConstTensor x) { return x.shape.rank() > 1 ? x.shape[x.shape.rank() - 1] : 1; }

/// Threads over a matrix, one a number (more in rows of millions): in a block x runs along the columns, in the grid y does.
struct Cover {
  dim3 grid{0}, block;
};

inline Cover cover(std::int64_t rows, std::int64_t n) {
  if (n == 0) return {};
  constexpr unsigned most_across = 65535;  // of a grid
  const unsigned width = blocks_for(n, blocks_for(n, most_threads)), height = most_threads / width;
  return {dim3(blocks_for(rows, height), std::min(most_across, blocks_for(n, width))), dim3(width, height)};
}

template <class... Tensors>
bool all_bf16(Tensors... x) {
  return ((x.dtype == DType::bf16) && ...);
}

/// y = fn(x...), number by number; y's rows are as long as those of every x.
template <class Fn, class... Inputs>
void map(const char* name, Tensor y, cudaStream_t stream, Fn fn, Inputs... x) {
  constexpr int wide = 8;
  const std::int64_t n = y.row_size();
  const auto start = [&]<template <class> class Rows, int width>() {
    const auto [grid, block] = cover(y.rows(), n / width);
    launch_overlapped(name, map_kernel<width, Rows<void>, Fn, std::conditional_t<true, Rows<const void>, Inputs>...>, grid, block, 0,
                      stream, Rows<void>(numbers(y)), y.rows(), static_cast<unsigned>(n), fn, Rows<const void>(numbers(ConstTensor(x)))...);
  };
  const bool packs = n % wide == 0 && in_packs(y, wide) && (in_packs(x, wide) && ...);
  if (packs && all_bf16(y, x...)) return start.template operator()<Bf16Numbers, wide>();
  packs ? start.template operator()<Numbers, wide>() : start.template operator()<Numbers, 1>();
}

}  // namespace statescope::cuda::rowwise

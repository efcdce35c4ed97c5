#include "kernels/ops/linear_by_head.h"

#include <algorithm>

#include "kernels/ops/linear.h"
#include "kernels/ops/memory_parts.h"

namespace statescope {
namespace {

/// The rows [first, first + m) of a weight as float32, `stride` apart: where they lie, or in `scratch`.
HeadRows<const float> widened(ConstTensor weight, std::int64_t first, std::int64_t m, Scratch& scratch) {
  if (weight.dtype == DType::f32) return {weight.f32(first), weight.stride};
  const std::int64_t n = weight.row_size();
  float* const rows = scratch.take(m * n);
  for (std::int64_t i = 0; i < m; ++i) widen_row(rows + i * n, weight, first + i);
  return {rows, n};
}

void multiply_head(const LinearByHead& op, std::int64_t h, std::int64_t T, std::int64_t m, std::int64_t n) {
  constexpr std::int64_t few = 4;  // so many rows are not worth packing the weight for gemm
  thread_local Scratch scratch;
  const HeadRows<const float> W = widened(op.weight, h * m, m, scratch);
  if (T > few) {
    return gemm({T, op.transposed ? n : m, op.transposed ? m : n, op.x.f32(h), op.heads * op.x.stride, false, W.data, W.stride,
                 !op.transposed, op.y.f32(h), op.heads * op.y.stride});
  }
  for (std::int64_t row = h; row < T * op.heads; row += op.heads) {
    if (op.transposed) {
      std::fill_n(op.y.f32(row), n, 0.0F);
      add_rows(op.y.f32(row), op.x.f32(row), W.data, W.stride, m, n);
    } else {
      dot_rows(op.y.f32(row), op.x.f32(row), W.data, W.stride, m, n);
    }
  }
}

}  // namespace

void check_linear_by_head(const LinearByHead& op) {
  const OperandCheck check("linear_by_head");
  const Shape& weight = op.weight.shape;
  check.require(op.heads >= 1 && weight.rank() == 2 && weight[0] % op.heads == 0, "weight",
                "found " + weight.to_string() + ", expected rows for each of " + std::to_string(op.heads) + " heads");
  check.require(op.weight.dtype != DType::i32 && op.weight.dtype != DType::f8, "weight",
                "found " + std::string(name_of(op.weight.dtype)) + ", expected float32, float16 or bfloat16");
  const std::int64_t rows = op.x.rows(), m = weight[0] / op.heads, n = weight[1];
  check.require(rows % op.heads == 0, "x", "found " + std::to_string(rows) + " rows, expected one for each head of every token");
  check.tensor("x", op.x, {rows, op.transposed ? m : n});
  check.tensor("y", op.y, {rows, op.transposed ? n : m});
}

void linear_by_head(const LinearByHead& op) {
  check_linear_by_head(op);
  const std::int64_t T = op.x.rows() / op.heads, m = op.weight.rows() / op.heads, n = op.weight.row_size();
  parallel_for(
      op.heads, [&](std::int64_t h) { multiply_head(op, h, T, m, n); }, op.x.rows() * m * n >= worth_a_fork);
}

}  // namespace statescope

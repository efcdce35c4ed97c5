// Matrix products. Weights stay as they are on disk (float32, float16, bfloat16, or float8 with scales); sums are float32.
#pragma once

#include "kernels/tensor.h"

namespace statescope {

/// y[t] = x[t] · weightᵀ + bias     (weight as stored: [out, in])
/// y [T, out] float32; x [T, in] float32; weight [out, in] of any float type, at any byte alignment that its type allows;
/// bias [out] float32 or absent. y and x must not overlap. Few rows stream the weight once (limited by memory bandwidth); many rows go
/// through Eigen's product in blocks. The result of a row does not depend on the number of threads.
void linear(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias = {});

/// Row `t` of a matrix of any float type as float32, y [row_size].
void widen_row(float* y, ConstTensor matrix, std::int64_t t);

/// The same of x and weight rounded to bfloat16 (ties to even), sums in float32: by the processor's own products of this type where it has
/// them (bfloat16_product.h), else in float32. The result of a row does not depend on the number of threads.
void linear_rounded(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias = {});

/// y[t] = table[ids[t]]: y [T, D] float32, table [vocabulary, D] of any float type. Throws std::out_of_range for a foreign id.
void embed(Tensor y, ConstTensor table, const std::int32_t* ids);

/// C = alpha · op(A) op(B) + beta · C in float32, all row-major with leading dimensions lda, ldb, ldc; op transposes if asked.
/// op(A) is m × k, op(B) is k × n, C is m × n. With beta = 0, C is written without being read. One thread.
struct Gemm {
  std::int64_t m, n, k;
  const float* a;
  std::int64_t lda;
  bool transpose_a;
  const float* b;
  std::int64_t ldb;
  bool transpose_b;
  float* c;
  std::int64_t ldc;
  float alpha = 1, beta = 0;
};
void gemm(const Gemm& product);

/// The instruction set that the products run on here: "AVX-512", "AVX2", "SSE2", …
const char* instruction_set();

/// Reads `bytes` bytes once with the threads that `linear` uses, and nothing else: the bandwidth that a weight product is measured against.
/// Returns a checksum, so that the reading cannot be left out.
std::uint64_t stream_read(const void* data, std::size_t bytes);

}  // namespace statescope

// What logits say about the next token, on the device: a block for each row.
#include <limits>

#include "kernels/cuda/common/rowwise.h"
#include "kernels/cuda/common/warp.h"

namespace statescope::cuda {
namespace {

using namespace rowwise;

/// Combines term(i) of the numbers i < n of a row, which the threads of a block share; all of them get the result.
template <class Combine, class Term>
__device__ float over_row(std::int64_t n, float none, Combine combine, Term term) {
  float x = none;
  for (std::int64_t i = threadIdx.x; i < n; i += most_threads) x = combine(x, term(i));
  return combined<most_threads>(x, combine);
}

/// The largest number; NaN where there is one.
struct LargestOrNan {
  __device__ float operator()(float a, float b) const { return a > b || isnan(a) ? a : b; }
};

/// What turns the logits z [n] of a block's row into probabilities: p = exp(z − largest) / sum.
struct Exponents {
  float largest, sum;
  __device__ Exponents(const float* z, std::int64_t n) {
    largest = over_row(n, -std::numeric_limits<float>::infinity(), LargestOrNan(), [=](std::int64_t i) { return z[i]; });
    sum = over_row(n, 0.0F, Plus(), [=, m = largest](std::int64_t i) { return expf(z[i] - m); });
  }
  __device__ float probability(float z) const { return expf(z - largest) / sum; }
};

__global__ void next_token_nll_kernel(Rows<float> nll, Rows<const float> logits, const std::int32_t* ids, std::int64_t n) {
  begin_overlapped();
  const std::int64_t t = blockIdx.x;
  const float* z = logits.row(t);
  const Exponents of(z, n);
  if (threadIdx.x == 0) *nll.row(t) = logf(of.sum) - (z[ids[t]] - of.largest);
}

__global__ void total_variation_kernel(Rows<float> distance, Rows<const float> a, Rows<const float> b, std::int64_t n) {
  begin_overlapped();
  const std::int64_t t = blockIdx.x;
  const float *x = a.row(t), *y = b.row(t);
  const Exponents of_x(x, n), of_y(y, n);
  const float sum = over_row(n, 0.0F, Plus(), [=](std::int64_t i) { return fabsf(of_x.probability(x[i]) - of_y.probability(y[i])); });
  if (threadIdx.x == 0) *distance.row(t) = sum / 2;
}

__global__ void row_norms_kernel(Rows<float> norms, Rows<const float> x, std::int64_t n) {
  begin_overlapped();
  const std::int64_t t = blockIdx.x;
  const float* row = x.row(t);
  const float squares = over_row(n, 0.0F, Plus(), [=](std::int64_t i) { return row[i] * row[i]; });
  if (threadIdx.x == 0) *norms.row(t) = sqrtf(squares);
}

}  // namespace

void next_token_nll(Tensor nll, ConstTensor logits, const std::int32_t* device_ids, cudaStream_t stream) {
  launch_overlapped("next_token_nll", next_token_nll_kernel, static_cast<unsigned>(logits.rows()), most_threads, 0, stream, f32(nll),
                    f32(logits), device_ids, logits.row_size());
}

void total_variation(Tensor distance, ConstTensor a, ConstTensor b, cudaStream_t stream) {
  launch_overlapped("total_variation", total_variation_kernel, static_cast<unsigned>(a.rows()), most_threads, 0, stream, f32(distance),
                    f32(a), f32(b), a.row_size());
}

void row_norms(Tensor norms, ConstTensor x, cudaStream_t stream) {
  launch_overlapped("row_norms", row_norms_kernel, static_cast<unsigned>(x.rows()), most_threads, 0, stream, f32(norms), f32(x),
                    x.row_size());
}

}  // namespace statescope::cuda

// Matrix products on a CUDA device.
#pragma once

#include <cublasLt.h>

#include <map>
#include <tuple>

#include "kernels/cuda.h"
#include "kernels/device.h"

namespace statescope::cuda {

/// Owns cuBLASLt's handle, its workspace and, for every shape met, the algorithm it chose. Of one stream.
class Products {
 public:
  Products();
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// linear.h; all float32.
  void linear(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, cudaStream_t stream);

 private:
  using Key =
      std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool>;  // T, in, out, strides of x and y, bias
  cublasLtHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  std::map<Key, cublasLtMatmulAlgo_t> algorithms_;
};

/// y [n] float32 = x [n] of float16 or bfloat16
void widen(float* y, const void* x, DType dtype, std::int64_t n, cudaStream_t stream);

}  // namespace statescope::cuda

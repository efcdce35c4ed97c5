// Matrix products by cuBLASLt, in float32 throughout (no TF32). Algorithms are asked for once a shape.
#include <cuda_fp16.h>

#include "kernels/cuda_linear.h"

namespace statescope::cuda {
namespace {

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw std::bad_alloc();
  if (status != CUBLAS_STATUS_SUCCESS) throw DeviceError(std::string("cuda: ") + what + ": " + cublasLtGetStatusString(status));
}

/// Row-major x [rows, columns], rows `stride` apart, as the column-major matrix that cuBLASLt sees: columns × rows.
struct Layout {
  cublasLtMatrixLayout_t handle = nullptr;
  Layout(std::int64_t rows, std::int64_t columns, std::int64_t stride) {
    check(cublasLtMatrixLayoutCreate(&handle, CUDA_R_32F, static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows), stride),
          "a matrix layout");
  }
  ~Layout() { cublasLtMatrixLayoutDestroy(handle); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
};

struct Product {
  cublasLtMatmulDesc_t handle = nullptr;
  Product() {
    check(cublasLtMatmulDescCreate(&handle, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a product");
    set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);  // the weight [out, in]
  }
  ~Product() { cublasLtMatmulDescDestroy(handle); }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  template <class Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    check(cublasLtMatmulDescSetAttribute(handle, attribute, &value, sizeof value), "a product's attribute");
  }
};

struct Preference {
  cublasLtMatmulPreference_t handle = nullptr;
  explicit Preference(std::size_t workspace) {
    check(cublasLtMatmulPreferenceCreate(&handle), "a preference");
    check(cublasLtMatmulPreferenceSetAttribute(handle, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace),
          "a preference");
    // Rows may begin anywhere.
    constexpr std::uint32_t alignment = sizeof(float);
    for (const auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                                 CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      check(cublasLtMatmulPreferenceSetAttribute(handle, attribute, &alignment, sizeof alignment), "a preference");
  }
  ~Preference() { cublasLtMatmulPreferenceDestroy(handle); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
};

constexpr std::size_t workspace_bytes = 32 << 20;

}  // namespace

Products::Products() {
  check(cublasLtCreate(&handle_), "cuBLASLt");
  cuda::check(cudaMalloc(&workspace_, workspace_bytes), "cuBLASLt's workspace");
}

Products::~Products() {
  cudaFree(workspace_);
  cublasLtDestroy(handle_);
}

void Products::linear(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, cudaStream_t stream) {
  const std::int64_t T = x.rows(), in = x.row_size(), out = weight.rows();
  if (weight.row_size() != in || y.rows() != T || y.row_size() != out || (bias && bias.shape.size() != out))
    throw std::invalid_argument("linear: y " + y.shape.to_string() + ", x " + x.shape.to_string() + ", weight " + weight.shape.to_string());
  if (T == 0) return;
  // y = x · weightᵀ is yᵀ [out × T] = weight [out × in] · xᵀ [in × T] in column-major order.
  Product product;
  if (bias) {
    product.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    product.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(bias.f32()));
  }
  const Layout a(out, in, weight.stride), b(T, in, x.stride), c(T, out, y.stride);
  const Key key{T, in, out, x.stride, y.stride, static_cast<bool>(bias)};
  auto found = algorithms_.find(key);
  if (found == algorithms_.end()) {
    const Preference preference(workspace_bytes);
    cublasLtMatmulHeuristicResult_t best{};
    int count = 0;
    check(cublasLtMatmulAlgoGetHeuristic(handle_, product.handle, a.handle, b.handle, c.handle, c.handle, preference.handle, 1, &best,
                                         &count),
          "the choice of a product's algorithm");
    if (count == 0)
      throw DeviceError("cuda: cuBLASLt has no algorithm for a product of " + x.shape.to_string() + " and " + weight.shape.to_string());
    found = algorithms_.emplace(key, best.algo).first;
  }
  constexpr float one = 1, zero = 0;
  check(cublasLtMatmul(handle_, product.handle, &one, weight.f32(), a.handle, x.f32(), b.handle, &zero, y.f32(), c.handle, y.f32(),
                       c.handle, &found->second, workspace_, workspace_bytes, stream),
        "a product");
}

// ---- kernels -------------------------------------------------------------------------------------------------------------------------

namespace {

/// A bfloat16 is the upper half of a float32.
__device__ float widened_bf16(std::uint16_t x) { return __uint_as_float(static_cast<std::uint32_t>(x) << 16); }

/// One thread a number.
template <DType dtype>
__global__ void widen_kernel(float* __restrict__ y, const void* __restrict__ x, std::int64_t n) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if constexpr (dtype == DType::bf16) y[i] = widened_bf16(static_cast<const std::uint16_t*>(x)[i]);
  if constexpr (dtype == DType::f16) y[i] = __half2float(static_cast<const __half*>(x)[i]);
}

}  // namespace

// ---- launchers -----------------------------------------------------------------------------------------------------------------------

void widen(float* y, const void* x, DType dtype, std::int64_t n, cudaStream_t stream) {
  constexpr unsigned block = 256;
  const auto kernel = dtype == DType::bf16 ? widen_kernel<DType::bf16> : widen_kernel<DType::f16>;
  launch("widen", kernel, blocks_for(n, block), block, 0, stream, y, x, n);
}

}  // namespace statescope::cuda

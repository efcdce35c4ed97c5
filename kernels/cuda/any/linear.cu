// Matrix products of many rows by cuBLASLt, conversions of their operands to one type, and embeddings.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <limits>

#include "kernels/cuda/common/linear.h"
#include "kernels/cuda/common/numbers.h"
#include "kernels/cuda/common/operations.h"

namespace statescope::cuda {
namespace {

constexpr unsigned threads = 256;
constexpr int warp_size = 32, numbers_of_warp = 4 * warp_size;
constexpr std::int64_t row_alignment = 16;  // bytes, of rows in scratch

// ---- kernels -------------------------------------------------------------------------------------------------------------------------

__device__ void store(float* y, float x) { *y = x; }
__device__ void store(__nv_bfloat16* y, float x) { *y = __float2bfloat16_rn(x); }

/// `width` neighbours, read or written at once.
template <class Number, int width>
struct alignas(sizeof(Number) * width) Neighbours {
  Number at[width];
};

/// y[t, i] = x[t, i] in the type of y. A block owns 256 · width columns of row t, a thread `width` neighbours.
template <int width, class To, class From>
__global__ void convert_kernel(Rows<To> y, std::int64_t n, Rows<const From> x) {
  const std::int64_t t = blockIdx.x, i = (std::int64_t{blockIdx.y} * threads + threadIdx.x) * width;
  if (i >= n) return;
  const auto in = *reinterpret_cast<const Neighbours<From, width>*>(x.row(t) + i);
  Neighbours<To, width> out;
#pragma unroll
  for (int j = 0; j < width; ++j) store(&out.at[j], to_float(in.at[j]));
  *reinterpret_cast<Neighbours<To, width>*>(y.row(t) + i) = out;
}

/// y[t, i] = table[ids[t], i]. A block owns row t.
template <class Stored>
__global__ void embed_kernel(Rows<float> y, Rows<const Stored> table, const std::int32_t* ids, std::int64_t n) {
  const std::int64_t t = blockIdx.x;
  const Stored* from = table.row(ids[t]);
  for (std::int64_t i = threadIdx.x; i < n; i += threads) y.row(t)[i] = to_float(from[i]);
}

/// y[i] = row[i]. A block is a warp, so that it fits beside a persistent kernel that is running.
template <class Stored>
__global__ void __launch_bounds__(warp_size) embed_one_kernel(float* y, const Stored* row, std::int64_t n) {
  const std::int64_t begin = std::int64_t{blockIdx.x} * numbers_of_warp + threadIdx.x;
  constexpr int of_lane = numbers_of_warp / warp_size;
  if (const std::int64_t own = begin + (of_lane - 1) * threadIdx.x; own < n) prefetch(row + own);
  begin_overlapped();
#pragma unroll
  for (int j = 0; j < numbers_of_warp; j += warp_size) {
    if (begin + j < n) y[begin + j] = to_float(row[begin + j]);
  }
}

// ---- launchers -----------------------------------------------------------------------------------------------------------------------

template <class Number>
Rows<const Number> rows_of(ConstTensor x) {
  return {static_cast<const Number*>(x.data), x.stride};
}

/// visit(Number()) with a number of that type.
template <class Visit>
void with_type(DType type, const Visit& visit) {
  if (type == DType::f32) return visit(float());
  if (type == DType::f16) return visit(__half());
  visit(__nv_bfloat16());
}

/// y = x, numbers of type To from numbers of type From.
template <class To, class From>
void convert(Tensor y, ConstTensor x, cudaStream_t stream) {
  constexpr int wide = 4;
  const auto in_fours = [](ConstTensor z) {
    const auto bytes = static_cast<std::int64_t>(wide * size_of(z.dtype));
    return reinterpret_cast<std::uintptr_t>(z.data) % bytes == 0 && z.stride % wide == 0 && z.row_size() % wide == 0;
  };
  const bool packs = in_fours(y) && in_fours(x);
  const dim3 grid(static_cast<unsigned>(y.rows()), blocks_for(y.row_size(), threads * (packs ? wide : 1)));
  launch("conversion", packs ? convert_kernel<wide, To, From> : convert_kernel<1, To, From>, grid, threads, 0, stream,
         Rows<To>{static_cast<To*>(y.data), y.stride}, y.row_size(), rows_of<From>(x));
}

void require_table(Tensor y, ConstTensor table) {
  if (y.row_size() != table.row_size() || table.dtype == DType::i32 || table.dtype == DType::f8)
    throw std::invalid_argument("embed: y " + y.shape.to_string() + ", table " + table.shape.to_string());
}

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw std::bad_alloc();
  if (status != CUBLAS_STATUS_SUCCESS) throw DeviceError(std::string("cuda: ") + what + ": " + cublasLtGetStatusString(status));
}

cudaDataType_t blas_type(DType dtype) { return dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F; }

/// Row-major x [rows, columns], rows `stride` apart, as the column-major matrix that cuBLASLt sees: columns × rows.
struct Layout {
  cublasLtMatrixLayout_t handle = nullptr;
  explicit Layout(ConstTensor x) : Layout(x.dtype, x.rows(), x.row_size(), x.stride) {}
  Layout(DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
    check(cublasLtMatrixLayoutCreate(&handle, blas_type(dtype), static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows),
                                     rows > 1 ? stride : columns),
          "a matrix layout");
  }
  ~Layout() { cublasLtMatrixLayoutDestroy(handle); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
};

struct Product {
  cublasLtMatmulDesc_t handle = nullptr;
  Product() {
    check(cublasLtMatmulDescCreate(&handle, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a product");  // float32 operands: no TF32
    set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);                                          // the weight [out, in]
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
  Preference() { check(cublasLtMatmulPreferenceCreate(&handle), "a preference"); }
  ~Preference() { cublasLtMatmulPreferenceDestroy(handle); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
  template <class Value>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
    check(cublasLtMatmulPreferenceSetAttribute(handle, attribute, &value, sizeof value), "a preference");
  }
};

constexpr std::size_t workspace_bytes = 64 << 20;
constexpr std::int64_t tile_bytes = 32 << 20;  // of a weight in scratch, so that the product finds it in L2
constexpr std::size_t most_plans = 256;

/// The largest power of two up to 16 that divides the address; no product asks for more.
std::uint32_t alignment_of(const void* p) {
  const auto address = reinterpret_cast<std::uintptr_t>(p) | 16U;
  return static_cast<std::uint32_t>(address & (~address + 1));
}

std::int64_t padded(std::int64_t n, DType dtype) {
  const std::int64_t numbers = row_alignment / static_cast<std::int64_t>(size_of(dtype));
  return (n + numbers - 1) / numbers * numbers;
}

/// Whether every row begins at `row_alignment`, as tensor cores load 16-bit numbers.
bool rows_aligned(ConstTensor x) { return alignment_of(x.data) == row_alignment && padded(x.stride, x.dtype) == x.stride; }

/// x in type `to`, in scratch; each row begins at `row_alignment`.
Tensor converted(ConstTensor x, DType to, Scratch& scratch, cudaStream_t stream) {
  const std::int64_t stride = padded(x.row_size(), to);
  const Tensor y(scratch.take(static_cast<std::size_t>(x.rows() * stride) * size_of(to), stream), to, x.shape, stride);
  with_type(x.dtype,
            [&]<class From>(From) { to == DType::bf16 ? convert<__nv_bfloat16, From>(y, x, stream) : convert<float, From>(y, x, stream); });
  return y;
}

}  // namespace

void check_linear(ConstTensor y, ConstTensor x, ConstTensor weight, ConstTensor bias) {
  const bool fits = weight.dtype != DType::i32 && weight.dtype != DType::f8 && weight.shape.rank() == 2 && y.rows() == x.rows() &&
                    x.row_size() == weight.row_size() && y.row_size() == weight.rows() && (!bias || bias.shape.size() == weight.rows());
  if (!fits)
    throw std::invalid_argument("linear: y " + y.shape.to_string() + ", x " + x.shape.to_string() + ", weight " + weight.shape.to_string());
}

void* Scratch::take(std::size_t bytes, cudaStream_t stream) {
  if (bytes <= bytes_) return data_;
  if (data_ != nullptr) cuda::check(cudaFreeAsync(data_, stream), "scratch memory");
  data_ = nullptr;
  bytes_ = 0;
  cuda::check(cudaMallocAsync(&data_, bytes, stream), "scratch memory");
  bytes_ = bytes;
  return data_;
}

namespace {

/// The milliseconds between construction and stop() on a stream.
class Stopwatch {
 public:
  explicit Stopwatch(cudaStream_t stream) : stream_(stream) {
    for (cudaEvent_t& event : events_) cuda::check(cudaEventCreate(&event), "an event");
    cuda::check(cudaEventRecord(events_[0], stream_), "an event");
  }
  ~Stopwatch() {
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  float stop() {
    float milliseconds = 0;
    cuda::check(cudaEventRecord(events_[1], stream_), "an event");
    cuda::check(cudaEventSynchronize(events_[1]), "the work before");
    cuda::check(cudaEventElapsedTime(&milliseconds, events_[0], events_[1]), "a time");
    return milliseconds;
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t events_[2]{};
};

}  // namespace

/// Everything that the choice of an algorithm depends on. T is a power of two, at least the number of rows: a choice takes up to a
/// millisecond, and a pass that brings a layer forward to some token has a number of rows of its own.
struct Products::Shapes {
  DType operands, result;
  bool bias, adds;
  std::int64_t T, in, out, y_stride, x_stride, weight_stride;
  std::uint32_t y_alignment, x_alignment, weight_alignment, bias_alignment;
  auto operator<=>(const Shapes&) const = default;
};

/// y = x · weightᵀ is yᵀ [out × T] = weight [out × in] · xᵀ [in × T] in column-major order.
struct Products::Plan {
  Product product;
  Layout a;
  cublasLtMatmulAlgo_t algorithm{};
  float beta;  // of y as it was
  std::int64_t uses = 0;

  explicit Plan(const Shapes& s) : a(s.operands, s.out, s.in, s.weight_stride), beta(s.adds ? 1.0F : 0.0F) {
    if (s.bias) product.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  }
  void add(ConstTensor bias) {
    if (bias) product.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(bias.f32()));
  }
};

Products::Products(Precision precision) : precision_(precision) {
  check(cublasLtCreate(&handle_), "cuBLASLt");
  cuda::check(cudaMalloc(&workspace_, workspace_bytes), "cuBLASLt's workspace");
}

Products::~Products() {
  plans_.clear();
  cudaFree(workspace_);
  cublasLtDestroy(handle_);
}

cublasStatus_t Products::run(const Plan& plan, const cublasLtMatmulAlgo_t& algorithm, Tensor y, ConstTensor x, ConstTensor weight,
                             cudaStream_t stream) {
  constexpr float one = 1;
  const Layout b(x), c(y);
  return cublasLtMatmul(handle_, plan.product.handle, &one, weight.data, plan.a.handle, x.data, b.handle, &plan.beta, y.data, c.handle,
                        y.data, c.handle, &algorithm, workspace_, workspace_bytes, stream);
}

/// Milliseconds of the fastest of a few runs.
float Products::time_of(const Plan& plan, const cublasLtMatmulAlgo_t& algorithm, Tensor y, ConstTensor x, ConstTensor weight,
                        cudaStream_t stream) {
  constexpr int runs = 4;
  float least = std::numeric_limits<float>::infinity();
  for (int i = 0; i < runs; ++i) {
    Stopwatch stopwatch(stream);
    const bool runs_at_all = run(plan, algorithm, y, x, weight, stream) == CUBLAS_STATUS_SUCCESS;
    const float taken = stopwatch.stop();
    if (runs_at_all) least = std::min(least, taken);
  }
  return least;
}

/// At most as many algorithms as there is room for, the likely fastest first.
std::span<const cublasLtMatmulHeuristicResult_t> Products::guess(const Plan& plan, const Shapes& shapes,
                                                                 std::span<cublasLtMatmulHeuristicResult_t> room) {
  Preference preference;
  preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, shapes.weight_alignment);
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, shapes.x_alignment);
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, shapes.y_alignment);
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, shapes.y_alignment);
  const Layout b(shapes.operands, shapes.T, shapes.in, shapes.x_stride), c(shapes.result, shapes.T, shapes.out, shapes.y_stride);
  int count = 0;
  check(cublasLtMatmulAlgoGetHeuristic(handle_, plan.product.handle, plan.a.handle, b.handle, c.handle, c.handle, preference.handle,
                                       static_cast<int>(room.size()), room.data(), &count),
        "the choice of a product's algorithm");
  if (count == 0)
    throw DeviceError("cuda: cuBLASLt has no algorithm for a product of " + Shape{shapes.T, shapes.in}.to_string() + " and " +
                      Shape{shapes.out, shapes.in}.to_string());
  return room.first(static_cast<std::size_t>(count));
}

Products::Plan& Products::planned(const Shapes& shapes, ConstTensor bias) {
  if (const auto found = plans_.find(shapes); found != plans_.end()) {
    found->second->add(bias);
    return *found->second;
  }
  auto plan = std::make_unique<Plan>(shapes);
  plan->add(bias);  // its alignment matters
  std::array<cublasLtMatmulHeuristicResult_t, 1> first{};
  plan->algorithm = guess(*plan, shapes, first)[0].algo;
  if (plans_.size() == most_plans) plans_.clear();
  return *plans_.emplace(shapes, std::move(plan)).first->second;
}

/// The first guess of cuBLASLt is up to 15 % slower than the best of its first eight.
void Products::try_out(Plan& plan, const Shapes& shapes, Tensor y, ConstTensor x, ConstTensor weight, cudaStream_t stream) {
  std::array<cublasLtMatmulHeuristicResult_t, 8> room{};
  if (shapes.adds)  // y itself must not change
    y = Tensor(results_.take(static_cast<std::size_t>(y.rows() * y.stride) * size_of(y.dtype), stream), y.dtype, y.shape, y.stride);
  float least = std::numeric_limits<float>::infinity();
  for (const cublasLtMatmulHeuristicResult_t& candidate : guess(plan, shapes, room)) {
    const float taken = time_of(plan, candidate.algo, y, x, weight, stream);
    if (taken < least) least = taken, plan.algorithm = candidate.algo;
  }
}

/// x and weight of one type, float32 or bfloat16.
void Products::multiply_one_type(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, bool adds, cudaStream_t stream) {
  const Shapes shapes{x.dtype,
                      y.dtype,
                      static_cast<bool>(bias),
                      adds,
                      static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(x.rows()))),
                      x.row_size(),
                      weight.rows(),
                      y.stride,
                      x.stride,
                      weight.stride,
                      alignment_of(y.data),
                      alignment_of(x.data),
                      alignment_of(weight.data),
                      alignment_of(bias.data)};
  Plan& plan = planned(shapes, bias);
  // Trying algorithms out takes as long as dozens of products: worth it for many rows in shapes that recur, like those of passes over a
  // prompt, but not for a layer that is brought forward to some token.
  constexpr std::int64_t many_rows = 4096, comes_again = 8;
  if (shapes.T >= many_rows && ++plan.uses == comes_again) try_out(plan, shapes, y, x, weight, stream);
  cublasStatus_t status = run(plan, plan.algorithm, y, x, weight, stream);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) {  // by the algorithm that was chosen for more rows
    Shapes exact = shapes;
    exact.T = x.rows();
    const Plan& own = planned(exact, bias);
    status = run(own, own.algorithm, y, x, weight, stream);
  }
  check(status, "a product");
}

/// x has the type of the product. A weight of another type, or one of bfloat16 whose rows tensor cores cannot load as they lie, goes
/// through scratch, a tile of outputs at a time.
void Products::multiply(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, cudaStream_t stream) {
  if (weight.dtype == x.dtype && (weight.dtype == DType::f32 || rows_aligned(weight)))
    return multiply_one_type(y, x, weight, bias, false, stream);
  constexpr std::int64_t outputs_together = 128;
  const std::int64_t row_bytes = padded(weight.row_size(), x.dtype) * static_cast<std::int64_t>(size_of(x.dtype));
  const std::int64_t tile = std::max<std::int64_t>(tile_bytes / row_bytes / outputs_together, 1) * outputs_together;
  for (std::int64_t first = 0; first < weight.rows(); first += tile) {
    const std::int64_t count = std::min(tile, weight.rows() - first);
    const Tensor part = converted(weight.slice(first, count), x.dtype, weights_, stream);
    const ConstTensor part_bias = bias ? ConstTensor(bias.f32() + first, DType::f32, {count}) : ConstTensor();
    multiply_one_type(y.columns(first, {count}), x, part, part_bias, false, stream);
  }
}

/// y = x · weightᵀ + bias in float32, then in the type of y.
void Products::through_float32(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, DecodeQueue& queue) {
  const std::int64_t stride = padded(y.row_size(), DType::f32);
  const Tensor exact(results_.take(static_cast<std::size_t>(y.rows() * stride) * sizeof(float), queue.stream()), DType::f32, y.shape,
                     stride);
  linear(exact, x, weight, bias, queue);
  copy(y, exact, queue.stream());
}

void Products::linear(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, DecodeQueue& queue) {
  check_linear(y, x, weight, bias);
  if (y.shape.size() == 0) return;
  const bool rounded = y.dtype == DType::bf16;
  if (rounded && (few_rows(x) || bias || !rows_aligned(y))) return through_float32(y, x, weight, bias, queue);
  const Projection alone{.x = x, .norm = {}, .weight = weight, .bias = bias, .y = y, .finish = {}, .z = {}};
  if (project(std::span(&alone, 1), queue)) return;
  const cudaStream_t stream = queue.stream();
  if (few_rows(x)) return linear_few_rows(y, x.dtype == DType::f32 ? x : converted(x, DType::f32, rows_, stream), weight, bias, stream);
  const DType operands = precision_ == Precision::bfloat16 ? DType::bf16 : DType::f32;
  const bool as_it_is = x.dtype == operands && (operands == DType::f32 || rows_aligned(x));
  const ConstTensor operand = as_it_is ? x : converted(x, operands, rows_, stream);
  if (few_outputs(operand, weight)) {
    const LinearProduct alone{y, weight, bias, {}};
    return linear_few_outputs(std::span(&alone, 1), operand, stream);
  }
  multiply(y, operand, weight, bias, stream);
}

namespace {

/// Makes `whole` a product of both, if the weight and the result of `next` are adjacent to its own: for many rows, without a bias.
bool takes_in(LinearProduct& whole, const LinearProduct& next) {
  const auto end = [](ConstTensor z, std::int64_t numbers) {
    return static_cast<const std::byte*>(z.data) + numbers * static_cast<std::int64_t>(size_of(z.dtype));
  };
  const Tensor y = whole.y;
  const ConstTensor w = whole.weight;
  const bool weights_fit = next.weight.dtype == w.dtype && next.weight.row_size() == w.row_size() && w.contiguous() &&
                           next.weight.contiguous() && next.weight.data == end(w, w.shape.size());
  const bool results_fit = next.y.dtype == y.dtype && next.y.rows() == y.rows() && y.rows() > 1 && next.y.stride == y.stride &&
                           next.y.data == end(y, y.row_size());
  if (!weights_fit || !results_fit || whole.bias || next.bias) return false;
  whole.y = Tensor(y.data, y.dtype, {y.rows(), y.row_size() + next.y.row_size()}, y.stride);
  whole.weight = ConstTensor(w.data, w.dtype, {w.rows() + next.weight.rows(), w.row_size()});
  return true;
}

}  // namespace

std::vector<LinearProduct> Products::linear_together(std::span<const LinearProduct> products, ConstTensor x, DecodeQueue& queue) {
  std::vector<LinearProduct> few, others;
  for (const LinearProduct& p : products) {
    const bool is_few = !few_rows(x) && p.y.dtype == DType::f32 && few_outputs(x, p.weight) && few_outputs_end_with(p.finish);
    check_linear(p.y, x, p.weight, p.bias);
    (is_few && few.size() < most_few_outputs ? few : others).push_back(p);
  }
  if (!few.empty() && x.rows() > 0) linear_few_outputs(few, x, queue.stream());
  for (auto next = others.begin(); next != others.end();) {
    LinearProduct whole = *next++;
    while (next != others.end() && takes_in(whole, *next)) ++next;
    linear(whole.y, x, whole.weight, whole.bias, queue);
  }
  return others;
}

void Products::gated_linear(Tensor u, ConstTensor x, ConstTensor gate, ConstTensor up, Workspace& workspace, DecodeQueue& queue) {
  check_linear(u, x, gate, {});
  check_linear(u, x, up, {});
  if (u.shape.size() == 0) return;
  if (few_rows(x) && gate.dtype == up.dtype && x.dtype == DType::f32) return gated_linear_few_rows(u, x, gate, up, queue.stream());
  if (gated_linear_hopper(u, x, gate, up, queue.stream())) return;
  const Workspace::Mark mark(workspace);
  const Tensor g = workspace.tensor(u.shape, u.dtype);
  linear(g, x, gate, {}, queue);
  linear(u, x, up, {}, queue);
  cuda::gate(u, u, g, Activation::silu, queue.stream());
}

bool Products::add_linear(Tensor y, ConstTensor x, ConstTensor weight, cudaStream_t stream) {
  check_linear(y, x, weight, {});
  const auto fits = [](ConstTensor z) { return z.dtype == DType::bf16 && rows_aligned(z); };
  if (y.shape.size() == 0 || few_rows(x) || !fits(x) || !fits(weight) || y.dtype != DType::f32) return false;
  multiply_one_type(y, x, weight, {}, true, stream);
  return true;
}

void embed(Tensor y, ConstTensor table, const std::int32_t* ids, cudaStream_t stream) {
  require_table(y, table);
  with_type(table.dtype, [&]<class Stored>(Stored) {
    launch("embed", embed_kernel<Stored>, static_cast<unsigned>(y.rows()), threads, 0, stream, f32(y), rows_of<Stored>(table), ids,
           y.row_size());
  });
}

EmbeddedRow embedded_row(Tensor y, ConstTensor table, std::int32_t id) {
  require_table(y, table);
  const auto* const from = static_cast<const char*>(table.data) + id * table.stride * static_cast<std::int64_t>(size_of(table.dtype));
  return {from, table.dtype, y.f32(), y.row_size()};
}

void embed(const EmbeddedRow& row, cudaStream_t stream) {
  with_type(row.type, [&]<class Stored>(Stored) {
    launch_overlapped("embed", embed_one_kernel<Stored>, blocks_for(row.n, numbers_of_warp), warp_size, 0, stream, row.y,
                      static_cast<const Stored*>(row.from), row.n);
  });
}

}  // namespace statescope::cuda

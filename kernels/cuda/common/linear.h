// Matrix products on a CUDA device.
#pragma once

#include <cublasLt.h>

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cuda/common/decode_queue.h"
#include "kernels/device.h"
#include "kernels/ops/projection.h"
#include "kernels/workspace.h"

namespace statescope::cuda {

/// Scratch memory on the device: each call overwrites that of the call before, in the order of a stream. A larger call than any before
/// reallocates it, so a graph may be captured once all sizes have occurred.
class Scratch {
 public:
  Scratch() = default;
  ~Scratch() { cudaFree(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* take(std::size_t bytes, cudaStream_t stream);

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// How products that read the output of another product in the same launch learn that it is done: a counter on the device that is 0 before
/// and after each launch.
struct Announcements {
  unsigned* count = nullptr;

  Announcements();
  ~Announcements();
  Announcements(const Announcements&) = delete;
  Announcements& operator=(const Announcements&) = delete;
};

/// Matrix products on one stream. Weights stay in the type of the checkpoint. Few rows stream them (linear_few_rows.cu), exact to float32
/// rounding in both precisions. Many rows go through cuBLASLt: in float32 with 16-bit weights widened into scratch, a tile of outputs at a
/// time, in each call; or with both operands rounded to bfloat16 (operands of this type are taken as they are) and a result of either type.
class Products {
 public:
  explicit Products(Precision precision);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// linear.h
  void linear(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, DecodeQueue& queue);
  /// Products of one x: those with few outputs come first, in one launch, while x has just been written; then those whose weights and
  /// results are adjacent, as one product. Returns those whose epilogue is still to be done.
  std::vector<LinearProduct> linear_together(std::span<const LinearProduct> products, ConstTensor x, DecodeQueue& queue);
  /// A GEMV in one launch (hopper/linear_one_row.cu), on a device of compute capability 9.0. False, and nothing done, where a product does
  /// not fit: rows of weights that are not 16-byte vectors, several types of weights, too many products, or a product that others read
  /// which comes after one that reads another's output.
  bool project(std::span<const Projection> projections, DecodeQueue& queue);
  /// y = silu(x̂ · gateᵀ) ⊙ (x̂ · upᵀ), x̂ as in projection.h. False as above.
  bool gated_linear(Tensor y, ConstTensor x, const InputNorm& norm, ConstTensor gate, ConstTensor up, DecodeQueue& queue);
  /// u = silu(x · gateᵀ) ⊙ (x · upᵀ), u of the type of x
  void gated_linear(Tensor u, ConstTensor x, ConstTensor gate, ConstTensor up, Workspace& workspace, DecodeQueue& queue);
  /// y = y + x · weightᵀ in one product. False, and nothing done, where x is not many bf16 rows, or the weight is not of this type.
  bool add_linear(Tensor y, ConstTensor x, ConstTensor weight, cudaStream_t stream);

 private:
  struct Plan;
  struct Shapes;
  void through_float32(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, DecodeQueue& queue);
  void multiply(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, cudaStream_t stream);
  /// adds: y += x · weightᵀ
  void multiply_one_type(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, bool adds, cudaStream_t stream);
  std::span<const cublasLtMatmulHeuristicResult_t> guess(const Plan& plan, const Shapes& shapes,
                                                         std::span<cublasLtMatmulHeuristicResult_t> room);
  Plan& planned(const Shapes& shapes, ConstTensor bias);
  void try_out(Plan& plan, const Shapes& shapes, Tensor y, ConstTensor x, ConstTensor weight, cudaStream_t stream);
  cublasStatus_t run(const Plan& plan, const cublasLtMatmulAlgo_t& algorithm, Tensor y, ConstTensor x, ConstTensor weight,
                     cudaStream_t stream);
  float time_of(const Plan& plan, const cublasLtMatmulAlgo_t& algorithm, Tensor y, ConstTensor x, ConstTensor weight, cudaStream_t stream);

  Precision precision_;
  cublasLtHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  Scratch rows_, weights_, results_;
  Announcements announcements_;
  std::map<Shapes, std::unique_ptr<Plan>> plans_;
};

/// Throws std::invalid_argument if shapes or types do not fit (linear.h).
void check_linear(ConstTensor y, ConstTensor x, ConstTensor weight, ConstTensor bias);
/// Whether rows are so few that the product is bound by reading the weight.
bool few_rows(ConstTensor x);
/// linear.h for few rows.
void linear_few_rows(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, cudaStream_t stream);
/// Whether x and weight are bf16 in 16-byte vectors and outputs are so few that the product is bound by reading x.
bool few_outputs(ConstTensor x, ConstTensor weight);
/// Whether a product of few outputs can compute this epilogue.
bool few_outputs_end_with(const Finish& finish);
/// Few outputs: `most_few_outputs` products of one x in one launch.
constexpr std::size_t most_few_outputs = 3;
void linear_few_outputs(std::span<const LinearProduct> products, ConstTensor x, cudaStream_t stream);
/// hopper/swiglu.cu: u = silu(x · gateᵀ) ⊙ (x · upᵀ) of many rows in one launch, gate and up rounded to bf16 in between. False, and nothing
/// done, on a device of another compute capability than 9.0, for an operand that is not bf16 in 16-byte vectors, for less than 449 inputs,
/// or where its tiles would leave more than a quarter of the device idle.
bool gated_linear_hopper(Tensor u, ConstTensor x, ConstTensor gate, ConstTensor up, cudaStream_t stream);
/// hopper/convolved_products.cu: products of one x of many rows, with short convolutions as their epilogue, in one launch (and a small
/// one); the inputs of the convolutions are never written. Moves the products that it can compute to the front, and returns how many: none
/// on a device of another compute capability than 9.0, where there is no convolution whose inputs are wanted by nobody else, or where tiles
/// would leave more than a quarter of the device idle.
std::size_t convolved_products_first(std::span<Projection> projections, ConstTensor x);
void convolved_products_hopper(std::span<const Projection> projections, ConstTensor x, Workspace& workspace, cudaStream_t stream);
/// y = silu(x · gateᵀ) ⊙ (x · upᵀ) for few rows; gate and up of one shape and one type.
void gated_linear_few_rows(Tensor y, ConstTensor x, ConstTensor gate, ConstTensor up, cudaStream_t stream);

/// linear.h's; ids on the device.
void embed(Tensor y, ConstTensor table, const std::int32_t* ids, cudaStream_t stream);
/// One row: y [1, n] = table[id]; id must be a row of the table.
EmbeddedRow embedded_row(Tensor y, ConstTensor table, std::int32_t id);

}  // namespace statescope::cuda

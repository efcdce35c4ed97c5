// A token's decoding as chains: operations that follow one another directly are collected and become one launch (chain_hopper.cu), whose
// blocks go from one to the next as soon as what they need of its results is there, while the weights of those that come are on their way.
// Included by .cu files alone.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/cuda/common/cuda.h"
#include "kernels/tensor.h"

namespace statescope::cuda {

namespace one_row {
struct OneRow;
}
namespace memory_step {
struct Step;
}

/// y [n] = a row of a table, in float32: a token's embedding.
struct EmbeddedRow {
  const void* from = nullptr;  // null: there is none
  DType type = DType::f32;     // f32, f16 or bf16
  float* y = nullptr;
  std::int64_t n = 0;
};
/// By a launch of its own.
void embed(const EmbeddedRow& row, cudaStream_t stream);

/// The queue of a device's stream. Operations join the chain under way or are asked of the stream, which then has done the chain before.
class Chain {
 public:
  Chain();
  ~Chain();
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  /// To ask something else of it: what was collected is launched before.
  cudaStream_t stream();
  /// Launches what was collected.
  void flush();
  /// Gives memory back in the stream's order. What fails of the chain before is thrown where something is asked next.
  void free(void* memory) noexcept;
  /// There are weights in this memory, which nobody writes once products read them: until it is given back they may be read in another
  /// form (cuda_compact_weights.h).
  void hold_weights(const void* memory, std::size_t bytes);
  /// Nothing of what was collected and not launched is done.
  void drop();

  /// Products of one row (cuda_one_row.h), on a device of compute capability 9.0. False, and nothing done, where weights are not bf16,
  /// products have several inputs, or rows are no multiples of 32 numbers or have more than 8192 (4096 of one that passes a norm).
  bool add(const one_row::OneRow& op, DType type);
  /// A memory's step behind such products. False, and nothing done, where there are none right before it, or steps before it are of another
  /// form (cuda_chain_kernel.h).
  bool add(const memory_step::Step& step, bool delta_rule);

  /// Part of the launch behind it, if that is one that is repeated, else a launch of its own.
  void embed(const EmbeddedRow& row);

  /// A launch that was captured: what its graph reads lives as long as this. Called, it is done once more without the graph, behind a row
  /// that is embedded.
  using Captured = std::function<void(const EmbeddedRow&)>;
  /// Those since this was asked last.
  std::vector<Captured> take_captured();
  /// It begins while the kernels before it end.
  void repeat(const Captured& launch);

 private:
  struct Collected;
  void launch();
  void launch_row();
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<Collected> collected_;
  std::vector<Captured> captured_;
};

}  // namespace statescope::cuda

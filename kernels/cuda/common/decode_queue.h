// A token's step as few launches: operations of one row that follow one another are recorded and become one launch of a persistent kernel
// (decode/persistent_kernel.h). Its blocks go on to the next operation as soon as the values that they need are there, while the weights of
// later ones are loaded. Included by .cu files alone.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/cuda/common/cuda.h"
#include "kernels/tensor.h"

namespace statescope::cuda {

namespace one_row {
struct Gemv;
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
/// In a launch of its own.
void embed(const EmbeddedRow& row, cudaStream_t stream);

/// The queue of a device's stream. Operations of one row are recorded; whoever asks for the stream gets it after the recorded ones have
/// been launched.
class DecodeQueue {
 public:
  DecodeQueue();
  ~DecodeQueue();
  DecodeQueue(const DecodeQueue&) = delete;
  DecodeQueue& operator=(const DecodeQueue&) = delete;

  /// For any other operation: what was recorded is launched before.
  cudaStream_t stream();
  /// Launches what was recorded.
  void flush();
  /// Frees memory in the stream's order. An error of the launch before is thrown by the next call.
  void free(void* memory) noexcept;
  /// This memory holds weights, which nobody writes once products have read them: until it is freed they may be read in another form
  /// (compact_weights.h).
  void hold_weights(const void* memory, std::size_t bytes);
  /// Forgets what was recorded and not launched.
  void drop();

  /// A GEMV (one_row.h), on a device of compute capability 9.0. False, and nothing done, where weights are not bf16, products have several
  /// inputs, or rows are not a multiple of 32 values or longer than 32,768 (6,144 where they pass a norm).
  bool add(const one_row::Gemv& op, DType type);
  /// A step of a memory right after a GEMV. False, and nothing done, where there is none right before it, or where the steps before it need
  /// another variant of the kernel (StepVariant).
  bool add(const memory_step::Step& step, bool delta_rule);

  /// Part of the launch that follows if that is a repeated one, else a launch of its own.
  void embed(const EmbeddedRow& row);

  /// A launch that was captured: it keeps alive what the graph reads. Called, it is launched once more without the graph, after embedding a
  /// row.
  using Captured = std::function<void(const EmbeddedRow&)>;
  /// Those captured since the last call.
  std::vector<Captured> take_captured();
  /// It may start while the kernels before it end.
  void repeat(const Captured& launch);

 private:
  struct Recorded;
  void launch();
  void launch_embedding();
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<Recorded> recorded_;
  std::vector<Captured> captured_;
};

}  // namespace statescope::cuda

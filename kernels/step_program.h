// One token's operations as a program. Work on a single row takes less time than a launch; so operations on one row are recorded
// (`StepTrace`), put in order (`schedule_steps`), and run together by one kernel (cuda_step.cu). Plain data: nothing here needs a device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/convolution.h"
#include "kernels/decayed_outer_product.h"
#include "kernels/elementwise.h"
#include "kernels/gated_delta_rule.h"
#include "kernels/sparse_state.h"

namespace statescope {

enum class StepCode : std::uint8_t {
  // maps: number i of y depends on number i of what is read
  fill,
  copy,
  embed,
  activate,
  gate,
  add,
  scale_heads,
  divide_heads,
  log_sigmoid_decay,
  gated_delta_decay,
  softplus_clamp,
  one_minus_exp,
  convolution,
  // rows: groups of numbers that depend on each other
  inverse_root_norm,
  sum_norm,
  softmax,
  top_k,
  renormalise,
  row_sparse,
  // products
  streamed_linear,
  linear,
  // memories
  decayed_outer_product,
  gated_delta_rule,
  sparse_state,
};

/// One operation on one row. Which members mean something, and what, depends on the code (StepTrace says it for each); the rest are zero,
/// so that programs can be compared byte by byte.
struct alignas(16) StepInstruction {
  StepCode code;
  DType dtype;  // of a weight or a table
  Activation act;
  std::uint8_t followers;            // maps behind this instruction, done number by number by the thread that made the number
  std::uint8_t q_steps, k_steps;     // operations behind the followers that operand a (q), b (k) goes through when it is read
  std::uint8_t decay_steps;          // the same for d, a log decay
  std::uint8_t flags;                // of a streamed product: 1: its input is the one that the instruction before it has read
  std::int32_t n;                    // numbers of y
  std::int32_t m;                    // numbers of a group or a head, inputs of a product, taps
  std::int32_t H, K, V;              // of a state
  std::int32_t heads[5];             // of q, k, v, log_decay, beta
  std::int32_t N, writers, readers;  // partitions
  std::int32_t offset;               // turns the dealing out of work, so that every worker gets as much
  std::int64_t stride;               // of a weight's or a table's rows, in bytes
  float number[3];
  void* y;
  const void *a, *b, *c, *d, *e;
  const void* from;  // a state, before
  void* to;          // and after
  const void *gate, *selected;

  /// Of instructions, with followers and steps.
  constexpr std::int32_t size() const { return 1 + followers + q_steps + k_steps + decay_steps; }
};

/// A weight as it comes in, ahead of those who use it: rows of `weight`, or pairs of rows of `weight` and `second`.
struct StepStream {
  const void *weight, *second;
  std::int32_t row_bytes, stride_bytes, rows, offset;
};

/// Instructions of one level depend on those of earlier levels alone.
struct StepLevel {
  std::int32_t first,
      count;           // of `code`, followers and steps included (StepInstruction::size)
  std::int32_t waits;  // 0: of the same level as the one before it
};

struct StepProgram {
  std::vector<StepInstruction> code;
  std::vector<StepLevel> levels;
  std::vector<StepStream> streams;
};

/// What the kernel has room for, and how it deals out work.
struct StepLimits {
  static constexpr std::int64_t calls = 1000, streams = 256, levels = 2048, level_instructions = 24, inputs = 8192, head = 512, ids = 8;
  static constexpr int outputs_together = 4, groups_of_block = 4, warps_of_block = 16, halves_of_block = 2, columns_together = 16;
};

/// Records operations on one row. Each function returns false, and records nothing, if the operation is not of a kind or a size that the
/// kernel has; its tensors are then for others to look at.
class StepTrace {
 public:
  bool fill(Tensor x, float value);
  bool copy(Tensor dst, ConstTensor src);
  bool embed(Tensor y, ConstTensor table, const std::int32_t* ids);
  bool linear(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias);
  /// y = silu(x · gateᵀ) ⊙ (x · upᵀ)
  bool gated_linear(Tensor y, ConstTensor x, ConstTensor gate, ConstTensor up);
  bool rms_norm(Tensor y, ConstTensor x, ConstTensor weight, float eps, float offset);
  bool rms_norm_plain(Tensor y, ConstTensor x, std::int64_t group, float eps);
  bool l2_norm(Tensor y, ConstTensor x);
  bool sum_norm(Tensor y, ConstTensor x, float eps);
  bool softmax(Tensor y, ConstTensor x, float temperature);
  bool activate(Tensor y, ConstTensor x, Activation act);
  bool gate(Tensor y, ConstTensor a, ConstTensor b, Activation act);
  bool add(Tensor y, ConstTensor a, ConstTensor b, float factor);
  bool scale_heads(Tensor y, ConstTensor x, ConstTensor g, float scale);
  bool divide_heads(Tensor y, ConstTensor x, ConstTensor d, float eps);
  bool log_sigmoid_decay(Tensor y, ConstTensor x, float normalizer, float clamp_min);
  bool gated_delta_decay(Tensor y, ConstTensor a, ConstTensor A_log, ConstTensor dt_bias);
  bool softplus_clamp(Tensor y, ConstTensor x, ConstTensor dt_bias, float dt_min, float dt_max);
  bool one_minus_exp(Tensor y, ConstTensor x);
  bool top_k(Tensor ids, ConstTensor scores);
  bool renormalise(Tensor y, ConstTensor gate, ConstTensor ids);
  bool row_sparse(Tensor k, Tensor log_decay, ConstTensor z, std::int64_t topk, bool skip_decay);
  bool short_convolution(const ShortConvolution& op);
  bool decayed_outer_product(const DecayedOuterProduct& op);
  bool gated_delta_rule(const GatedDeltaRule& op);
  bool sparse_state(const SparseState& op);

  bool empty() const { return calls_.empty(); }
  /// No more fits into one program.
  bool full() const;
  std::span<const StepInstruction> calls() const { return calls_; }
  /// The tokens of the embeddings; they are not part of the calls, which are the same for every token then.
  std::span<const std::int32_t> ids() const { return ids_; }
  void clear();

 private:
  bool map(StepInstruction call, Tensor y, std::initializer_list<ConstTensor> operands);
  bool group(StepInstruction call, Tensor y, ConstTensor x, std::int64_t size, ConstTensor weight = {});
  bool record(const StepInstruction& call);

  std::vector<StepInstruction> calls_;
  std::vector<std::int32_t> ids_;
  std::int64_t weights_ = 0;
};

/// The calls in few levels, for `blocks` blocks: norms and gates are computed by those who read what they give, maps by those who made what
/// they read, where that saves a level; all memory ends as if the calls had been run one by one.
StepProgram schedule_steps(std::span<const StepInstruction> calls, int blocks);

}  // namespace statescope

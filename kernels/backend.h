// The interface between the models and a device. Mixers, model and run know only this; the CPU implements it here, other devices beside it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kernels/operation.h"
#include "kernels/workspace.h"

namespace statescope {

class DeviceRows;
class Devices;

/// A copy to the host in flight. The destructor waits for it.
class Download {
 public:
  virtual ~Download() = default;
  /// Waits until the values are in host memory. Throws DeviceError.
  virtual void wait() = 0;
};

/// Work that is repeated with the same memory: a token's step.
class Repeated {
 public:
  virtual ~Repeated() = default;
  /// Runs `work`, or repeats the operations of its last run without calling it. So work must ask for the same operations with the same
  /// memory each time; what varies lies in that memory, and nothing else that it does may matter. Work that uploads, downloads, allocates,
  /// or depends on a position is called each time. Throws what work throws.
  virtual void run(const std::function<void()>& work) = 0;
};

/// Operations are data (operation.h) that `run` takes; a device that stands before another one overrides it alone. Not for use by two
/// threads at once.
class Backend {
 public:
  virtual ~Backend() = default;

  /// One sentence: what it runs on.
  virtual std::string description() const = 0;

  /// Uninitialised memory on the device, 64-byte aligned. Throws std::bad_alloc.
  virtual Buffer allocate(std::size_t bytes) = 0;
  /// The same for weights, which are not written again once products have read them.
  virtual Buffer allocate_weights(std::size_t bytes) { return allocate(bytes); }
  /// Between device memory and host memory; both sides contiguous and of one shape.
  virtual void upload(Tensor device, ConstTensor host) = 0;
  virtual void download(Tensor host, ConstTensor device) = 0;
  /// A download that overlaps with later work: `host` gets what `device` holds now. Both sides, and what `device` holds, must last until it
  /// has been waited for. Throws std::bad_alloc.
  virtual std::unique_ptr<Download> download_later(Tensor host, ConstTensor device);
  /// Bytes that `allocate` may give now.
  virtual std::size_t free_bytes();
  /// Whether that is memory of the device alone, apart from the host's.
  virtual bool has_own_memory() const { return false; }
  /// Whether `memory` is such.
  virtual bool holds(const void* /*memory*/) const { return false; }
  /// dst ← src, which lies on `from` and is what that holds once it has done what it was asked for. Both contiguous, of one shape and type.
  /// False, and nothing done, where numbers can only go through the host.
  virtual bool receive(Tensor /*dst*/, ConstTensor /*src*/, Backend& /*from*/) { return false; }
  /// Those that it is made of (devices.h); null: it is one device.
  virtual Devices* devices() { return nullptr; }
  /// Tokens of one forward pass: enough to keep the device busy, few enough for a cancellation to be quick.
  virtual std::int64_t tokens_at_once() const { return 128; }
  /// A weight where the device reads it: itself where the device reads host memory (then `owner` keeps it alive), else a copy.
  virtual ConstTensor adopt(ConstTensor host, Buffer& owner) = 0;
  /// Whether a norm of so many rows is faster as the prologue of the next product (`project`, `swiglu`), which then adds to the residual.
  virtual bool folds_norms(std::int64_t /*rows*/) const { return false; }
  /// Whether it computes this at once, faster than products with the matrices of each expert, which the host has to choose.
  virtual bool takes(const ExpertMlps& /*op*/) const { return false; }
  /// Null where repeating is not faster than calling the work. Must be destroyed before the backend.
  virtual std::unique_ptr<Repeated> repeated() { return nullptr; }
  /// The type in which a pass over `rows` tokens keeps activations that the next product rounds anyway: bf16 or float32. Operations over
  /// rows take either, each operand for itself, and compute in float32; indices, scores of routing, decays, caches and states are always
  /// float32.
  virtual DType activation_type(std::int64_t /*rows*/) const { return DType::f32; }

  /// A contiguous copy of `rows` for a window that the same device draws (device_rows.h); null where no device draws windows, or it has no
  /// memory left.
  virtual std::shared_ptr<const DeviceRows> rows_for_window(ConstTensor /*rows*/) { return nullptr; }

  /// Computes one operation, perhaps later, but before all that is asked for after it. A device without a kernel of its own for a fused one
  /// runs its parts (fused/by_parts.h).
  virtual void run(const Operation& operation) = 0;

  // What operation.h says, each by `run`.
  void fill(Tensor x, float value);
  void copy(Tensor dst, ConstTensor src);
  void gather_rows(Tensor dst, ConstTensor src, const std::int32_t* rows);
  void scatter_add_rows(Tensor dst, ConstTensor src, const std::int32_t* rows, ConstTensor weight = {});

  void embed(Tensor y, ConstTensor table, const std::int32_t* ids);
  void linear(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias = {});
  void linear_by_head(const LinearByHead& op) { run(ops::LinearByHead{op}); }

  void rms_norm(Tensor y, ConstTensor x, ConstTensor weight, float eps, float offset = 0);
  void rms_norm_plain(Tensor y, ConstTensor x, std::int64_t group, float eps);
  void layer_norm(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, std::int64_t group, float eps);
  void l2_norm(Tensor y, ConstTensor x);
  void sum_norm(Tensor y, ConstTensor x, float eps);
  void softmax(Tensor y, ConstTensor x, float temperature = 1);
  void activate(Tensor y, ConstTensor x, Activation act);
  void gate(Tensor y, ConstTensor a, ConstTensor b, Activation act);
  void add(Tensor y, ConstTensor a, ConstTensor b, float factor = 1);
  void scale_heads(Tensor y, ConstTensor x, ConstTensor g, float scale = 1);
  void divide_heads(Tensor y, ConstTensor x, ConstTensor d, float eps);
  void log_sigmoid_decay(Tensor y, ConstTensor x, float normalizer, float clamp_min);
  void gated_delta_decay(Tensor y, ConstTensor a, ConstTensor A_log, ConstTensor dt_bias, float lower_bound = 0);
  void softplus_clamp(Tensor y, ConstTensor x, ConstTensor dt_bias, float dt_min, float dt_max);
  void one_minus_exp(Tensor y, ConstTensor x);
  void rope(Tensor y, ConstTensor x, std::int64_t first, double theta, std::int64_t rotary);
  void rope(Tensor y, ConstTensor x, std::int64_t first, const Rotation& rotation);
  void top_k(Tensor ids, ConstTensor scores);
  void renormalise(Tensor y, ConstTensor gate, ConstTensor ids);
  void score_experts(const ExpertScores& op) { run(ops::ScoreExperts{op}); }
  void expert_mlps(const ExpertMlps& op, Workspace& workspace) { run(ops::ExpertMlps{op, workspace}); }
  void row_sparse(Tensor k, Tensor log_decay, ConstTensor z, std::int64_t topk, bool skip_decay);

  void short_convolution(const ShortConvolution& op) { short_convolutions({&op, 1}); }
  void short_convolutions(std::span<const ShortConvolution> convolutions);
  void decayed_outer_product(const DecayedOuterProduct& op, std::int64_t chunk_size);
  void gated_delta_rule(const GatedDeltaRule& op, std::int64_t chunk_size);
  void selective_scan(const SelectiveScan& op) { run(ops::SelectiveScan{op}); }
  void wkv(const Wkv& op) { run(ops::Wkv{op}); }
  void log_linear_attention(const LogLinearAttention& op) { run(ops::LogLinearAttention{op}); }
  void state_space(const StateSpace& op) { run(ops::StateSpace{op}); }
  void softmax_attention(const SoftmaxAttention& op, std::int64_t chunk_size);
  void compressed_attention(const CompressedAttention& op) { run(ops::CompressedAttention{op}); }
  void choose_tokens(const TokenChoice& op) { run(ops::ChooseTokens{op}); }

  void next_token_nll(Tensor nll, ConstTensor logits, const std::int32_t* ids);
  void total_variation(Tensor distance, ConstTensor a, ConstTensor b);
  void row_norms(Tensor norms, ConstTensor x);

  void row_cosine(Tensor cosine, ConstTensor z);
  void singular_values(Tensor sigma, ConstTensor z, Workspace& workspace);

  // Fused operations
  void sparse_state(const SparseState& op, std::int64_t chunk_size, Workspace& workspace);
  void sparse_state(const SparseState& op, const SparseSources& from, std::int64_t chunk_size, Workspace& workspace);
  void linear_together(std::span<const LinearProduct> products, ConstTensor x);
  void add_linear(Tensor y, ConstTensor x, ConstTensor weight, Workspace& workspace);
  void project(std::span<const Projection> projections, Workspace& workspace);
  void swiglu(Tensor y, ConstTensor x, ConstTensor gate_proj, ConstTensor up_proj, ConstTensor down_proj, Workspace& workspace,
              const InputNorm& norm = {}, ConstTensor addend = {});
  void forget_gated_outer_product(const DecayedOuterProduct& op, const Projection& gate, std::int64_t chunk_size, Workspace& workspace);
  void unit_delta_rule(const GatedDeltaRule& op, std::int64_t chunk_size, Workspace& workspace, const InputNorm& readout = {});
  void low_rank_decay(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, float normalizer, float clamp_min);
  void sum_pair(Tensor pair, ConstTensor shared, ConstTensor sparse, ConstTensor more, Activation act);
  void softmax_pair(Tensor pair, ConstTensor shared, ConstTensor sparse, ConstTensor more);
  void add_rms_norm(Tensor y, Tensor x, ConstTensor added, ConstTensor weight, float eps, float offset = 0);
  void gated_rms_norm(Tensor y, ConstTensor x, ConstTensor weight, std::int64_t group, float eps, ConstTensor gate, Activation act);

  /// Computes q, k, gate and selected of a sparse state from `from`; `make` also its decays.
  void make_choices(const SparseSources& from);
  void make(const SparseSources& from, Workspace& workspace);

 protected:
  /// Runs a fused operation by its parts, each of them by `run`. False, and nothing done, for a single operation.
  bool run_by_parts(const Operation& operation);
};

/// The reference and the product for machines without a GPU. `threads` 0: one per core; else the whole program uses no more than
/// that while the backend lives.
std::unique_ptr<Backend> make_cpu_backend(int threads = 0);

}  // namespace statescope

// The interface between the models and a device. Mixers, model and run know only this; the CPU implements it here, other devices beside it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kernels/ops/convolution.h"
#include "kernels/ops/decayed_outer_product.h"
#include "kernels/ops/elementwise.h"
#include "kernels/ops/gated_delta_rule.h"
#include "kernels/ops/linear.h"
#include "kernels/ops/predictions.h"
#include "kernels/ops/projection.h"
#include "kernels/ops/routing.h"
#include "kernels/ops/softmax_attention.h"
#include "kernels/ops/sparse_state.h"
#include "kernels/ops/state_analysis.h"
#include "kernels/workspace.h"

namespace statescope {

class DeviceRows;

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
  /// or rotates q and k by a position is called each time. Throws what work throws.
  virtual void run(const std::function<void()>& work) = 0;
};

/// Every operation does what the header of its name says; tensors must live on this device. A `chunk_size` of 0 takes the step form, which
/// needs at most one row per segment. Not for use by two threads at once.
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
  /// Tokens of one forward pass: enough to keep the device busy, few enough for a cancellation to be quick.
  virtual std::int64_t tokens_at_once() const { return 128; }
  /// A weight where the device reads it: itself where the device reads host memory (then `owner` keeps it alive), else a copy.
  virtual ConstTensor adopt(ConstTensor host, Buffer& owner) = 0;
  /// Whether a norm of so many rows is faster as the prologue of the next product (`project`, `swiglu`), which then adds to the residual.
  virtual bool folds_norms(std::int64_t /*rows*/) const { return false; }
  /// Null where repeating is not faster than calling the work. Must be destroyed before the backend.
  virtual std::unique_ptr<Repeated> repeated() { return nullptr; }
  /// The type in which a pass over `rows` tokens keeps activations that the next product rounds anyway: bf16 or float32. Operations over
  /// rows take either, each operand for itself, and compute in float32; indices, scores of routing, decays, caches and states are always
  /// float32.
  virtual DType activation_type(std::int64_t /*rows*/) const { return DType::f32; }

  virtual void fill(Tensor x, float value) = 0;
  virtual void copy(Tensor dst, ConstTensor src) = 0;
  virtual void gather_rows(Tensor dst, ConstTensor src, const std::int32_t* rows) = 0;
  virtual void scatter_add_rows(Tensor dst, ConstTensor src, const std::int32_t* rows, ConstTensor weight = {}) = 0;

  virtual void embed(Tensor y, ConstTensor table, const std::int32_t* ids) = 0;
  virtual void linear(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias = {}) = 0;

  virtual void rms_norm(Tensor y, ConstTensor x, ConstTensor weight, float eps, float offset = 0) = 0;
  virtual void rms_norm_plain(Tensor y, ConstTensor x, std::int64_t group, float eps) = 0;
  virtual void l2_norm(Tensor y, ConstTensor x) = 0;
  virtual void sum_norm(Tensor y, ConstTensor x, float eps) = 0;
  virtual void softmax(Tensor y, ConstTensor x, float temperature = 1) = 0;
  virtual void activate(Tensor y, ConstTensor x, Activation act) = 0;
  virtual void gate(Tensor y, ConstTensor a, ConstTensor b, Activation act) = 0;
  virtual void add(Tensor y, ConstTensor a, ConstTensor b, float factor = 1) = 0;
  virtual void scale_heads(Tensor y, ConstTensor x, ConstTensor g, float scale = 1) = 0;
  virtual void divide_heads(Tensor y, ConstTensor x, ConstTensor d, float eps) = 0;
  virtual void log_sigmoid_decay(Tensor y, ConstTensor x, float normalizer, float clamp_min) = 0;
  virtual void gated_delta_decay(Tensor y, ConstTensor a, ConstTensor A_log, ConstTensor dt_bias) = 0;
  virtual void softplus_clamp(Tensor y, ConstTensor x, ConstTensor dt_bias, float dt_min, float dt_max) = 0;
  virtual void one_minus_exp(Tensor y, ConstTensor x) = 0;
  virtual void rope(Tensor y, ConstTensor x, std::int64_t first, double theta, std::int64_t rotary) = 0;
  virtual void rope(Tensor y, ConstTensor x, std::int64_t first, const Rotation& rotation) = 0;
  virtual void top_k(Tensor ids, ConstTensor scores) = 0;
  virtual void renormalise(Tensor y, ConstTensor gate, ConstTensor ids) = 0;
  virtual void row_sparse(Tensor k, Tensor log_decay, ConstTensor z, std::int64_t topk, bool skip_decay) = 0;

  void short_convolution(const ShortConvolution& op) { short_convolutions({&op, 1}); }
  /// At least one, all over the same segments.
  virtual void short_convolutions(std::span<const ShortConvolution> ops) = 0;
  virtual void decayed_outer_product(const DecayedOuterProduct& op, std::int64_t chunk_size) = 0;
  virtual void gated_delta_rule(const GatedDeltaRule& op, std::int64_t chunk_size) = 0;
  virtual void softmax_attention(const SoftmaxAttention& op, std::int64_t chunk_size) = 0;

  virtual void next_token_nll(Tensor nll, ConstTensor logits, const std::int32_t* ids) = 0;
  virtual void total_variation(Tensor distance, ConstTensor a, ConstTensor b) = 0;
  virtual void row_norms(Tensor norms, ConstTensor x) = 0;

  virtual void row_cosine(Tensor cosine, ConstTensor z) = 0;
  virtual void singular_values(Tensor sigma, ConstTensor z, Workspace& workspace) = 0;

  /// Fused operations: the defaults call the operations above; a device overrides one where a single kernel is faster.
  virtual void sparse_state(const SparseState& op, std::int64_t chunk_size, Workspace& workspace);
  /// Computes q, k, gate and selected of a sparse state from `from`; `make` also its decays.
  void make_choices(const SparseSources& from);
  void make(const SparseSources& from, Workspace& workspace);
  /// Computes them, which are the operands of op, and then op.
  virtual void sparse_state(const SparseState& op, const SparseSources& from, std::int64_t chunk_size, Workspace& workspace);
  /// Products of one x. A device may compute those as one whose weights, and whose results, are adjacent in this order.
  virtual void linear_together(std::span<const LinearProduct> products, ConstTensor x);
  /// y = y + x · weightᵀ
  virtual void add_linear(Tensor y, ConstTensor x, ConstTensor weight, Workspace& workspace);
  /// Products with their prologues and epilogues (projection.h), of one row or many. The x of one may be the y of another before it.
  virtual void project(std::span<const Projection> projections, Workspace& workspace);
  /// y = (silu(x̂ · gateᵀ) ⊙ (x̂ · upᵀ)) · downᵀ + addend; x̂ as in projection.h; addend like y or absent, may be y     (spec §1.4)
  virtual void swiglu(Tensor y, ConstTensor x, ConstTensor gate_proj, ConstTensor up_proj, ConstTensor down_proj, Workspace& workspace,
                      const InputNorm& norm = {}, ConstTensor addend = {});
  /// Computes op.log_decay, the y of `gate`, which is a ForgetGate, and then the same as `decayed_outer_product`. A device that computes
  /// decays inside the memory need not write it.
  virtual void forget_gated_outer_product(const DecayedOuterProduct& op, const Projection& gate, std::int64_t chunk_size,
                                          Workspace& workspace);
  /// The gated delta rule of L2(q) and L2(k)     (l2_norm); with a readout, a norm over heads, o becomes ô (projection.h).
  virtual void unit_delta_rule(const GatedDeltaRule& op, std::int64_t chunk_size, Workspace& workspace, const InputNorm& readout = {});
  /// y = max(logσ(x · weightᵀ + bias) / normalizer, clamp_min): the forget gate of GLA from its few features x [T, r] (spec §3.4)
  virtual void low_rank_decay(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, float normalizer, float clamp_min);
  /// pair[:, 0] = act(shared), pair[:, 1] = act(sparse + more): pair [T, 2, ...], the others [T, ...] (SSE eq. 9; spec §4.3)
  virtual void sum_pair(Tensor pair, ConstTensor shared, ConstTensor sparse, ConstTensor more, Activation act);
  /// pair[:, 0] = softmax(shared), pair[:, 1] = softmax(sparse + more) over the last axis
  virtual void softmax_pair(Tensor pair, ConstTensor shared, ConstTensor sparse, ConstTensor more);
  /// x = x + added, y = RMSNorm(x; weight), over whole rows; weight [n] or absent
  virtual void add_rms_norm(Tensor y, Tensor x, ConstTensor added, ConstTensor weight, float eps, float offset = 0);
  /// y = RMSNorm(x; weight) ⊙ act(gate), over groups of `group` numbers; weight [group] or absent     (spec §1.3)
  virtual void gated_rms_norm(Tensor y, ConstTensor x, ConstTensor weight, std::int64_t group, float eps, ConstTensor gate, Activation act);

  /// A contiguous copy of `rows` for a window that the same device draws (device_rows.h); null where no device draws windows, or it has no
  /// memory left.
  virtual std::shared_ptr<const DeviceRows> rows_for_window(ConstTensor /*rows*/) { return nullptr; }

 protected:
  /// y = finish(y)
  void finish(const LinearProduct& p);
  /// `project` of projections that have one x̂.
  virtual void project_one(std::span<const Projection> projections, ConstTensor normed_x, Workspace& workspace);
  /// y = x̂ of projection.h, of a norm that there is; y may be x.
  void apply(const InputNorm& norm, Tensor y, ConstTensor x);
  /// x̂ in the workspace, in the type of activations; x itself where there is no norm.
  ConstTensor normed(ConstTensor x, const InputNorm& norm, Workspace& workspace);
};

/// The reference and the product for machines without a GPU. `threads` 0: one per core; else the whole program uses no more than
/// that while the backend lives.
std::unique_ptr<Backend> make_cpu_backend(int threads = 0);

}  // namespace statescope

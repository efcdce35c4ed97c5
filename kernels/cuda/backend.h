// The CUDA backend: one device, one stream, every operation in its order. What chooses among the forms of the memories is in
// backend_memories.cu. Included by .cu files alone.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/cuda/common/attention.h"
#include "kernels/cuda/common/chunk.h"
#include "kernels/cuda/common/device.h"
#include "kernels/cuda/common/download.h"
#include "kernels/cuda/common/graph.h"
#include "kernels/cuda/common/indices.h"
#include "kernels/cuda/common/linear.h"
#include "kernels/cuda/common/operations.h"
#include "kernels/cuda/common/window.h"

namespace statescope::cuda {

class CudaBackend final : public Backend {
 public:
  CudaBackend(int index, Precision precision)
      : index_((choose_device(index), index)), precision_(precision), description_(described(index, precision)) {}

  std::string description() const override { return description_; }

  Buffer allocate(std::size_t bytes) override {
    give_up_capture();
    use();
    void* memory = nullptr;
    check(cudaMallocAsync(&memory, std::max<std::size_t>(bytes, 1), stream()), "memory");
    return Buffer(memory, [queue = queue_](void* p) { queue->free(p); });
  }
  Buffer allocate_weights(std::size_t bytes) override {
    Buffer memory = allocate(bytes);
    queue_->hold_weights(memory.get(), bytes);
    return memory;
  }
  void upload(Tensor device, ConstTensor host) override { transfer(device, host, cudaMemcpyHostToDevice); }
  void download(Tensor host, ConstTensor device) override { transfer(host, device, cudaMemcpyDeviceToHost); }

  std::unique_ptr<Download> download_later(Tensor host, ConstTensor device) override {
    require_fit(host, device);
    give_up_capture();
    use();
    return downloads_.begin(host.data, device.data, bytes_of(device), stream());
  }
  std::shared_ptr<const DeviceRows> rows_for_window(ConstTensor rows) override {
    give_up_capture();
    use();
    return window_rows_.keep(rows, stream());
  }
  std::size_t free_bytes() override {
    use();
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "the device's memory");
    // Freed memory stays in the pool for later allocations.
    cudaMemPool_t pool = nullptr;
    std::uint64_t reserved = 0, used = 0;
    check(cudaDeviceGetDefaultMemPool(&pool, index_), "the memory pool");
    check(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved), "the memory pool");
    check(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used), "the memory pool");
    return free + (reserved - used);
  }
  bool has_own_memory() const override { return true; }
  std::int64_t tokens_at_once() const override { return 8192; }

  ConstTensor adopt(ConstTensor host, Buffer& owner) override {
    if (!host.contiguous()) throw std::invalid_argument("a weight must be contiguous");
    owner = allocate_weights(bytes_of(host));
    check(cudaMemcpyAsync(owner.get(), host.data, bytes_of(host), cudaMemcpyHostToDevice, stream()), "a weight");
    check(cudaStreamSynchronize(stream()),
          "the work before");  // the host side may be unmapped after this; a copy from pageable memory need not be over when it returns
    return {owner.get(), host.dtype, host.shape};
  }

  /// Few rows are bound by reading weights, whatever the type of activations.
  DType activation_type(std::int64_t rows) const override {
    return precision_ == Precision::bfloat16 && rows >= worth_a_chunk ? DType::bf16 : DType::f32;
  }

  void fill(Tensor x, float value) override { use(), cuda::fill(x, value, stream()); }
  void copy(Tensor dst, ConstTensor src) override { use(), cuda::copy(dst, src, stream()); }
  void gather_rows(Tensor dst, ConstTensor src, const std::int32_t* rows) override {
    use(), cuda::gather_rows(dst, src, sent_rows("gather_rows", rows, dst.rows(), src), stream());
  }
  void scatter_add_rows(Tensor dst, ConstTensor src, const std::int32_t* rows, ConstTensor weight) override {
    use(), cuda::scatter_add_rows(dst, src, sent_rows("scatter_add_rows", rows, src.rows(), dst), weight, stream());
  }

  void embed(Tensor y, ConstTensor table, const std::int32_t* ids) override {
    if (y.rows() != 1) return use(), cuda::embed(y, table, sent_rows("embed", ids, y.rows(), table), stream());
    require_rows("embed", ids, 1, table);
    give_up_capture();  // the next token is another row
    use(), queue().embed(cuda::embedded_row(y, table, ids[0]));
  }
  void linear(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias) override {
    use(), products_.linear(y, x, weight, bias, queue());
  }
  std::unique_ptr<Repeated> repeated() override;
  bool folds_norms(std::int64_t rows) const override { return (rows == 1 && is_hopper()) || activation_type(rows) == DType::bf16; }
  void project(std::span<const Projection> projections, Workspace& workspace) override {
    use();
    if (!products_.project(projections, queue())) Backend::project(projections, workspace);
  }
  void linear_together(std::span<const LinearProduct> products, ConstTensor x) override {
    use();
    for (const LinearProduct& p : products_.linear_together(products, x, queue())) finish(p);
  }
  void add_linear(Tensor y, ConstTensor x, ConstTensor weight, Workspace& workspace) override {
    use();
    if (!products_.add_linear(y, x, weight, stream())) Backend::add_linear(y, x, weight, workspace);
  }
  void swiglu(Tensor y, ConstTensor x, ConstTensor gate_proj, ConstTensor up_proj, ConstTensor down_proj, Workspace& workspace,
              const InputNorm& norm, ConstTensor addend) override {
    const Workspace::Mark mark(workspace);
    use();
    Tensor u = x.rows() == 1 ? workspace.tensor({1, gate_proj.rows()}) : Tensor{};
    if (!u || !products_.gated_linear(u, x, norm, gate_proj, up_proj, queue())) {
      const ConstTensor in = normed(x, norm, workspace);
      u = workspace.tensor({x.rows(), gate_proj.rows()}, in.dtype);
      products_.gated_linear(u, in, gate_proj, up_proj, workspace, queue());
    }
    const Projection down{.x = u, .norm = {}, .weight = down_proj, .bias = {}, .y = y, .finish = Activate{.addend = addend}, .z = {}};
    project(std::span(&down, 1), workspace);
  }

  void rms_norm(Tensor y, ConstTensor x, ConstTensor weight, float eps, float offset) override {
    use(), cuda::rms_norm(y, x, weight, eps, offset, stream());
  }
  void rms_norm_plain(Tensor y, ConstTensor x, std::int64_t group, float eps) override {
    use(), cuda::rms_norm_plain(y, x, group, eps, stream());
  }
  void low_rank_decay(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, float normalizer, float clamp_min) override {
    const bool fits = weight.row_size() <= most_low_rank && weight.dtype != DType::f16;
    if (!fits || x.rows() < worth_a_chunk) return Backend::low_rank_decay(y, x, weight, bias, normalizer, clamp_min);
    use(), cuda::low_rank_decay(y, x, weight, bias, normalizer, clamp_min, stream());
  }
  void sum_pair(Tensor pair, ConstTensor shared, ConstTensor sparse, ConstTensor more, Activation act) override {
    use(), cuda::sum_pair(pair, shared, sparse, more, act, stream());
  }
  void softmax_pair(Tensor pair, ConstTensor shared, ConstTensor sparse, ConstTensor more) override {
    use(), cuda::softmax_pair(pair, shared, sparse, more, stream());
  }
  void add_rms_norm(Tensor y, Tensor x, ConstTensor added, ConstTensor weight, float eps, float offset) override {
    use(), cuda::add_rms_norm(y, x, added, weight, eps, offset, stream());
  }
  void gated_rms_norm(Tensor y, ConstTensor x, ConstTensor weight, std::int64_t group, float eps, ConstTensor gate,
                      Activation act) override {
    use(), cuda::gated_rms_norm(y, x, weight, group, eps, gate, act, stream());
  }
  void l2_norm(Tensor y, ConstTensor x) override { use(), cuda::l2_norm(y, x, stream()); }
  void sum_norm(Tensor y, ConstTensor x, float eps) override { use(), cuda::sum_norm(y, x, eps, stream()); }
  void softmax(Tensor y, ConstTensor x, float temperature) override { use(), cuda::softmax(y, x, temperature, stream()); }
  void activate(Tensor y, ConstTensor x, Activation act) override { use(), cuda::activate(y, x, act, stream()); }
  void gate(Tensor y, ConstTensor a, ConstTensor b, Activation act) override { use(), cuda::gate(y, a, b, act, stream()); }
  void add(Tensor y, ConstTensor a, ConstTensor b, float factor) override { use(), cuda::add(y, a, b, factor, stream()); }
  void scale_heads(Tensor y, ConstTensor x, ConstTensor g, float scale) override { use(), cuda::scale_heads(y, x, g, scale, stream()); }
  void divide_heads(Tensor y, ConstTensor x, ConstTensor d, float eps) override { use(), cuda::divide_heads(y, x, d, eps, stream()); }
  void log_sigmoid_decay(Tensor y, ConstTensor x, float normalizer, float clamp_min) override {
    use(), cuda::log_sigmoid_decay(y, x, normalizer, clamp_min, stream());
  }
  void gated_delta_decay(Tensor y, ConstTensor a, ConstTensor A_log, ConstTensor dt_bias) override {
    use(), cuda::gated_delta_decay(y, a, A_log, dt_bias, stream());
  }
  void softplus_clamp(Tensor y, ConstTensor x, ConstTensor dt_bias, float dt_min, float dt_max) override {
    use(), cuda::softplus_clamp(y, x, dt_bias, dt_min, dt_max, stream());
  }
  void one_minus_exp(Tensor y, ConstTensor x) override { use(), cuda::one_minus_exp(y, x, stream()); }
  void rope(Tensor y, ConstTensor x, std::int64_t first, double theta, std::int64_t rotary) override {
    give_up_capture();
    use(), cuda::rope(y, x, first, theta, rotary, stream());
  }
  void rope(Tensor y, ConstTensor x, std::int64_t first, const Rotation& rotation) override {
    give_up_capture();
    use(), cuda::rope(y, x, first, rotation, stream());
  }
  void top_k(Tensor ids, ConstTensor scores) override { use(), cuda::top_k(ids, scores, stream()); }
  void renormalise(Tensor y, ConstTensor gate, ConstTensor ids) override { use(), cuda::renormalise(y, gate, ids, stream()); }
  void row_sparse(Tensor k, Tensor log_decay, ConstTensor z, std::int64_t topk, bool skip_decay) override {
    use(), cuda::row_sparse(k, log_decay, z, topk, skip_decay, stream());
  }

  void short_convolutions(std::span<const ShortConvolution> ops) override {
    cuda::short_convolutions(ops, sent(ops[0].segments), stream());
  }
  void decayed_outer_product(const DecayedOuterProduct& op, std::int64_t) override {
    use();
    if (!decayed_outer_product_step(op, queue())) decayed_outer_product(op, sent(op.segments));
  }
  void forget_gated_outer_product(const DecayedOuterProduct& op, const Projection& gate, std::int64_t chunk_size,
                                  Workspace& workspace) override;
  void gated_delta_rule(const GatedDeltaRule& op, std::int64_t) override {
    use();
    if (!gated_delta_rule_step(op, false, queue())) gated_delta_rule(op, sent(op.segments));
  }
  void unit_delta_rule(const GatedDeltaRule& op, std::int64_t chunk_size, Workspace& workspace, const InputNorm& readout) override;
  void softmax_attention(const SoftmaxAttention& op, std::int64_t) override;
  void next_token_nll(Tensor nll, ConstTensor logits, const std::int32_t* ids) override {
    check_next_token_nll(nll, logits, ids);
    use(),
        cuda::next_token_nll(nll, logits, sent(IndexRing::Arrays<1>{std::span(ids, static_cast<std::size_t>(logits.rows()))})[0], stream());
  }
  void total_variation(Tensor distance, ConstTensor a, ConstTensor b) override {
    check_total_variation(distance, a, b);
    use(), cuda::total_variation(distance, a, b, stream());
  }
  void row_norms(Tensor norms, ConstTensor x) override {
    check_row_norms(norms, x);
    use(), cuda::row_norms(norms, x, stream());
  }
  void row_cosine(Tensor cosine, ConstTensor z) override {
    check_row_cosine(cosine, z);
    use(), cuda::row_cosine(cosine, z, stream());
  }
  void singular_values(Tensor sigma, ConstTensor z, Workspace& workspace) override {
    check_singular_values(sigma, z);
    use(), cuda::singular_values(sigma, z, workspace, stream());
  }
  /// Tried in this order: a token's step; float32 where no chunk form can gather; the operations of Backend one by one where there are too
  /// many runs; a chunk form that gathers rows; else rows replicated for one call of the memory.
  void sparse_state(const SparseState& op, std::int64_t chunk_size, Workspace& workspace) override;
  void sparse_state(const SparseState& op, const SparseSources& from, std::int64_t chunk_size, Workspace& workspace) override;

 protected:
  void project_one(std::span<const Projection> projections, ConstTensor x, Workspace& workspace) override {
    std::vector<Projection> all(projections.begin(), projections.end());
    const std::size_t convolved = convolved_products_first(all, x);
    if (convolved == 0) return Backend::project_one(projections, x, workspace);
    // Products of few outputs read x while it has just been written.
    Backend::project_one(std::span(all).subspan(convolved), x, workspace);
    convolved_products_hopper(std::span(all).first(convolved), x, workspace, stream());
  }

 private:
  class Repetition;
  static std::size_t bytes_of(ConstTensor x) { return static_cast<std::size_t>(x.shape.size()) * size_of(x.dtype); }
  static constexpr std::int64_t worth_a_chunk = 32;  // rows

  /// `gates`: what decays are computed from where they are not there.
  void sparse_state_of_rows(const SparseState& op, std::span<const Projection> gates, std::int64_t chunk_size, Workspace& workspace);

  /// Chooses the form of a matrix memory by precision_, the longest segment, the types of operands and the channels of a head.
  void decayed_outer_product(const DecayedOuterProduct& op, const DeviceSegments& segments);
  void in_tiles(const DecayedOuterProduct& op, const DeviceSegments& segments, const GatheredSegments& gathered, const Projection* gate);
  void gated_delta_rule(const GatedDeltaRule& op, const DeviceSegments& segments);
  void gated_delta_rule_in_chunks(const GatedDeltaRule& op, const DeviceSegments& segments, bool unit, const InputNorm& readout = {});
  bool in_chunks(const DeviceSegments& segments) const { return in_chunks(segments.longest); }
  bool in_chunks(std::int64_t rows) const { return precision_ == Precision::bfloat16 && rows >= worth_a_chunk; }
  template <class Memory>
  static bool in_float32(const Memory& op) {
    return op.q.dtype == DType::f32 && op.k.dtype == DType::f32 && op.v.dtype == DType::f32 && op.o.dtype == DType::f32;
  }
  /// Whether a head of K channels, too many for decayed_outer_product_chunks, can be computed as two heads.
  static bool divisible(const DecayedOuterProduct& op);
  /// Computes a head of K channels as two of K / 2, since rows of the state are independent, and sums their outputs.
  void halves_of_keys(DecayedOuterProduct op, const DeviceSegments& segments);
  /// For a form that takes float32 alone: bf16 operands are widened, o is rounded afterwards.
  template <class Memory, class Run>
  void with_float32(Memory op, const Run& run) {
    const Workspace::Mark mark(widened_);
    for (ConstTensor* x : {&op.q, &op.k, &op.v}) {
      if (x->dtype == DType::f32) continue;
      const Tensor exact = widened_.tensor(x->shape);
      copy(exact, *x);
      *x = exact;
    }
    const Tensor o = op.o;
    if (o.dtype != DType::f32) op.o = widened_.tensor(o.shape);
    run(op);
    if (o.dtype != DType::f32) copy(o, op.o);
  }
  /// Scratch of one call: the next one overwrites it, in stream order. Kept, and replaced by a larger one as needed.
  void* scratch(std::size_t bytes) {
    give_up_capture();
    if (bytes > scratch_bytes_) {
      scratch_.reset();
      scratch_bytes_ = 0;
      scratch_ = allocate(bytes);
      scratch_bytes_ = bytes;
    }
    return scratch_.get();
  }

  /// The operands of the partitions' items, which read the rows where they are.
  static GatheredSegments gathered_of(const SparseState& op, const SparseOrder& order, Workspace& workspace);
  void sparse_chunks(const SparseState& op, std::span<const Projection> gates, const SparseOrder& order, Workspace& workspace);
  /// Operands are rounded where they are not bf16.
  void sparse_delta_chunks(SparseState op, const SparseOrder& order, Workspace& workspace);
  /// Whether the chunk form of the memory can gather the partitions' rows.
  static bool gathered_by_chunks(const SparseState& op);
  /// Index 0 of x [T, 2, ...], that of the shared state, or index 1, that of the partitions.
  static ConstTensor half(ConstTensor x, std::int64_t index);

  /// The memory call of the shared states.
  template <class Memory>
  static Memory own_part(const SparseState& op) {
    return memory_of<Memory>(op, half(op.q, 0), half(op.k, 0), op.v, half(op.log_decay, 0), op.o);
  }
  template <class Memory>
  static Memory memory_of(const SparseState& op, ConstTensor q, ConstTensor k, ConstTensor v, ConstTensor log_decay, Tensor o) {
    Memory memory;
    memory.q = q;
    memory.k = k;
    memory.v = v;
    memory.log_decay = log_decay;
    memory.scale = op.scale;
    memory.initial_state = op.initial_state;
    memory.final_state = op.final_state;
    memory.o = o;
    return memory;
  }

  void give_up_capture() {
    queue_->flush();  // what was recorded belongs to what is captured
    capture_.give_up();
  }
  /// The calling thread's device; another may have been current.
  void use() const { check(cudaSetDevice(index_), "the device"); }
  cudaStream_t stream() const { return queue_->stream(); }
  DecodeQueue& queue() const { return *queue_; }

  template <std::size_t n>
  std::array<const std::int32_t*, n> sent(const IndexRing::Arrays<n>& arrays) {
    give_up_capture();
    use();
    return ring_.send(arrays);
  }
  /// Indices of rows of x.
  const std::int32_t* sent_rows(const char* operation, const std::int32_t* rows, std::int64_t count, ConstTensor x) {
    require_rows(operation, rows, count, x);
    return sent(IndexRing::Arrays<1>{std::span(rows, static_cast<std::size_t>(count))})[0];
  }
  static void require_rows(const char* operation, const std::int32_t* rows, std::int64_t count, ConstTensor x) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (rows[i] < 0 || rows[i] >= x.rows())
        throw std::out_of_range(std::string(operation) + ": row " + std::to_string(rows[i]) + " of " + x.shape.to_string());
    }
  }
  DeviceSegments sent(const Segments& segments) {
    const auto [cu_seqlens, slot] = sent(IndexRing::Arrays<2>{segments.cu_seqlens, segments.slot});
    return on_device(segments, cu_seqlens, slot);
  }
  static DeviceSegments on_device(const Segments& segments, const std::int32_t* cu_seqlens, const std::int32_t* slot) {
    return {cu_seqlens, slot, segments.count(), longest(segments.cu_seqlens)};
  }
  static std::int64_t longest(std::span<const std::int32_t> cu_seqlens) {
    std::int32_t most = 0;
    for (std::size_t s = 0; s + 1 < cu_seqlens.size(); ++s) most = std::max(most, cu_seqlens[s + 1] - cu_seqlens[s]);
    return most;
  }

  static void require_fit(Tensor to, ConstTensor from) {
    if (!to.contiguous() || !from.contiguous() || to.shape != from.shape || to.dtype != from.dtype)
      throw std::invalid_argument("copy between host and device: " + to.shape.to_string() + " and " + from.shape.to_string() +
                                  " do not fit");
  }
  /// Both sides contiguous and of one shape. Returns when the host side may be used again.
  void transfer(Tensor to, ConstTensor from, cudaMemcpyKind direction) {
    require_fit(to, from);
    if (bytes_of(from) == 0) return;
    give_up_capture();
    use();
    check(cudaMemcpyAsync(to.data, from.data, bytes_of(from), direction, stream()), "a copy between host and device");
    check(cudaStreamSynchronize(stream()), "the work before");
  }

  int index_;
  Precision precision_;
  std::string description_;
  std::shared_ptr<DecodeQueue> queue_ = std::make_shared<DecodeQueue>();  // destroyed after the last buffer that was allocated in its order
  Capture capture_{stream()};
  IndexRing ring_{queue()};
  Products products_{precision_};
  Downloads downloads_;
  WindowRows window_rows_{index_};
  Workspace widened_{*this};
  Buffer scratch_;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace statescope::cuda

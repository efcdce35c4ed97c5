// The CUDA backend: one device, one stream, every operation in its order. What chooses among the forms of the memories is in
// backend_memories.cu. Included by .cu files alone.
#pragma once

#include <algorithm>
#include <array>
#include <variant>
#include <vector>

#include "kernels/cuda/common/attention.h"
#include "kernels/cuda/common/chunk.h"
#include "kernels/cuda/common/crossing.h"
#include "kernels/cuda/common/device.h"
#include "kernels/cuda/common/download.h"
#include "kernels/cuda/common/graph.h"
#include "kernels/cuda/common/indices.h"
#include "kernels/cuda/common/linear.h"
#include "kernels/cuda/common/operations.h"
#include "kernels/cuda/common/selective_scan.h"
#include "kernels/cuda/common/upload.h"
#include "kernels/cuda/common/window.h"
#include "kernels/fused/by_parts.h"

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
  void upload(Tensor device, ConstTensor host) override {
    begin_transfer(device, host);
    if (bytes_of(host) == 0) return;
    uploads_.copy(device.data, host.data, bytes_of(host), stream());
  }
  void download(Tensor host, ConstTensor device) override {
    begin_transfer(host, device);
    if (bytes_of(host) == 0) return;
    check(cudaMemcpyAsync(host.data, device.data, bytes_of(host), cudaMemcpyDeviceToHost, stream()), "a copy between host and device");
    check(cudaStreamSynchronize(stream()), "the work before");
  }

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
  bool holds(const void* memory) const override;
  bool receive(Tensor dst, ConstTensor src, Backend& from) override;
  std::int64_t tokens_at_once() const override { return 8192; }

  ConstTensor adopt(ConstTensor host, Buffer& owner) override {
    if (!host.contiguous()) throw std::invalid_argument("a weight must be contiguous");
    owner = allocate_weights(bytes_of(host));
    uploads_.copy(owner.get(), host.data, bytes_of(host), stream());
    return {owner.get(), host.dtype, host.shape};
  }

  /// Few rows are bound by reading weights, whatever the type of activations.
  DType activation_type(std::int64_t rows) const override {
    return precision_ == Precision::bfloat16 && rows >= worth_a_chunk ? DType::bf16 : DType::f32;
  }

  std::unique_ptr<Repeated> repeated() override;
  bool takes(const ExpertMlps& op) const override { return use(), cuda::expert_mlps_supported(op); }
  bool folds_norms(std::int64_t rows) const override { return (rows == 1 && (use(), is_hopper())) || activation_type(rows) == DType::bf16; }

  void run(const Operation& operation) override {
    use();
    std::visit([this](const auto& op) { compute(op); }, operation);
  }

 private:
  class Repetition;
  static std::size_t bytes_of(ConstTensor x) { return static_cast<std::size_t>(x.shape.size()) * size_of(x.dtype); }
  static constexpr std::int64_t worth_a_chunk = 32;  // rows

  void compute(const ops::Fill& op) { use(), cuda::fill(op.x, op.value, stream()); }
  void compute(const ops::Copy& op) { use(), cuda::copy(op.dst, op.src, stream()); }
  void compute(const ops::GatherRows& op) {
    use(), cuda::gather_rows(op.dst, op.src, sent_rows("gather_rows", op.rows, op.dst.rows(), op.src), stream());
  }
  void compute(const ops::ScatterAddRows& op) {
    use(), cuda::scatter_add_rows(op.dst, op.src, sent_rows("scatter_add_rows", op.rows, op.src.rows(), op.dst), op.weight, stream());
  }

  void compute(const ops::Embed& op) {
    const auto& [y, table, ids] = op;
    if (y.rows() != 1) return use(), cuda::embed(y, table, sent_rows("embed", ids, y.rows(), table), stream());
    require_rows("embed", ids, 1, table);
    give_up_capture();  // the next token is another row
    use(), queue().embed(cuda::embedded_row(y, table, ids[0]));
  }
  void compute(const ops::Linear& op) { use(), products_.linear(op.y, op.x, op.weight, op.bias, queue()); }
  void compute(const ops::Project& op) {
    use();
    if (!products_.project(op.projections, queue())) by_parts(op, *this);
  }
  void compute(const ops::ProjectOne& op) {
    std::vector<Projection> all(op.projections.begin(), op.projections.end());
    const std::size_t convolved = convolved_products_first(all, op.normed_x);
    if (convolved == 0) return by_parts(op, *this);
    // Products of few outputs read x while it has just been written.
    by_parts(ops::ProjectOne{std::span(all).subspan(convolved), op.normed_x, op.workspace}, *this);
    convolved_products_hopper(std::span(all).first(convolved), op.normed_x, op.workspace, stream());
  }
  void compute(const ops::LinearTogether& op) {
    use();
    for (const LinearProduct& p : products_.linear_together(op.products, op.x, queue())) finish(p, *this);
  }
  void compute(const ops::AddLinear& op) {
    use();
    if (!products_.add_linear(op.y, op.x, op.weight, stream())) by_parts(op, *this);
  }
  void compute(const ops::SwiGlu& op) {
    const auto& [y, x, gate_proj, up_proj, down_proj, workspace, norm, addend] = op;
    const Workspace::Mark mark(workspace);
    use();
    Tensor u = x.rows() == 1 ? workspace.tensor({1, gate_proj.rows()}) : Tensor{};
    if (!u || !products_.gated_linear(u, x, norm, gate_proj, up_proj, queue())) {
      const ConstTensor in = normed(x, norm, *this, workspace);
      u = workspace.tensor({x.rows(), gate_proj.rows()}, in.dtype);
      products_.gated_linear(u, in, gate_proj, up_proj, workspace, queue());
    }
    const Projection down{.x = u, .norm = {}, .weight = down_proj, .bias = {}, .y = y, .finish = Activate{.addend = addend}, .z = {}};
    project(std::span(&down, 1), workspace);
  }

  void compute(const ops::RmsNorm& op) { use(), cuda::rms_norm(op.y, op.x, op.weight, op.eps, op.offset, stream()); }
  void compute(const ops::RmsNormPlain& op) { use(), cuda::rms_norm_plain(op.y, op.x, op.group, op.eps, stream()); }
  void compute(const ops::LowRankDecay& op) {
    const bool fits = op.weight.row_size() <= most_low_rank && op.weight.dtype != DType::f16;
    if (!fits || op.x.rows() < worth_a_chunk) return by_parts(op, *this);
    use(), cuda::low_rank_decay(op.y, op.x, op.weight, op.bias, op.normalizer, op.clamp_min, stream());
  }
  void compute(const ops::SumPair& op) { use(), cuda::sum_pair(op.pair, op.shared, op.sparse, op.more, op.act, stream()); }
  void compute(const ops::SoftmaxPair& op) { use(), cuda::softmax_pair(op.pair, op.shared, op.sparse, op.more, stream()); }
  void compute(const ops::AddRmsNorm& op) { use(), cuda::add_rms_norm(op.y, op.x, op.added, op.weight, op.eps, op.offset, stream()); }
  void compute(const ops::GatedRmsNorm& op) {
    use(), cuda::gated_rms_norm(op.y, op.x, op.weight, op.group, op.eps, op.gate, op.act, stream());
  }
  void compute(const ops::LayerNorm& op) { use(), cuda::layer_norm(op.y, op.x, op.weight, op.bias, op.group, op.eps, stream()); }
  void compute(const ops::L2Norm& op) { use(), cuda::l2_norm(op.y, op.x, stream()); }
  void compute(const ops::SumNorm& op) { use(), cuda::sum_norm(op.y, op.x, op.eps, stream()); }
  void compute(const ops::Softmax& op) { use(), cuda::softmax(op.y, op.x, op.temperature, stream()); }
  void compute(const ops::Activate& op) { use(), cuda::activate(op.y, op.x, op.act, stream()); }
  void compute(const ops::Gate& op) { use(), cuda::gate(op.y, op.a, op.b, op.act, stream()); }
  void compute(const ops::Add& op) { use(), cuda::add(op.y, op.a, op.b, op.factor, stream()); }
  void compute(const ops::ScaleHeads& op) { use(), cuda::scale_heads(op.y, op.x, op.g, op.scale, stream()); }
  void compute(const ops::DivideHeads& op) { use(), cuda::divide_heads(op.y, op.x, op.d, op.eps, stream()); }
  void compute(const ops::LogSigmoidDecay& op) { use(), cuda::log_sigmoid_decay(op.y, op.x, op.normalizer, op.clamp_min, stream()); }
  void compute(const ops::GatedDeltaDecay& op) {
    use(), cuda::gated_delta_decay(op.y, op.a, op.A_log, op.dt_bias, op.lower_bound, stream());
  }
  void compute(const ops::SoftplusClamp& op) { use(), cuda::softplus_clamp(op.y, op.x, op.dt_bias, op.dt_min, op.dt_max, stream()); }
  void compute(const ops::OneMinusExp& op) { use(), cuda::one_minus_exp(op.y, op.x, stream()); }
  void compute(const ops::Rope& op) {
    give_up_capture();
    use();
    op.rotation ? cuda::rope(op.y, op.x, op.first, *op.rotation, stream())
                : cuda::rope(op.y, op.x, op.first, op.theta, op.rotary, stream());
  }
  void compute(const ops::LinearByHead& op) {
    check_linear_by_head(op.product);
    use(), cuda::linear_by_head(op.product, stream());
  }
  void compute(const ops::TopK& op) { use(), cuda::top_k(op.ids, op.scores, stream()); }
  void compute(const ops::Renormalise& op) { use(), cuda::renormalise(op.y, op.gate, op.ids, stream()); }
  void compute(const ops::ScoreExperts& op) { use(), cuda::score_experts(op.scores, stream()); }
  void compute(const ops::ExpertMlps& op) { use(), cuda::expert_mlps(op.mlps, op.workspace, stream()); }
  void compute(const ops::RowSparse& op) { use(), cuda::row_sparse(op.k, op.log_decay, op.z, op.topk, op.skip_decay, stream()); }

  void compute(const ops::ShortConvolutions& op) { cuda::short_convolutions(op.convolutions, sent(op.convolutions[0].segments), stream()); }
  void compute(const ops::DecayedOuterProduct& op) {
    use();
    if (!decayed_outer_product_step(op.memory, queue())) decayed_outer_product(op.memory, sent(op.memory.segments));
  }
  void compute(const ops::ForgetGatedOuterProduct& op);
  void compute(const ops::GatedDeltaRule& op) {
    use();
    if (!gated_delta_rule_step(op.memory, false, queue())) gated_delta_rule(op.memory, sent(op.memory.segments));
  }
  void compute(const ops::UnitDeltaRule& op);
  void compute(const ops::SelectiveScan& op) {
    check_selective_scan(op.memory, op.memory.x.dtype == DType::bf16 ? DType::bf16 : DType::f32);
    use();
    if (selective_scan_step(op.memory, stream())) return;
    const DeviceSegments segments = sent(op.memory.segments);
    cuda::selective_scan(op.memory, segments, scratch(selective_scan_scratch(op.memory, segments)), stream());
  }
  void compute(const ops::Wkv& op) {
    use();
    if (!in_float32(op.memory)) return with_float32(op.memory, [&](const Wkv& exact) { compute(ops::Wkv{exact}); });
    check_wkv(op.memory);
    cuda::wkv(op.memory, sent(op.memory.segments), stream());
  }
  void compute(const ops::LogLinearAttention& op) {
    give_up_capture();
    use();
    if (!in_float32(op.memory)) return with_float32(op.memory, [&](const auto& exact) { compute(ops::LogLinearAttention{exact}); });
    check_log_linear_attention(op.memory);
    cuda::log_linear_attention(op.memory, stream());
  }
  void compute(const ops::StateSpace& op) {
    check_state_space(op.memory);
    use(), cuda::state_space(op.memory, stream());
  }
  void compute(const ops::SoftmaxAttention& op);
  void compute(const ops::CompressedAttention& op);
  void compute(const ops::ChooseTokens& op);
  void compute(const ops::NextTokenNll& op) {
    check_next_token_nll(op.nll, op.logits, op.ids);
    const std::span ids(op.ids, static_cast<std::size_t>(op.logits.rows()));
    use(), cuda::next_token_nll(op.nll, op.logits, sent(IndexRing::Arrays<1>{ids})[0], stream());
  }
  void compute(const ops::TotalVariation& op) {
    check_total_variation(op.distance, op.a, op.b);
    use(), cuda::total_variation(op.distance, op.a, op.b, stream());
  }
  void compute(const ops::RowNorms& op) {
    check_row_norms(op.norms, op.x);
    use(), cuda::row_norms(op.norms, op.x, stream());
  }
  void compute(const ops::RowCosine& op) {
    check_row_cosine(op.cosine, op.z);
    use(), cuda::row_cosine(op.cosine, op.z, stream());
  }
  void compute(const ops::SingularValues& op) {
    check_singular_values(op.sigma, op.z);
    use(), cuda::singular_values(op.sigma, op.z, op.workspace, stream());
  }
  /// Tried in this order: a token's step; float32 where no chunk form can gather; the operations of Backend one by one where there are too
  /// many runs; a chunk form that gathers rows; else rows replicated for one call of the memory.
  void compute(const ops::SparseState& op);
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
  void begin_transfer(Tensor to, ConstTensor from) {
    require_fit(to, from);
    give_up_capture();
    use();
  }

  int index_;
  Precision precision_;
  std::string description_;
  std::shared_ptr<DecodeQueue> queue_ = std::make_shared<DecodeQueue>();  // destroyed after the last buffer that was allocated in its order
  Capture capture_{stream()};
  IndexRing ring_{queue()};
  Products products_{precision_};
  Downloads downloads_;
  Uploads uploads_;
  WindowRows window_rows_{index_};
  Crossing crossing_{index_};
  Workspace widened_{*this};
  Buffer scratch_;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace statescope::cuda

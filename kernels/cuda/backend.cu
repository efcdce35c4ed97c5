// The CUDA backend: one device, one stream, every operation in its order.
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

namespace statescope {
namespace cuda {

namespace {

std::size_t bytes_of(ConstTensor x) { return static_cast<std::size_t>(x.shape.size()) * size_of(x.dtype); }

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
    return Buffer(memory, [chain = chain_](void* p) { chain->free(p); });
  }
  Buffer allocate_weights(std::size_t bytes) override {
    Buffer memory = allocate(bytes);
    chain_->hold_weights(memory.get(), bytes);
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
    // What has been freed stays with the program, for whoever asks next.
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

  /// Few rows cost the reading of weights, whatever the activations are.
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
    give_up_capture();  // the next time it is another row
    use(), chain().embed(cuda::embedded_row(y, table, ids[0]));
  }
  void linear(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias) override {
    use(), products_.linear(y, x, weight, bias, chain());
  }
  std::unique_ptr<Repeated> repeated() override;
  bool folds_norms(std::int64_t rows) const override { return (rows == 1 && is_hopper()) || activation_type(rows) == DType::bf16; }
  void project(std::span<const Projection> projections, Workspace& workspace) override {
    use();
    if (!products_.project(projections, chain())) Backend::project(projections, workspace);
  }
  void linear_together(std::span<const LinearProduct> products, ConstTensor x) override {
    use();
    for (const LinearProduct& p : products_.linear_together(products, x, chain())) finish(p);
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
    if (!u || !products_.gated_linear(u, x, norm, gate_proj, up_proj, chain())) {
      const ConstTensor in = normed(x, norm, workspace);
      u = workspace.tensor({x.rows(), gate_proj.rows()}, in.dtype);
      products_.gated_linear(u, in, gate_proj, up_proj, workspace, chain());
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
    if (!decayed_outer_product_step(op, chain())) decayed_outer_product(op, sent(op.segments));
  }
  void forget_gated_outer_product(const DecayedOuterProduct& op, const Projection& gate, std::int64_t chunk_size,
                                  Workspace& workspace) override {
    use();
    if (!in_chunks(longest(op.segments.cu_seqlens)) || !decayed_outer_product_hopper_supported(op) ||
        !decayed_outer_product_hopper_makes(gate, op.log_decay))
      return Backend::forget_gated_outer_product(op, gate, chunk_size, workspace);
    in_tiles(op, sent(op.segments), {}, &gate);
  }
  void gated_delta_rule(const GatedDeltaRule& op, std::int64_t) override {
    use();
    if (!gated_delta_rule_step(op, false, chain())) gated_delta_rule(op, sent(op.segments));
  }
  void unit_delta_rule(const GatedDeltaRule& op, std::int64_t chunk_size, Workspace& workspace, const InputNorm& readout) override {
    use();
    const std::int64_t rows = longest(op.segments.cu_seqlens);
    const bool reads_out = readout.group > 0, chunks = in_chunks(rows);
    if (!reads_out && gated_delta_rule_step(op, true, chain())) return;
    if (!chunks || !(reads_out ? gated_delta_rule_reads_out(op, readout, rows) : gated_delta_rule_normalises(op)))
      return Backend::unit_delta_rule(op, chunk_size, workspace, readout);
    gated_delta_rule_in_chunks(op, sent(op.segments), true, readout);
  }
  void softmax_attention(const SoftmaxAttention& op, std::int64_t) override {
    const auto [queries, slots, keys] = sent(IndexRing::Arrays<3>{op.segments.cu_seqlens, op.segments.slot, op.cu_seqlens_k});
    const DeviceSegments segments = on_device(op.segments, queries, slots);
    if (in_chunks(segments) && softmax_attention_tiles_supported(op)) {
      return softmax_attention_tiles(op, segments, keys, scratch(softmax_attention_tiles_scratch(op)), stream());
    }
    cuda::softmax_attention(op, segments, keys, longest(op.cu_seqlens_k), stream());
  }
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
  /// In this order: a row's step; float32 where no chunk form gathers; the parts (Backend) where runs are too many; a chunk form that reads
  /// rows where they are; else rows replicated for one call of the memory.
  void sparse_state(const SparseState& op, std::int64_t chunk_size, Workspace& workspace) override {
    check_sparse_state(op, op.q.dtype == DType::bf16 ? DType::bf16 : DType::f32);
    if (use(), sparse_state_step(op, nullptr, chain())) return;
    sparse_state_of_rows(op, {}, chunk_size, workspace);
  }
  void sparse_state(const SparseState& op, const SparseSources& from, std::int64_t chunk_size, Workspace& workspace) override {
    check_sparse_state(op, op.q.dtype == DType::bf16 ? DType::bf16 : DType::f32);
    use();
    if (from.decays.empty() && sparse_state_step(op, &from, chain())) return;
    make_choices(from);
    if (from.decays.empty()) return sparse_state(op, chunk_size, workspace);
    sparse_state_of_rows(op, from.decays, chunk_size, workspace);
  }

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
  static constexpr std::int64_t worth_a_chunk = 32;  // rows

  /// `gates`: what the decays are made of where they are not there.
  void sparse_state_of_rows(const SparseState& op, std::span<const Projection> gates, std::int64_t chunk_size, Workspace& workspace) {
    const std::int64_t runs = (static_cast<std::int64_t>(op.cu_seqlens.size()) - 1) * op.gate.row_size();
    const bool sorted_here = runs <= most_sparse_runs(), chunks = sorted_here && in_chunks(op.v.rows()) && gathered_by_chunks(op);
    if (!chunks || op.beta) project(gates, workspace);
    if (!chunks && !in_float32(op)) return with_float32(op, [&](const SparseState& exact) { sparse_state(exact, chunk_size, workspace); });
    if (!sorted_here) return Backend::sparse_state(op, chunk_size, workspace);
    const Workspace::Mark mark(workspace);
    const SparseOrder order = sparse_order(op, sent(IndexRing::Arrays<1>{op.cu_seqlens})[0], workspace, stream());
    if (chunks) return op.beta ? sparse_delta_chunks(op, order, workspace) : sparse_chunks(op, gates, order, workspace);
    const SparseRows rows = sparse_rows(op, order, workspace, stream());
    if (op.beta) {
      auto delta_rule = memory_of<GatedDeltaRule>(op, rows.q, rows.k, rows.v, rows.log_decay, rows.o);
      delta_rule.beta = rows.beta;
      gated_delta_rule(delta_rule, order.segments);
    } else {
      decayed_outer_product(memory_of<DecayedOuterProduct>(op, rows.q, rows.k, rows.v, rows.log_decay, rows.o), order.segments);
    }
    sum_sparse_rows(op, order, rows, stream());
  }

  /// The form of a matrix memory is chosen by precision_, the longest segment, the operands' types and the channels of a head.
  void decayed_outer_product(const DecayedOuterProduct& op, const DeviceSegments& segments) {
    if (in_chunks(segments) && decayed_outer_product_hopper_supported(op)) return in_tiles(op, segments, {}, nullptr);
    const bool one_type = op.k.dtype == op.q.dtype && op.v.dtype == op.q.dtype && op.o.dtype == op.q.dtype;
    if (one_type && in_chunks(segments) && !decayed_outer_product_chunks_supported(op) && divisible(op))
      return halves_of_keys(op, segments);
    if (!one_type || !in_chunks(segments) || !decayed_outer_product_chunks_supported(op)) {
      if (!in_float32(op)) return with_float32(op, [&](const auto& exact) { decayed_outer_product(exact, segments); });
      return cuda::decayed_outer_product(op, segments, stream());
    }
    decayed_outer_product_chunks(op, segments, scratch(decayed_outer_product_chunks_scratch(op, segments.count, segments.longest)),
                                 stream());
  }
  void in_tiles(const DecayedOuterProduct& op, const DeviceSegments& segments, const GatheredSegments& gathered, const Projection* gate) {
    void* const tiles = scratch(decayed_outer_product_hopper_scratch(op, segments, gathered));
    decayed_outer_product_hopper(op, segments, tiles, stream(), gathered, gate);
  }
  void gated_delta_rule(const GatedDeltaRule& op, const DeviceSegments& segments) {
    if (!in_chunks(segments) || !gated_delta_rule_chunks_supported(op)) {
      if (!in_float32(op)) return with_float32(op, [&](const auto& exact) { gated_delta_rule(exact, segments); });
      return cuda::gated_delta_rule(op, segments, stream());
    }
    gated_delta_rule_in_chunks(op, segments, false);
  }
  void gated_delta_rule_in_chunks(const GatedDeltaRule& op, const DeviceSegments& segments, bool unit, const InputNorm& readout = {}) {
    void* const memory_scratch = scratch(gated_delta_rule_chunks_scratch(op, segments.count, segments.longest));
    gated_delta_rule_chunks(op, segments, memory_scratch, stream(), {}, unit, readout);
  }
  bool in_chunks(const DeviceSegments& segments) const { return in_chunks(segments.longest); }
  bool in_chunks(std::int64_t rows) const { return precision_ == Precision::bfloat16 && rows >= worth_a_chunk; }
  template <class Memory>
  static bool in_float32(const Memory& op) {
    return op.q.dtype == DType::f32 && op.k.dtype == DType::f32 && op.v.dtype == DType::f32 && op.o.dtype == DType::f32;
  }
  /// Whether decayed_outer_product_chunks, which takes half as many, can take the channels of a head as two.
  static bool divisible(const DecayedOuterProduct& op) {
    const std::int64_t H = op.initial_state.shape[1], K = op.initial_state.shape[2];
    return K > most_channels_in_chunks && K <= 2 * most_channels_in_chunks && K % 2 == 0 && op.decay_axis == DecayAxis::rows &&
           op.q.shape[1] == H && op.k.shape[1] == H && (!op.log_decay || op.log_decay.shape.rank() == 2 || op.log_decay.shape[1] == H) &&
           op.o.contiguous();
  }
  /// Rows of the state need no other row: a head of K channels is two of K / 2 whose outputs are summed.
  void halves_of_keys(DecayedOuterProduct op, const DeviceSegments& segments) {
    const Workspace::Mark mark(widened_);
    const Tensor o = op.o;
    const std::int64_t T = o.rows(), H = o.shape[1], V = o.shape[2], half = op.q.shape[2] / 2;
    const auto in_halves = [&](auto x) { return x.with_row({2 * H, half}); };
    op.q = in_halves(op.q), op.k = in_halves(op.k);
    if (op.log_decay && op.log_decay.shape.rank() == 3) op.log_decay = in_halves(op.log_decay);
    op.initial_state = op.initial_state.with_row({2 * H, half, V});
    op.final_state = op.final_state.with_row({2 * H, half, V});
    op.o = widened_.tensor({T, 2 * H, V}, o.dtype);
    decayed_outer_product(op, segments);
    // o = q₁ S₁ + q₂ S₂
    const Tensor pairs(op.o.data, o.dtype, {T * H, 2 * V});
    add(Tensor(o.data, o.dtype, {T * H, V}), pairs.columns(0, {V}), pairs.columns(V, {V}), 1);
  }
  /// For a form that takes nothing else: what is bf16 is widened, o rounded afterwards.
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
  /// Of one call: the next one writes over it, in the stream's order. Kept, and replaced where more is needed.
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

  /// Nothing is copied: the partitions' items read the rows where they are.
  static GatheredSegments gathered_of(const SparseState& op, const SparseOrder& order, Workspace& workspace) {
    const std::int64_t T = op.v.rows(), choices = op.selected.row_size(), S = static_cast<std::int64_t>(op.cu_seqlens.size()) - 1;
    return {half(op.q, 1),
            half(op.k, 1),
            half(op.log_decay, 1),
            half(op.beta, 1),
            workspace.tensor({T * choices, op.o.shape[1], op.o.shape[2]}, op.o.dtype),
            nullptr,
            order.items,
            T * choices,
            S,
            choices,
            op.writers,
            op.readers,
            op.gate_place == GatePlace::before_l2};
  }
  void sparse_chunks(const SparseState& op, std::span<const Projection> gates, const SparseOrder& order, Workspace& workspace) {
    const auto memory = own_part<DecayedOuterProduct>(op);
    GatheredSegments gathered = gathered_of(op, order, workspace);
    const DeviceSegments& segments = order.segments;
    constexpr std::int64_t worth_a_tile = 32;  // items of a run
    const bool long_runs = gathered.count >= worth_a_tile * (segments.count - gathered.first_segment);
    const bool tiles = long_runs && decayed_outer_product_hopper_supported(memory, gathered);
    if (tiles && !gates.empty() && decayed_outer_product_hopper_makes(gates[0], memory.log_decay) &&
        decayed_outer_product_hopper_makes(gates[1], gathered.log_decay)) {
      gathered.gate = &gates[1];
      gathered.while_sorted = order.cu_seqlens;
      return in_tiles(memory, segments, gathered, &gates[0]);
    }
    project(gates, workspace);
    if (gates.empty()) gathered.while_sorted = order.cu_seqlens;
    if (tiles) return in_tiles(memory, segments, gathered, nullptr);
    void* const memory_scratch = scratch(decayed_outer_product_chunks_scratch(memory, segments.count, segments.longest, gathered));
    decayed_outer_product_chunks(memory, segments, memory_scratch, stream(), gathered);
  }
  /// Only rounded, where they are not bf16.
  void sparse_delta_chunks(SparseState op, const SparseOrder& order, Workspace& workspace) {
    for (ConstTensor* x : {&op.q, &op.k, &op.v}) {
      if (gated_delta_rule_gathers(*x)) continue;
      const Tensor rounded = workspace.tensor(x->shape, DType::bf16);
      copy(rounded, *x);
      *x = rounded;
    }
    auto memory = own_part<GatedDeltaRule>(op);
    memory.beta = half(op.beta, 0);
    const GatheredSegments gathered = gathered_of(op, order, workspace);
    const DeviceSegments& segments = order.segments;
    void* const memory_scratch = scratch(gated_delta_rule_chunks_scratch(memory, segments.count, segments.longest, gathered));
    gated_delta_rule_chunks(memory, segments, memory_scratch, stream(), gathered);
  }
  /// Whether the memory's chunk form can read the partitions' rows where they are.
  static bool gathered_by_chunks(const SparseState& op) {
    constexpr std::int64_t numbers = 8;  // bf16 numbers that the delta rule reads at once
    if (!op.beta) return decayed_outer_product_chunks_supported(own_part<DecayedOuterProduct>(op));
    return op.q.shape[3] % numbers == 0 && op.v.shape[2] % numbers == 0 && gated_delta_rule_chunks_supported(own_part<GatedDeltaRule>(op));
  }
  /// Of x [T, 2, ...] index 0, the shared state's, or 1, the partitions'.
  static ConstTensor half(ConstTensor x, std::int64_t index) {
    if (!x) return x;
    const std::int64_t size = x.row_size() / 2;
    return x.shape.rank() == 3 ? x.columns(index * size, {x.shape[2]}) : x.columns(index * size, {x.shape[2], x.shape[3]});
  }

  /// The shared states' part.
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
    chain_->flush();  // what was collected belongs to what is captured
    capture_.give_up();
  }
  /// The calling thread's device; another may have been current.
  void use() const { check(cudaSetDevice(index_), "the device"); }
  cudaStream_t stream() const { return chain_->stream(); }
  Chain& chain() const { return *chain_; }

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
  std::shared_ptr<Chain> chain_ = std::make_shared<Chain>();  // destroyed after the last buffer that was allocated in its order
  Capture capture_{stream()};
  IndexRing ring_{chain()};
  Products products_{precision_};
  Downloads downloads_;
  WindowRows window_rows_{index_};
  Workspace widened_{*this};
  Buffer scratch_;
  std::size_t scratch_bytes_ = 0;
};

/// The first time work finds its scratch memory, the second time it is captured, from then on the graph is launched.
class CudaBackend::Repetition final : public Repeated {
 public:
  explicit Repetition(CudaBackend& backend) : backend_(backend) {}

  void run(const std::function<void()>& work) override {
    backend_.use();
    if (graph_) return launch_again();
    if (std::exchange(times_, times_ + 1) != 1) return work();
    backend_.chain().flush();
    backend_.chain().take_captured();  // what other captures left
    try {
      graph_ = backend_.capture_.of([&] {
        work();
        backend_.chain().flush();
      });
    } catch (...) {
      backend_.chain().drop();
      throw;
    }
    chains_ = backend_.chain().take_captured();
  }

 private:
  void launch_again() const {
    const bool is_chain = graph_->nodes() == 1 && chains_.size() == 1;
    is_chain ? backend_.chain().repeat(chains_[0]) : graph_->launch(backend_.stream());
  }

  CudaBackend& backend_;
  int times_ = 0;                        // that work was run
  std::vector<Chain::Captured> chains_;  // of the graph
  std::unique_ptr<Graph> graph_;
};

std::unique_ptr<Repeated> CudaBackend::repeated() { return std::make_unique<Repetition>(*this); }

}  // namespace
}  // namespace cuda

extern "C" Backend* statescope_make_cuda_backend(int index, Precision precision) { return new cuda::CudaBackend(index, precision); }

}  // namespace statescope

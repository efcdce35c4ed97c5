#include "engine/analysis/memory_trace.h"

#include <algorithm>

namespace statescope {
namespace {

/// Which tokens the routing sent to which partition.
class Selection final : public ChannelSink {
 public:
  /// `next` hears all channels too; null: nobody.
  explicit Selection(ChannelSink* next) : next_(next) {}

  void channel(std::string_view name, ConstTensor values) override {
    if (next_) next_->channel(name, values);
    if (name != "partition_selected") return;
    for (std::int64_t t = 0; t < values.rows(); ++t) {
      for (std::int64_t w = 0; w < values.row_size(); ++w) {
        const auto n = static_cast<std::size_t>(values.i32(t)[w]);
        if (n >= tokens_.size()) tokens_.resize(n + 1);
        tokens_[n].push_back(static_cast<std::int32_t>(t));
      }
    }
  }
  bool wants_all() const override { return next_ && next_->wants_all(); }
  /// Ascending.
  const std::vector<std::int32_t>& tokens(std::int64_t partition) const { return tokens_.at(static_cast<std::size_t>(partition)); }

 private:
  ChannelSink* next_;
  std::vector<std::vector<std::int32_t>> tokens_;
};

/// to [n, H, width] ← rows [first, first + n) of x [rows, ≤H, width], every head its own; times `factor`.
void append_heads(std::vector<float>& to, ConstTensor x, std::int64_t first, std::int64_t n, std::int64_t H, float factor = 1) {
  const std::int64_t heads = x.shape[1], width = x.row_size() / heads;
  for (std::int64_t t = first; t < first + n; ++t) {
    for (std::int64_t h = 0; h < H; ++h) {
      const float* row = x.f32(t) + producer_head(h, heads, H) * width;
      std::transform(row, row + width, std::back_inserter(to), [=](float number) { return factor * number; });
    }
  }
}

/// A trace without tokens: the routing is known once the layer has run.
template <class Op>
MemoryTrace traced(const Op& op, MemoryRule rule, ConstTensor beta) {
  const Shape& state = op.initial_state.shape;
  MemoryTrace trace;
  trace.rule = rule;
  trace.H = state[1];
  trace.K = state[2];
  trace.V = state[3];
  trace.decay_width = op.log_decay ? op.log_decay.row_size() / op.log_decay.shape[1] : 0;
  trace.slots.resize(static_cast<std::size_t>(state[0]));
  for (std::int64_t s = 0; s < op.segments.count(); ++s) {
    SlotVisits& visits = trace.slots[static_cast<std::size_t>(op.segments.slot_of(s))];
    const std::int64_t first = op.segments.cu_seqlens[static_cast<std::size_t>(s)];
    const std::int64_t n = op.segments.cu_seqlens[static_cast<std::size_t>(s + 1)] - first;
    visits.token.resize(static_cast<std::size_t>(n));
    append_heads(visits.q, op.q, first, n, trace.H, op.scale);
    append_heads(visits.k, op.k, first, n, trace.H);
    append_heads(visits.v, op.v, first, n, trace.H);
    append_heads(visits.o, op.o, first, n, trace.H);
    if (op.log_decay) append_heads(visits.log_decay, op.log_decay, first, n, trace.H);
    if (beta) append_heads(visits.beta, beta, first, n, trace.H);
    if (rule == MemoryRule::delta && !beta) visits.beta.assign(static_cast<std::size_t>(n * trace.H), 1.0F);
  }
  return trace;
}

/// Slot by slot the tokens of its visits; a slot that is not routed to is visited by all.
void name_tokens(MemoryTrace& trace, const MixerLayout& layout, const Selection& selection) {
  const std::int64_t first_partition = layout.has_shared_slot ? 1 : 0;
  for (std::size_t slot = 0; slot < trace.slots.size(); ++slot) {
    std::vector<std::int32_t>& token = trace.slots[slot].token;
    const std::int64_t partition = static_cast<std::int64_t>(slot) - first_partition;
    if (layout.partitions > 0 && partition >= 0 && !token.empty()) {
      token = selection.tokens(partition);
    } else {
      for (std::size_t t = 0; t < token.size(); ++t) token[t] = static_cast<std::int32_t>(t);
    }
  }
}

}  // namespace

std::int64_t SlotVisits::until(std::int64_t token_) const { return std::upper_bound(token.begin(), token.end(), token_) - token.begin(); }

/// The CPU's operations; the memories' operands are kept after each call.
class MemoryTracer::Backend final : public statescope::Backend {
 public:
  explicit Backend(int threads) : cpu_(make_cpu_backend(threads)) {}

  std::vector<MemoryTrace> kept;

  std::string description() const override { return cpu_->description(); }
  Buffer allocate(std::size_t bytes) override { return cpu_->allocate(bytes); }
  void upload(Tensor device, ConstTensor host) override { cpu_->upload(device, host); }
  void download(Tensor host, ConstTensor device) override { cpu_->download(host, device); }
  ConstTensor adopt(ConstTensor host, Buffer& owner) override { return cpu_->adopt(host, owner); }
  void fill(Tensor x, float value) override { cpu_->fill(x, value); }
  void copy(Tensor dst, ConstTensor src) override { cpu_->copy(dst, src); }
  void gather_rows(Tensor dst, ConstTensor src, const std::int32_t* rows) override { cpu_->gather_rows(dst, src, rows); }
  void scatter_add_rows(Tensor dst, ConstTensor src, const std::int32_t* rows, ConstTensor weight) override {
    cpu_->scatter_add_rows(dst, src, rows, weight);
  }
  void embed(Tensor y, ConstTensor table, const std::int32_t* ids) override { cpu_->embed(y, table, ids); }
  void linear(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias) override { cpu_->linear(y, x, weight, bias); }
  void rms_norm(Tensor y, ConstTensor x, ConstTensor weight, float eps, float offset) override {
    cpu_->rms_norm(y, x, weight, eps, offset);
  }
  void rms_norm_plain(Tensor y, ConstTensor x, std::int64_t group, float eps) override { cpu_->rms_norm_plain(y, x, group, eps); }
  void l2_norm(Tensor y, ConstTensor x) override { cpu_->l2_norm(y, x); }
  void sum_norm(Tensor y, ConstTensor x, float eps) override { cpu_->sum_norm(y, x, eps); }
  void softmax(Tensor y, ConstTensor x, float temperature) override { cpu_->softmax(y, x, temperature); }
  void activate(Tensor y, ConstTensor x, Activation act) override { cpu_->activate(y, x, act); }
  void gate(Tensor y, ConstTensor a, ConstTensor b, Activation act) override { cpu_->gate(y, a, b, act); }
  void add(Tensor y, ConstTensor a, ConstTensor b, float factor) override { cpu_->add(y, a, b, factor); }
  void scale_heads(Tensor y, ConstTensor x, ConstTensor g, float scale) override { cpu_->scale_heads(y, x, g, scale); }
  void divide_heads(Tensor y, ConstTensor x, ConstTensor d, float eps) override { cpu_->divide_heads(y, x, d, eps); }
  void log_sigmoid_decay(Tensor y, ConstTensor x, float normalizer, float clamp_min) override {
    cpu_->log_sigmoid_decay(y, x, normalizer, clamp_min);
  }
  void gated_delta_decay(Tensor y, ConstTensor a, ConstTensor A_log, ConstTensor dt_bias) override {
    cpu_->gated_delta_decay(y, a, A_log, dt_bias);
  }
  void softplus_clamp(Tensor y, ConstTensor x, ConstTensor dt_bias, float dt_min, float dt_max) override {
    cpu_->softplus_clamp(y, x, dt_bias, dt_min, dt_max);
  }
  void one_minus_exp(Tensor y, ConstTensor x) override { cpu_->one_minus_exp(y, x); }
  void rope(Tensor y, ConstTensor x, std::int64_t first, double theta, std::int64_t rotary) override {
    cpu_->rope(y, x, first, theta, rotary);
  }
  void top_k(Tensor ids, ConstTensor scores) override { cpu_->top_k(ids, scores); }
  void renormalise(Tensor y, ConstTensor gate, ConstTensor ids) override { cpu_->renormalise(y, gate, ids); }
  void row_sparse(Tensor k, Tensor log_decay, ConstTensor z, std::int64_t topk, bool skip_decay) override {
    cpu_->row_sparse(k, log_decay, z, topk, skip_decay);
  }
  void short_convolution(const ShortConvolution& op) override { cpu_->short_convolution(op); }
  void softmax_attention(const SoftmaxAttention& op, std::int64_t chunk_size) override { cpu_->softmax_attention(op, chunk_size); }
  void row_cosine(Tensor cosine, ConstTensor z) override { cpu_->row_cosine(cosine, z); }
  void singular_values(Tensor sigma, ConstTensor z, Workspace& workspace) override { cpu_->singular_values(sigma, z, workspace); }

  void decayed_outer_product(const DecayedOuterProduct& op, std::int64_t chunk_size) override {
    cpu_->decayed_outer_product(op, chunk_size);
    kept.push_back(traced(op, MemoryRule::outer_product, {}));
    kept.back().decay_axis = op.decay_axis;
  }
  void gated_delta_rule(const GatedDeltaRule& op, std::int64_t chunk_size) override {
    cpu_->gated_delta_rule(op, chunk_size);
    kept.push_back(traced(op, MemoryRule::delta, op.beta));
  }

 private:
  std::unique_ptr<statescope::Backend> cpu_;
};

MemoryTracer::MemoryTracer(std::shared_ptr<const Checkpoint> checkpoint, int threads)
    : backend_(std::make_shared<Backend>(threads)), model_(Model::load(std::move(checkpoint), backend_)) {}

MemoryTracer::~MemoryTracer() = default;

std::vector<MemoryTrace> MemoryTracer::trace(std::int64_t layer, std::span<const float> residual, std::int64_t prompt_length,
                                             ChannelSink* channels) {
  const std::int64_t D = model_->hidden(), T = static_cast<std::int64_t>(residual.size()) / D;
  const MixerLayout& layout = model_->layout(layer);
  Selection selection(channels);
  MixerState state = make_state(layout, *backend_);
  backend_->kept.clear();
  model_->replay(layer, state, ConstTensor(residual.data(), DType::f32, {T, D}), 0, {.prompt_length = prompt_length}, &selection);
  // Who hears all channels has the memory read once more, with G^Q = 1.
  if (backend_->kept.size() > layout.memory.size()) backend_->kept.resize(layout.memory.size());
  for (MemoryTrace& trace : backend_->kept) name_tokens(trace, layout, selection);
  return std::move(backend_->kept);
}

}  // namespace statescope

#include "engine/analysis/memory_trace.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "engine/config/host_floats.h"
#include "engine/mixers/parts.h"

namespace statescope {
namespace {

/// Which tokens of a stretch that begins at token `first` the routing sent to which partition.
class Selection final : public ChannelSink {
 public:
  /// `next` hears all channels too; null: nobody.
  Selection(std::int64_t first, ChannelSink* next) : first_(first), next_(next) {}

  void channel(std::string_view name, ConstTensor values) override {
    if (next_) next_->channel(name, values);
    if (name != "partition_selected") return;
    for (std::int64_t t = 0; t < values.rows(); ++t) {
      for (std::int64_t w = 0; w < values.row_size(); ++w) tokens_[values.i32(t)[w]].push_back(static_cast<std::int32_t>(first_ + t));
    }
  }
  bool wants_all() const override { return next_ && next_->wants_all(); }
  /// Ascending.
  const std::vector<std::int32_t>& tokens(std::int64_t partition) { return tokens_[static_cast<std::int32_t>(partition)]; }

 private:
  std::int64_t first_;
  ChannelSink* next_;
  std::map<std::int32_t, std::vector<std::int32_t>> tokens_;
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

/// log α with `width` numbers a head instead of `was`, which was 0 (no decay), 1 or as many.
std::vector<float> widened(const std::vector<float>& log_decay, std::int64_t heads, std::int64_t was, std::int64_t width) {
  if (was == width) return log_decay;
  std::vector<float> wide;
  for (std::int64_t i = 0; i < heads; ++i)
    wide.insert(wide.end(), static_cast<std::size_t>(width), was == 0 ? 0 : log_decay[static_cast<std::size_t>(i)]);
  return wide;
}

/// From now on with at least `width` numbers of decay a head.
void widen(MemoryTrace& trace, std::int64_t width) {
  if (trace.decay_width >= width) return;
  for (SlotVisits& visits : trace.slots) visits.log_decay = widened(visits.log_decay, visits.count() * trace.H, trace.decay_width, width);
  trace.decay_width = width;
}

/// The visits of one call of a memory, behind those of earlier ones, without their tokens: the routing is known once the layer has run.
template <class Op>
void append_visits(MemoryTrace& trace, const Op& op, ConstTensor beta) {
  const std::int64_t decays = op.log_decay ? op.log_decay.row_size() / op.log_decay.shape[1] : 0;
  widen(trace, decays);
  for (std::int64_t s = 0; s < op.segments.count(); ++s) {
    SlotVisits& visits = trace.slots[static_cast<std::size_t>(op.segments.slot_of(s))];
    const std::int64_t first = op.segments.cu_seqlens[static_cast<std::size_t>(s)];
    const std::int64_t n = op.segments.cu_seqlens[static_cast<std::size_t>(s + 1)] - first;
    visits.token.resize(visits.token.size() + static_cast<std::size_t>(n));
    append_heads(visits.q, op.q, first, n, trace.H, op.scale);
    append_heads(visits.k, op.k, first, n, trace.H);
    append_heads(visits.v, op.v, first, n, trace.H);
    append_heads(visits.o, op.o, first, n, trace.H);
    std::vector<float> log_decay;
    if (op.log_decay) append_heads(log_decay, op.log_decay, first, n, trace.H);
    log_decay = widened(log_decay, n * trace.H, decays, trace.decay_width);
    visits.log_decay.insert(visits.log_decay.end(), log_decay.begin(), log_decay.end());
    if (beta) append_heads(visits.beta, beta, first, n, trace.H);
    if (trace.rule == MemoryRule::delta && !beta) visits.beta.resize(visits.beta.size() + static_cast<std::size_t>(n * trace.H), 1.0F);
  }
}

/// The same of a selective scan: q = C, k = B, v = Δ x.
void append_visits(MemoryTrace& trace, const SelectiveScan& op) {
  for (std::int64_t s = 0; s < op.segments.count(); ++s) {
    SlotVisits& visits = trace.slots[static_cast<std::size_t>(op.segments.slot_of(s))];
    const std::int64_t first = op.segments.cu_seqlens[static_cast<std::size_t>(s)];
    const std::int64_t n = op.segments.cu_seqlens[static_cast<std::size_t>(s + 1)] - first;
    visits.token.resize(visits.token.size() + static_cast<std::size_t>(n));
    append_heads(visits.q, op.C, first, n, trace.H);
    append_heads(visits.k, op.B, first, n, trace.H);
    append_heads(visits.dt, op.dt, first, n, trace.H, op.decay_factor);
    append_heads(visits.o, op.o, first, n, trace.H);
    for (std::int64_t t = first; t < first + n; ++t)
      std::transform(op.x.f32(t), op.x.f32(t) + op.x.row_size(), op.dt.f32(t), std::back_inserter(visits.v), std::multiplies{});
    visits.log_decay.resize(visits.log_decay.size() + static_cast<std::size_t>(n * trace.H * trace.decay_width));
  }
}

/// The same of a memory with two keys.
void append_visits(MemoryTrace& trace, const Wkv& op) {
  trace.reads_first = op.reads_first;
  append_visits(trace, op, {});
  for (std::int64_t s = 0; op.erase_key && s < op.segments.count(); ++s) {
    SlotVisits& visits = trace.slots[static_cast<std::size_t>(op.segments.slot_of(s))];
    const std::int64_t first = op.segments.cu_seqlens[static_cast<std::size_t>(s)];
    const std::int64_t n = op.segments.cu_seqlens[static_cast<std::size_t>(s + 1)] - first;
    append_heads(visits.erase_key, op.erase_key, first, n, trace.H);
    append_heads(visits.erase_along, op.erase_along, first, n, trace.H);
  }
}

/// Slot by slot the tokens [from, to) of its last visits; a slot that is not routed to is visited by all.
void name_tokens(MemoryTrace& trace, const MixerLayout& layout, Selection& selection, std::int64_t from, std::int64_t to) {
  const std::int64_t first_partition = layout.has_shared_slot ? 1 : 0;
  for (std::size_t slot = 0; slot < trace.slots.size(); ++slot) {
    std::vector<std::int32_t>& token = trace.slots[slot].token;
    const std::int64_t partition = static_cast<std::int64_t>(slot) - first_partition;
    if (layout.partitions > 0 && partition >= 0) {
      const std::vector<std::int32_t>& came = selection.tokens(partition);
      std::copy(came.begin(), came.end(), token.end() - std::ssize(came));
    } else {
      const std::int64_t n = (to - from) * trace.steps;
      for (std::int64_t i = 0; i < n; ++i)
        token[token.size() - static_cast<std::size_t>(n - i)] = static_cast<std::int32_t>(from + i / trace.steps);
    }
  }
}

/// A visit that an intervention pays after `token`: of all heads, so far without effect.
void append_edit(MemoryTrace& trace, SlotVisits& visits, std::int64_t token) {
  visits.edits.push_back(visits.count());
  visits.token.push_back(static_cast<std::int32_t>(token));
  const auto append = [&](std::vector<float>& to, std::int64_t width, float value) {
    to.insert(to.end(), static_cast<std::size_t>(trace.H * width), value);
  };
  append(visits.q, trace.K, 0);
  append(visits.k, trace.K, 0);
  append(visits.v, trace.V, 0);
  append(visits.o, trace.V, 0);
  append(visits.log_decay, trace.decay_width, 0);
  if (trace.of_cells()) append(visits.dt, trace.V, 0);
  if (trace.rule == MemoryRule::delta) append(visits.beta, 1, 1);
  if (trace.rule != MemoryRule::two_keys) return;
  append(visits.erase_key, trace.K, 0);
  append(visits.erase_along, trace.K, 0);
}

/// S ← factor · S, where the address says: α = factor.
void append_scaling(MemoryTrace& trace, const ScaleState& scale, const MixerLayout& layout, std::int64_t token) {
  widen(trace, scale.row ? trace.K : 1);
  for (std::int64_t slot = 0; slot < std::ssize(trace.slots); ++slot) {
    if (scale.partition && slot != slot_of(*scale.partition, layout)) continue;
    SlotVisits& visits = trace.slots[static_cast<std::size_t>(slot)];
    append_edit(trace, visits, token);
    const auto decays = std::span(visits.log_decay).last(static_cast<std::size_t>(trace.H * trace.decay_width));
    for (std::int64_t i = 0; i < std::ssize(decays); ++i) {
      const bool meant = (!scale.head || i / trace.decay_width == *scale.head) && (!scale.row || i % trace.decay_width == *scale.row);
      if (meant) decays[static_cast<std::size_t>(i)] = std::log(scale.factor);
    }
  }
}

/// S ← `state` [slots, H, K, V]: α = 0, then every row r with the key e_r.
void append_rewriting(MemoryTrace& trace, ConstTensor state, std::int64_t token) {
  const auto last_row = [&](std::vector<float>& x, std::int64_t width) { return x.data() + std::ssize(x) - trace.H * width; };
  widen(trace, 1);
  for (std::int64_t slot = 0; slot < std::ssize(trace.slots); ++slot) {
    SlotVisits& visits = trace.slots[static_cast<std::size_t>(slot)];
    for (std::int64_t row = 0; row < trace.K; ++row) {
      append_edit(trace, visits, token);
      float *k = last_row(visits.k, trace.K), *v = last_row(visits.v, trace.V), *log_decay = last_row(visits.log_decay, trace.decay_width);
      if (row == 0) std::fill_n(log_decay, trace.H * trace.decay_width, -std::numeric_limits<float>::infinity());
      for (std::int64_t h = 0; h < trace.H; ++h) {
        k[h * trace.K + row] = 1;
        std::copy_n(state.f32(slot) + (h * trace.K + row) * trace.V, trace.V, v + h * trace.V);
      }
    }
  }
}

}  // namespace

std::int64_t SlotVisits::until(std::int64_t token_) const { return std::upper_bound(token.begin(), token.end(), token_) - token.begin(); }

bool SlotVisits::is_edit(std::int64_t i) const { return std::binary_search(edits.begin(), edits.end(), i); }

std::int64_t SlotVisits::reading(std::int64_t token_) const {
  std::int64_t visit = until(token_) - 1;
  while (visit >= 0 && is_edit(visit)) --visit;
  return visit >= 0 && token[static_cast<std::size_t>(visit)] == token_ ? visit : -1;
}

double MemoryTrace::log_decay_of_cell(const SlotVisits& visits, std::int64_t j, std::int64_t head, std::int64_t row,
                                      std::int64_t column) const {
  if (!of_cells()) return 0;
  const double dt = visits.dt[static_cast<std::size_t>((j * H + head) * V + column)];
  return dt * rates[static_cast<std::size_t>((head * K + row) * V + column)];
}

GateDecays::GateDecays(const MemoryTrace& trace, std::int64_t slot) : width(trace.of_cells() ? trace.K : trace.decay_width) {
  const SlotVisits& visits = trace.slots[static_cast<std::size_t>(slot)];
  const std::int64_t n = trace.H * trace.decay_width;
  for (std::int64_t i = 0; i < visits.count(); ++i) {
    const bool decays_again =
        !token.empty() && token.back() == visits.token[static_cast<std::size_t>(i)];  // a token decays in its first step
    if (visits.is_edit(i) || decays_again) continue;
    token.push_back(visits.token[static_cast<std::size_t>(i)]);
    if (!trace.of_cells()) log_decay.insert(log_decay.end(), visits.log_decay.begin() + i * n, visits.log_decay.begin() + (i + 1) * n);
    for (std::int64_t row = 0; trace.of_cells() && row < trace.H * trace.K; ++row) {
      double sum = 0;
      for (std::int64_t c = 0; c < trace.V; ++c) sum += trace.log_decay_of_cell(visits, i, row / trace.K, row % trace.K, c);
      log_decay.push_back(static_cast<float>(sum / static_cast<double>(trace.V)));
    }
  }
}

/// The CPU's operations; the memories' operands are kept after each call.
class MemoryTracer::Backend final : public statescope::Backend {
 public:
  explicit Backend(int threads) : cpu_(make_cpu_backend(threads)) {}

  /// Of the memories of `state`, in the order in which they are first read: the state that a trace is of, and the trace. What is read of
  /// other states (for read_gate_effective) is not kept.
  std::vector<std::pair<const void*, MemoryTrace>> kept;
  /// `begun`: the state is not that of a start with zeros.
  void watch(const MixerState& state, bool begun) {
    kept.clear();
    watched_.clear();
    begun_.clear();
    for (const Tensor& memory : state.memory) watched_.push_back(memory.data);
    for (const Tensor& memory : begun ? std::span(state.memory) : std::span<const Tensor>())
      begun_[memory.data].assign(memory.f32(), memory.f32() + memory.shape.size());
  }

  std::string description() const override { return cpu_->description(); }
  Buffer allocate(std::size_t bytes) override { return cpu_->allocate(bytes); }
  void upload(Tensor device, ConstTensor host) override { cpu_->upload(device, host); }
  void download(Tensor host, ConstTensor device) override { cpu_->download(host, device); }
  ConstTensor adopt(ConstTensor host, Buffer& owner) override { return cpu_->adopt(host, owner); }
  void run(const Operation& operation) override {
    if (run_by_parts(operation)) return;
    cpu_->run(operation);
    if (const auto* op = std::get_if<ops::DecayedOuterProduct>(&operation)) {
      if (MemoryTrace* trace = kept_of(op->memory, MemoryRule::outer_product, op->memory.decay_axis)) append_visits(*trace, op->memory, {});
    } else if (const auto* delta = std::get_if<ops::GatedDeltaRule>(&operation)) {
      if (MemoryTrace* trace = kept_of(delta->memory, MemoryRule::delta, DecayAxis::rows))
        append_visits(*trace, delta->memory, delta->memory.beta);
    } else if (const auto* scan = std::get_if<ops::SelectiveScan>(&operation)) {
      if (MemoryTrace* trace = kept_of(scan->memory, MemoryRule::outer_product, DecayAxis::rows)) append_visits(*trace, scan->memory);
    } else if (const auto* wkv = std::get_if<ops::Wkv>(&operation)) {
      const MemoryRule rule = wkv->memory.erase_key ? MemoryRule::two_keys : MemoryRule::outer_product;
      if (MemoryTrace* trace = kept_of(wkv->memory, rule, DecayAxis::rows)) append_visits(*trace, wkv->memory);
    }
  }

 private:
  /// The trace of the state that the operation changes; null: nobody watches that.
  template <class Op>
  MemoryTrace* kept_of(const Op& op, MemoryRule rule, DecayAxis axis) {
    const void* state = op.final_state.data;
    if (std::ranges::find(watched_, state) == watched_.end()) return nullptr;
    auto found = std::ranges::find(kept, state, &std::pair<const void*, MemoryTrace>::first);
    if (found == kept.end()) {
      const Shape& shape = op.final_state.shape;
      MemoryTrace trace{.rule = rule, .decay_axis = axis, .H = shape[1], .K = shape[2], .V = shape[3], .rates = {}, .slots = {}};
      trace.slots.resize(static_cast<std::size_t>(shape[0]));
      if constexpr (requires { op.A; }) {
        for (std::int64_t h = 0; h < trace.H; ++h) trace.rates.insert(trace.rates.end(), op.A.f32(h), op.A.f32(h) + op.A.row_size());
      }
      const auto begun = begun_.find(state);
      if (begun != begun_.end()) append_rewriting(trace, ConstTensor(begun->second.data(), DType::f32, shape), kMemoryTokens);
      found = kept.insert(kept.end(), {state, std::move(trace)});
    }
    return &found->second;
  }

  std::vector<const void*> watched_;
  std::map<const void*, std::vector<float>> begun_;  // of those that do not start with zeros
  std::unique_ptr<statescope::Backend> cpu_;
};

MemoryTracer::MemoryTracer(std::shared_ptr<const Checkpoint> checkpoint, int threads)
    : backend_(std::make_shared<Backend>(threads)), model_(Model::load(std::move(checkpoint), backend_)) {}

MemoryTracer::~MemoryTracer() = default;

std::vector<MemoryTrace> MemoryTracer::trace(std::int64_t layer, std::span<const float> residual, std::int64_t prompt_length,
                                             ChannelSink* channels, std::span<const Stretch> course, std::span<const float> companion) {
  const std::int64_t D = model_->hidden(), T = static_cast<std::int64_t>(residual.size()) / D;
  const MixerLayout& layout = model_->layout(layer);
  const Stretch whole{.to = T, .rules = {}, .edits = {}, .kept = {}, .k = {}, .v = {}};
  MixerState state = model_->start(layer);
  backend_->watch(state, model_->plan().memory_token_count > 0);
  std::vector<Rules> rules(static_cast<std::size_t>(model_->layers()));
  std::int64_t from = 0;
  for (const Stretch& stretch : course.empty() ? std::span(&whole, 1) : course) {
    Selection selection(from, channels);
    rules[static_cast<std::size_t>(layer)] = stretch.rules;
    const ConstTensor entered(residual.data() + from * D, DType::f32, {stretch.to - from, D});
    ForwardOptions options{.prompt_length = prompt_length, .rules = rules};
    Buffer beside;
    if (model_->reads_companion(layer)) {
      const Shape shape{stretch.to - from, static_cast<std::int64_t>(companion.size()) / T};
      beside = backend_->allocate(static_cast<std::size_t>(shape.size()) * sizeof(float));
      options.companion = Tensor(beside.get(), DType::f32, shape);
      backend_->upload(options.companion, ConstTensor(companion.data() + from * shape[1], DType::f32, shape));
    }
    model_->replay(layer, state, entered, from, options, &selection);
    for (auto& [memory, trace] : backend_->kept) {
      trace.steps = layout.steps;
      name_tokens(trace, layout, selection, from, stretch.to);
    }
    from = stretch.to;
    edit(state, layout, stretch);
  }
  std::vector<MemoryTrace> traces;
  for (auto& [memory, trace] : backend_->kept) traces.push_back(std::move(trace));
  return traces;
}

std::vector<float> MemoryTracer::memory_keys(std::int64_t layer) {
  const KvCache kv = model_->start(layer).kv;
  return kv.length == 0 ? std::vector<float>() : host_floats(model_->backend(), kv.first(kv.length).k);
}

/// What was done to the layer behind the stretch, in its state and in the traces of its memories.
void MemoryTracer::edit(MixerState& state, const MixerLayout& layout, const Stretch& stretch) {
  const auto& [scaled, imported] = stretch.edits;
  if (scaled.empty() && !imported) return;
  if (state.everything) backend_->upload(state.everything, ConstTensor(stretch.kept.data(), DType::f32, state.everything.shape));
  if (!stretch.k.empty()) {
    const std::int64_t tokens = std::ssize(stretch.k) / (layout.kv_heads * layout.key_dim);
    state.kv.length = 0;
    append(state.kv, *backend_, ConstTensor(stretch.k.data(), DType::f32, {tokens, layout.kv_heads, layout.key_dim}),
           layout.value_dim > 0 ? ConstTensor(stretch.v.data(), DType::f32, {tokens, layout.kv_heads, layout.value_dim}) : ConstTensor{},
           layout.index_dim > 0 ? ConstTensor(stretch.index.data(), DType::f32, {tokens, layout.index_dim}) : ConstTensor{});
  }
  const bool anew = imported || std::ranges::any_of(scaled, [](const ScaleState& scale) { return scale.factor < 0; });
  for (std::size_t m = 0; m < state.memory.size(); ++m) {
    const auto found = std::ranges::find(backend_->kept, state.memory[m].data, &std::pair<const void*, MemoryTrace>::first);
    if (found == backend_->kept.end()) continue;
    if (anew) append_rewriting(found->second, state.memory[m], stretch.to - 1);
    for (const ScaleState& scale : scaled) {
      const bool meant = !scale.row || m == 0 || layout.memory[m].name == "z";
      if (!anew && meant) append_scaling(found->second, scale, layout, stretch.to - 1);
    }
  }
}

}  // namespace statescope

#include "kernels/program/run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <vector>

#include "kernels/checked/checked_device.h"
#include "kernels/fused/by_parts.h"
#include "kernels/fused/delta_rules.h"
#include "kernels/fused/latent_attention.h"
#include "kernels/program/columns.h"
#include "kernels/program/routed_rows.h"
#include "kernels/program/tensors.h"

namespace statescope::program {
namespace {

/// Every number of x, on the host.
std::vector<float> on_host(const Pass& pass, ConstTensor x) {
  const Workspace::Mark mark(pass.workspace);
  const Tensor together = pass.workspace.tensor(x.shape);
  pass.backend.copy(together, x);
  std::vector<float> numbers(static_cast<std::size_t>(x.shape.size()));
  pass.backend.download(Tensor(numbers.data(), DType::f32, x.shape), together);
  return numbers;
}

class Runner {
 public:
  Runner(const Program& program, const Pass& pass) : program_(program), pass_(pass), tensors_(program, pass) {}

  void operator()(const Linear& op) { backend().linear(to(op.y), from(op.x), op.weight, op.bias); }
  void operator()(const LinearOfHeads& op) {
    const Tensor y = to(op.y);
    const ConstTensor x = from(op.x);
    const std::int64_t n = op.weight.row_size();
    for (std::int64_t h = 0; h < op.weight.rows(); ++h) backend().linear(y.columns(h, {1}), x.columns(h * n, {n}), op.weight.slice(h, 1));
  }
  void operator()(const LinearEachHead& op) {
    const Tensor y = to(op.y);
    backend().linear(Tensor(y.data, y.dtype, {y.rows() * y.shape[1], y.shape[2]}), head_rows(from(op.x)), op.weight, op.bias);
  }
  void operator()(const Apply& op) { std::visit(Applying{*this, to(op.y), from(op.x)}, op.f); }
  void operator()(const Combine& op) { std::visit(Combining{backend(), to(op.y), from(op.a), from(op.b)}, op.f); }
  void operator()(const Constant& op) { tensors_.set_constant(op.y, op.row); }
  void operator()(const Fill& op) { backend().fill(to(op.y), op.number); }
  void operator()(const Columns& op) {
    Tensor y = to(op.y);
    ConstTensor x = from(op.x);
    if (op.of_heads) x = head_rows(x), y = {y.data, y.dtype, x.shape};
    copy_ranges(backend(), y, x, op.ranges);
  }
  void operator()(const Stack& op) {
    const ConstTensor a = from(op.a), b = from(op.b);
    const Tensor y = to(op.y);
    backend().copy(y.columns(0, {a.row_size()}), flat(a));
    backend().copy(y.columns(a.row_size(), {b.row_size()}), flat(b));
  }
  void operator()(const Convolution& op) {
    const Tensor cache = pass_.conv_caches[op.cache];
    backend().short_convolution({.x = from(op.x),
                                 .weight = op.weight,
                                 .bias = op.bias,
                                 .act = op.act,
                                 .segments = segments_of(op.x),
                                 .initial_cache = cache,
                                 .final_cache = cache,
                                 .y = to(op.y)});
  }
  void operator()(const TopK& op) {
    const ConstTensor scores = from(op.scores);
    const Tensor ids = to(op.ids);
    if (scores.shape.rank() == 2) return backend().top_k(ids, scores);
    backend().top_k(Tensor(ids.data, ids.dtype, {ids.rows() * ids.shape[1], ids.shape[2]}), head_rows(scores));
  }
  void operator()(const Route& op) {
    std::vector<std::int32_t> all;
    for (std::int64_t t = 0; t < pass_.tokens; ++t) all.insert(all.end(), op.partitions.begin(), op.partitions.end());
    const Tensor ids = to(op.ids);
    backend().upload(ids, ConstTensor(all.data(), DType::i32, ids.shape));
  }
  void operator()(const Renormalise& op) { backend().renormalise(to(op.y), from(op.gate), from(op.ids)); }
  void operator()(const RowSparse& op) {
    const Tensor decay = to(op.sparse_decay);
    if (decay.data != from(op.log_decay).data) backend().copy(decay, from(op.log_decay));
    backend().row_sparse(to(op.k), decay, from(op.z), op.topk, op.skip_decay);
  }
  void operator()(const Pair& op) {
    const SparsePair made = pair(op);
    if (op.softmax) return backend().softmax_pair(made.pair, made.shared, made.sparse, made.more);
    backend().sum_pair(made.pair, made.shared, made.sparse, made.more, made.act);
  }
  void operator()(const CopyState& op) { backend().copy(to(op.y), pass_.memory[op.memory]); }

  void operator()(const OuterProduct& op) { backend().decayed_outer_product(memory(op), pass_.chunk_size); }
  void operator()(const DeltaRule& op) {
    op.steps > 1 ? gated_delta_rule_steps(memory(op), op.steps, pass_.chunk_size, backend(), pass_.workspace)
                 : backend().gated_delta_rule(memory(op), pass_.chunk_size);
  }
  void operator()(const SelectiveScan& op) {
    const Tensor state = state_of(op.state);
    backend().selective_scan(
        {from(op.x), from(op.dt), op.A, from(op.B), from(op.C), op.decay_factor, one_segment(), state, state, to(op.o)});
  }
  void operator()(const Wkv& op) {
    const Tensor state = state_of(op.state);
    const ConstTensor erase_key = from(op.erase_key), erase_along = from(op.erase_along);
    backend().wkv({from(op.q), from(op.k), from(op.v), from(op.log_decay), erase_key, erase_along, op.reads_first, op.scale, one_segment(),
                   state, state, to(op.o)});
  }
  void operator()(const LogLinearAttention& op) {
    const Tensor S = state_of(op.state);
    backend().log_linear_attention(
        {from(op.q), from(op.k), from(op.v), from(op.log_decay), from(op.level_scale), pass_.position, S, S, to(op.o)});
  }
  void operator()(const StateSpace& op) {
    backend().state_space({from(op.u), op.A, op.B, op.C, state_of(op.state), state_of(op.state), to(op.o)});
  }
  void operator()(const SparseMemory& op) { backend().sparse_state(memory(op), pass_.chunk_size, pass_.workspace); }

  void operator()(const Dispatch& op) {
    const ConstTensor x = from(op.x);
    routed_ = RoutedRows(backend(), from(op.ids), pass_.cu_seqlens, op.memories, op.shared);
    tensors_.set_routed_rows(routed_.rows());
    backend().gather_rows(to(op.y), x, routed_.token.data());
  }
  void operator()(const LinearOfSlots& op) {
    const ConstTensor x = from(op.x);
    const Tensor y = to(op.y);
    for (std::size_t r = 0; r < routed_.slot.size(); ++r) {
      const std::int64_t begin = routed_.cu_seqlens[r], count = routed_.cu_seqlens[r + 1] - begin;
      backend().linear(y.slice(begin, count), x.slice(begin, count), op.weights[static_cast<std::size_t>(routed_.slot[r])]);
    }
  }
  void operator()(const Collect& op) {
    const ConstTensor x = flat(from(op.x)), gate = from(op.gate);
    const Tensor y = flat(to(op.y));
    routed_.shared > 0 ? backend().copy(y, x.slice(0, routed_.shared)) : backend().fill(y, 0);
    const std::int64_t items = routed_.rows() - routed_.shared;
    const Tensor of_item = pass_.workspace.tensor({items, 1});
    backend().gather_rows(of_item, ConstTensor(gate.data, DType::f32, {pass_.tokens * routed_.memories, 1}),
                          routed_.gate.data() + routed_.shared);
    backend().scatter_add_rows(y, x.slice(routed_.shared, items), routed_.token.data() + routed_.shared,
                               Tensor(of_item.data, DType::f32, {items}));
  }
  void operator()(const BySlot& op) {
    const Tensor y = to(op.y);
    backend().fill(y, 0);
    const std::vector<std::int32_t> places = routed_.places(y.shape[1]);
    backend().scatter_add_rows(Tensor(y.data, DType::f32, {pass_.tokens * y.shape[1], y.shape[2]}), from(op.x), places.data());
  }

  void operator()(const Append& op) { append(*pass_.kv, backend(), from(op.k), from(op.v), from(op.index)); }
  void operator()(const Attend& op) {
    const ConstTensor chosen = from(op.chosen);
    const BlockTopK blocks{.block_size = op.block_size, .topk = op.topk, .until = pass_.prompt_length};
    backend().softmax_attention({.q = from(op.q),
                                 .k = cached(pass_.kv->k),
                                 .v = cached(pass_.kv->v),
                                 .scale = op.scale,
                                 .window = op.window,
                                 .blocks = chosen ? BlockTopK{} : blocks,
                                 .pattern = op.pattern,
                                 .chosen = {chosen, std::max<std::int64_t>(op.block_size, 1)},
                                 .segments = one_segment(),
                                 .cu_seqlens_k = all_keys(),
                                 .o = to(op.o),
                                 .selected_blocks = to(op.selected)},
                                pass_.chunk_size);
  }
  void operator()(const LatentAttend& op) {
    latent_attention({.q = together(from(op.q), backend(), pass_.workspace),
                      .shared_first = op.shared_first,
                      .latents = cached(pass_.kv->k),
                      .W_k = op.W_k,
                      .W_v = op.W_v,
                      .scale = op.scale,
                      .chosen = {from(op.chosen)},
                      .segments = one_segment(),
                      .cu_seqlens_k = all_keys(),
                      .o = to(op.o)},
                     pass_.chunk_size, backend(), pass_.workspace);
  }
  void operator()(const CompressedAttend& op) {
    backend().compressed_attention({.q = from(op.q),
                                    .k = cached(pass_.kv->k),
                                    .v = cached(pass_.kv->v),
                                    .scale = op.scale,
                                    .block_size = op.block_size,
                                    .segments = one_segment(),
                                    .cu_seqlens_k = all_keys(),
                                    .o = to(op.o),
                                    .selected = to(op.selected),
                                    .importance = to(op.importance)});
  }
  void operator()(const ChooseTokens& op) {
    backend().choose_tokens({.q = from(op.q),
                             .k = cached(pass_.kv->index),
                             .weight = from(op.weight),
                             .scale = op.scale,
                             .segments = one_segment(),
                             .cu_seqlens_k = all_keys(),
                             .selected = to(op.selected),
                             .scores = to(op.scores)});
  }

  void operator()(const MeanOfHeads& op) {
    const Tensor y = to(op.y);
    const ConstTensor gate = from(op.gate);
    const Workspace::Mark mark(pass_.workspace);
    const std::int64_t n = gate.row_size() / op.heads;
    const Tensor opened = pass_.workspace.tensor({pass_.tokens, gate.row_size()});
    backend().copy(opened, flat(gate));
    backend().activate(opened, opened, op.act);
    const std::vector<float> numbers = on_host(pass_, opened);
    std::vector<float> means;
    for (auto first = numbers.begin(); first != numbers.end(); first += n)
      means.push_back(static_cast<float>(std::accumulate(first, first + n, 0.0) / static_cast<double>(n)));
    upload(y, means);
  }
  void operator()(const Distance& op) {
    const std::vector<float> own = on_host(pass_, from(op.own)), other = on_host(pass_, from(op.other));
    const auto width = static_cast<std::ptrdiff_t>(own.size()) / pass_.tokens;
    std::vector<float> distances;
    for (auto a = own.begin(), b = other.begin(); a != own.end(); a += width, b += width) {
      // ‖other − own‖ / ‖own‖
      const double change =
          std::transform_reduce(a, a + width, b, 0.0, std::plus<>(), [](double p, double q) { return (q - p) * (q - p); });
      const double size = std::transform_reduce(a, a + width, 0.0, std::plus<>(), [](double p) { return p * p; });
      distances.push_back(change == 0 ? 0.0F : static_cast<float>(std::sqrt(change / size)));
    }
    upload(to(op.y), distances);
  }

  void operator()(const Products& op) {
    place_side_by_side(op.all);
    std::vector<Projection> all;
    for (const Product& p : op.all) all.push_back(projection(p));
    backend().project(all, pass_.workspace);
  }
  void operator()(const GatedNorm& op) {
    const ConstTensor x = from(op.x), gate = from(op.gate);
    backend().gated_rms_norm(flat(to(op.y)), flat(x), op.norm.weight, op.norm.group, op.norm.eps, flat(gate), op.act);
  }
  void operator()(const ForgetGatedOuterProduct& op) {
    const Projection gate = projection(op.gate);
    backend().forget_gated_outer_product(memory(op.memory), gate, pass_.chunk_size, pass_.workspace);
  }
  void operator()(const UnitDeltaRule& op) {
    backend().unit_delta_rule(memory(op.memory), pass_.chunk_size, pass_.workspace, norm(op.readout, op.gate, op.gate_act));
  }
  void operator()(const SparseMemoryFrom& op) {
    SparseSources sources{.q = pair(op.q),
                          .k = pair(op.k),
                          .logits = from(op.logits),
                          .gate = to(op.memory.gate),
                          .selected = to(op.memory.selected),
                          .by_logits = op.by_logits,
                          .decays = {}};
    for (const Product& p : op.decays) sources.decays.push_back(projection(p));
    backend().sparse_state(memory(op.memory), sources, pass_.chunk_size, pass_.workspace);
  }

  ConstTensor from(Value v) const { return tensors_.from(v); }
  const Tensors& tensors() const { return tensors_; }

 private:
  struct Applying {
    Runner& runner;
    Tensor y;
    ConstTensor x;
    void operator()(Activation act) const { backend().activate(y, x, act); }
    void operator()(const RmsNorm& f) const {
      f.weight ? backend().rms_norm(y, x, f.weight, f.eps, f.offset) : backend().rms_norm_plain(y, x, f.group, f.eps);
    }
    void operator()(const LayerNorm& f) const { backend().layer_norm(y, x, f.weight, f.bias, f.group, f.eps); }
    void operator()(const L2Norm&) const { backend().l2_norm(y, x); }
    void operator()(const SumNorm& f) const { backend().sum_norm(y, x, f.eps); }
    void operator()(const Softmax& f) const { backend().softmax(y, x, f.temperature); }
    void operator()(const ForgetGate& f) const { backend().log_sigmoid_decay(y, x, f.normalizer, f.clamp_min); }
    void operator()(const DeltaDecay& f) const { backend().gated_delta_decay(y, x, f.A_log, f.dt_bias, f.lower_bound); }
    void operator()(const SoftplusClamp& f) const { backend().softplus_clamp(y, x, f.dt_bias, f.dt_min, f.dt_max); }
    void operator()(const OneMinusExp&) const { backend().one_minus_exp(y, x); }
    void operator()(const Rope& f) const { backend().rope(y, x, runner.pass_.position, f.theta, f.rotary); }
    void operator()(const ListedRope& f) const {
      const Pass& pass = runner.pass_;
      const std::int64_t end = pass.position + pass.tokens;
      for (std::int64_t t = pass.position, next = 0; t < end; t = next) {
        const bool in_prompt = t < pass.prompt_length;
        next = !f.by_length ? end : in_prompt ? std::min(end, pass.prompt_length) : t + 1;
        const std::vector<float> omega = f.frequencies(in_prompt ? pass.prompt_length : t + 1);
        const std::int64_t first = t - pass.position, count = next - t;
        backend().rope(y.slice(first, count), x.slice(first, count), t, Rotation{omega, f.factor});
      }
    }
    void operator()(const Times& f) const {
      if (f.factor == 0) return backend().fill(y, 0);
      const Workspace::Mark mark(runner.pass_.workspace);
      const Tensor factor = runner.pass_.workspace.tensor({x.rows(), 1});
      backend().fill(factor, f.factor);
      const std::int64_t width = x.row_size();
      backend().scale_heads(y.with_row({1, width}), x.with_row({1, width}), factor);
    }
    void operator()(const WithoutHead& f) const {
      const std::int64_t width = x.row_size() / f.heads;
      if (y.data != x.data) backend().copy(y, x);
      backend().fill(y.columns(f.head * width, {width}), 0);
    }
    Backend& backend() const { return runner.backend(); }
  };

  struct Combining {
    Backend& backend;
    Tensor y;
    ConstTensor a, b;
    void operator()(const Add& f) const { backend.add(y, a, b, f.factor); }
    void operator()(const Gate& f) const { backend.gate(y, a, b, f.act); }
    void operator()(const ScaleHeads&) const { backend.scale_heads(y, a, b); }
    void operator()(const DivideHeads& f) const { backend.divide_heads(y, a, b, f.eps); }
  };

  Backend& backend() const { return pass_.backend; }
  /// x [T, H, n] with a row for each token and head. A copy where tokens lie apart.
  ConstTensor head_rows(ConstTensor x) {
    x = together(x, backend(), pass_.workspace);
    return {x.data, x.dtype, {x.rows() * x.shape[1], x.shape[2]}};
  }
  Tensor to(Value v) { return tensors_.to(v); }
  ConstTensor cached(const Tensor& part) const { return part.slice(0, pass_.kv->length); }
  std::array<std::int32_t, 2> all_keys() const { return {0, static_cast<std::int32_t>(pass_.kv->length)}; }
  Segments one_segment() const { return {pass_.cu_seqlens, {}}; }
  Segments segments_of(Value v) const { return program_[v].rows == Rows::routed ? routed_.segments() : one_segment(); }
  static ConstTensor flat(ConstTensor x) { return x.with_row({x.row_size()}); }
  static Tensor flat(Tensor x) { return x.with_row({x.row_size()}); }
  void upload(Tensor y, const std::vector<float>& numbers) { backend().upload(y, ConstTensor(numbers.data(), DType::f32, y.shape)); }

  Tensor state_of(const StateOf& state) { return state.copy ? to(state.copy) : pass_.memory[state.index]; }
  DecayedOuterProduct memory(const OuterProduct& op) {
    const Tensor state = state_of(op.state);
    return {.q = from(op.q),
            .k = from(op.k),
            .v = from(op.v),
            .log_decay = made_or_not(op.log_decay),
            .decay_axis = op.decay_axis,
            .scale = op.scale,
            .segments = one_segment(),
            .initial_state = state,
            .final_state = state,
            .o = to(op.o)};
  }
  GatedDeltaRule memory(const DeltaRule& op) {
    const Tensor state = state_of(op.state);
    const GatedDeltaRule rule{.q = from(op.q),
                              .k = from(op.k),
                              .v = from(op.v),
                              .log_decay = from(op.log_decay),
                              .beta = from(op.beta),
                              .scale = op.scale,
                              .segments = segments_of(op.q),
                              .initial_state = state,
                              .final_state = state,
                              .o = to(op.o)};
    return op.undecayed_erase ? with_undecayed_erase(rule, from(op.undecayed_erase), backend(), pass_.workspace) : rule;
  }
  SparseState memory(const SparseMemory& op) {
    const Tensor state = state_of(op.state);
    return {.q = from(op.q),
            .k = from(op.k),
            .v = from(op.v),
            .log_decay = made_or_not(op.log_decay),
            .beta = from(op.beta),
            .gate = from(op.gate),
            .selected = from(op.selected),
            .writers = op.writers,
            .readers = op.readers,
            .gate_q = op.gate_q,
            .gate_k = op.gate_k,
            .gate_place = op.gate_place,
            .write_scale = op.writes_mean ? 1 / static_cast<float>(op.writers) : 1.0f,
            .scale = op.scale,
            .cu_seqlens = pass_.cu_seqlens,
            .initial_state = state,
            .final_state = state,
            .o = to(op.o)};
  }
  /// A decay that the memory makes itself has a place all the same.
  ConstTensor made_or_not(Value decay) {
    if (!decay || tensors_.is_made(program_.whole(decay))) return from(decay);
    return to(decay);
  }

  SparsePair pair(const Pair& op) {
    return {.pair = to(op.y),
            .shared = from(op.shared),
            .sparse = from(op.sparse),
            .more = from(op.more),
            .act = op.act,
            .softmax = op.softmax};
  }

  InputNorm norm(const std::optional<RmsNorm>& f, Value gate, Activation act) const {
    if (!f) return {};
    return {f->group, f->weight, f->eps, f->offset, gate ? flat(from(gate)) : ConstTensor{}, act};
  }

  Projection projection(const Product& p) {
    const ConstTensor x = from(p.x);
    Projection all{.x = flat(x),
                   .norm = p.x == program_.x() ? pass_.norm : norm(p.norm, p.gate, p.gate_act),
                   .weight = p.weight,
                   .bias = p.bias,
                   .y = flat(to(p.y)),
                   .finish = {},
                   .z = {}};
    if (const auto* act = std::get_if<Activation>(&p.finish)) all.finish = Activate{*act, {}};
    if (const auto* gate = std::get_if<ForgetGate>(&p.finish)) all.finish = *gate;
    if (const auto* decay = std::get_if<DeltaDecay>(&p.finish)) all.finish = *decay;
    if (const auto* convolution = std::get_if<Convolution>(&p.finish)) {
      // z has a place even if nobody reads it: what the convolution reads must be somewhere.
      const Tensor room = rooms_.contains(p.y.index) ? rooms_.at(p.y.index) : p.z ? flat(to(p.z)) : Tensor{};
      if (p.z) all.z = flat(to(p.z));
      all.finish = Convolve{convolution->weight, convolution->bias, convolution->act, pass_.conv_caches[convolution->cache], room};
    }
    if (p.y == program_.result && pass_.residual) {
      if (pass_.shows_result) all.z = all.y;
      all.y = pass_.residual;
      all.finish = Activate{.addend = pass_.residual};
    }
    return all;
  }

  /// Products of one x whose weights lie side by side put their results side by side, so that they may be one product.
  void place_side_by_side(std::span<const Product> products) {
    std::vector<const Product*> by_weight;
    for (const Product& p : products) {
      const bool convolved = std::holds_alternative<Convolution>(p.finish);
      const Value written = convolved && p.z ? p.z : p.y;
      if (convolved && !p.z) {
        by_weight.push_back(&p);  // its room
      } else if (program_[written].numbers == ValueType::rounded && !program_[written].of && written != program_.result) {
        by_weight.push_back(&p);
      }
    }
    std::ranges::sort(by_weight, std::less<>(), [](const Product* p) { return p->weight.data; });
    const auto follows = [](const Product* a, const Product* b) {
      const auto bytes = a->weight.shape.size() * static_cast<std::int64_t>(size_of(a->weight.dtype));
      return a->x == b->x && static_cast<const char*>(a->weight.data) + bytes == b->weight.data;
    };
    for (auto first = by_weight.begin(); first != by_weight.end();) {
      auto last = std::next(first);
      while (last != by_weight.end() && follows(*std::prev(last), *last)) ++last;
      place_in_one({first, last});
      first = last;
    }
  }
  void place_in_one(std::span<const Product* const> products) {
    constexpr std::int64_t pack = 8;
    const DType type = backend().activation_type(pass_.tokens);
    const bool in_packs = std::ranges::all_of(products, [](const Product* p) { return p->weight.rows() % pack == 0; });
    const auto width = std::transform_reduce(products.begin(), products.end(), std::int64_t{0}, std::plus<>(),
                                             [](const Product* p) { return p->weight.rows(); });
    Tensor all;
    const std::int64_t rows = tensors_.rows(program_[products.front()->x]);
    if (in_packs && type == DType::bf16) all = pass_.workspace.tensor({rows, width}, type);
    std::int64_t begin = 0;
    for (const Product* p : products) {
      const std::int64_t out = p->weight.rows();
      const bool convolved = std::holds_alternative<Convolution>(p->finish);
      const Tensor place = all ? all.columns(begin, {out}) : pass_.workspace.tensor({rows, out}, type);
      convolved && !p->z ? static_cast<void>(rooms_.emplace(p->y.index, place)) : tensors_.set(convolved ? p->z : p->y, place);
      begin += out;
    }
  }

  const Program& program_;
  const Pass& pass_;
  Tensors tensors_;
  RoutedRows routed_;
  std::map<std::int32_t, Tensor> rooms_;  // of a product's y: where what its convolution reads lies
};

}  // namespace

void run(const Program& program, const Pass& pass, const std::function<void(std::string_view, ConstTensor)>& show) {
  Runner runner(program, pass);
  const Operation* now = nullptr;
  try {
    for (const Operation& op : program.operations) std::visit(runner, *(now = &op));
  } catch (DevicesDiffer& difference) {
    difference.name_value(runner.tensors().name_of(*now, difference.memory()));
    throw;
  }
  for (const Channel& channel : program.channels) show(channel.name, runner.from(channel.value));
}

}  // namespace statescope::program

#include "kernels/step_program.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <list>
#include <map>
#include <optional>

namespace statescope {
namespace {

StepInstruction blank(StepCode code) {
  StepInstruction instruction;
  std::memset(static_cast<void*>(&instruction), 0,
              sizeof instruction);  // padding as well: programs are compared byte by byte
  instruction.code = code;
  return instruction;
}

std::int32_t int32(std::int64_t n) { return static_cast<std::int32_t>(n); }
constexpr std::int64_t most_numbers = std::numeric_limits<std::int32_t>::max();

bool one_row(ConstTensor x, DType dtype = DType::f32) {
  return x.data != nullptr && x.dtype == dtype && x.shape.rank() > 0 && x.rows() == 1 && x.row_size() > 0 && x.row_size() <= most_numbers;
}

bool vector_of(ConstTensor x, std::int64_t n) { return x.data != nullptr && x.dtype == DType::f32 && x.shape.size() == n; }

std::int64_t last_axis(ConstTensor x) { return x.shape.rank() > 1 ? x.shape[x.shape.rank() - 1] : 1; }

bool one_token(std::span<const std::int32_t> cu_seqlens) { return cu_seqlens.size() == 2 && cu_seqlens[0] == 0 && cu_seqlens[1] == 1; }

bool aligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }

/// Whether the kernel has room for a state [H, K, V], which it moves four numbers at a time.
bool fitting_state(ConstTensor from, ConstTensor to) {
  const auto in_fours = [](ConstTensor x) { return x && x.dtype == DType::f32 && x.stride % 4 == 0 && aligned(x.data); };
  return in_fours(from) && in_fours(to) && from.shape == to.shape && from.shape.rank() == 4 && from.row_size() > 0 &&
         from.row_size() <= most_numbers && from.shape[2] <= StepLimits::head && from.shape[3] % 4 == 0;
}

/// An operand [1, heads, width], heads ≤ H.
bool fitting_operand(ConstTensor x, std::int64_t H, std::int64_t width) {
  return one_row(x) && x.shape.rank() >= 2 && x.shape[1] >= 1 && x.shape[1] <= H && x.row_size() == x.shape[1] * width;
}

}  // namespace

// ---- recording -----------------------------------------------------------------------------------------------------------------------

bool StepTrace::full() const {
  const auto as_many = [](std::size_t n, std::int64_t most) { return static_cast<std::int64_t>(n) >= most; };
  return as_many(calls_.size(), StepLimits::calls) || weights_ >= StepLimits::streams || as_many(ids_.size(), StepLimits::ids);
}

bool StepTrace::record(const StepInstruction& call) {
  calls_.push_back(call);
  return true;
}

void StepTrace::clear() {
  calls_.clear();
  ids_.clear();
  weights_ = 0;
}

/// y[i] = f(a[i], b[i]...): operands as long as y.
bool StepTrace::map(StepInstruction call, Tensor y, std::initializer_list<ConstTensor> operands) {
  if (!one_row(y)) return false;
  call.n = int32(y.row_size());
  call.y = y.data;
  const std::array<const void**, 3> places{&call.a, &call.b, &call.c};
  std::size_t i = 0;
  for (const ConstTensor& x : operands) {
    if (!vector_of(x, y.row_size())) return false;
    *places.at(i++) = x.data;
  }
  return record(call);
}

/// Groups of m = `size` numbers; b: a weight [size] or null.
bool StepTrace::group(StepInstruction call, Tensor y, ConstTensor x, std::int64_t size, ConstTensor weight) {
  if (!one_row(y) || !vector_of(x, y.row_size()) || size < 1 || y.row_size() % size != 0) return false;
  call.n = int32(y.row_size());
  call.m = int32(size);
  call.y = y.data;
  call.a = x.data;
  call.b = weight.data;
  return record(call);
}

bool StepTrace::fill(Tensor x, float value) {
  StepInstruction call = blank(StepCode::fill);
  call.number[0] = value;
  return map(call, x, {});
}

bool StepTrace::copy(Tensor dst, ConstTensor src) {
  const bool words = dst.dtype == src.dtype && (dst.dtype == DType::f32 || dst.dtype == DType::i32);
  if (!words || !one_row(dst, dst.dtype) || !one_row(src, src.dtype) || dst.row_size() != src.row_size()) return false;
  if (dst.data == src.data) return true;
  StepInstruction call = blank(StepCode::copy);
  call.n = int32(dst.row_size());
  call.y = dst.data;
  call.a = src.data;
  return record(call);
}

/// n numbers of row ids[m] of N
bool StepTrace::embed(Tensor y, ConstTensor table, const std::int32_t* ids) {
  if (!one_row(y) || table.dtype == DType::i32 || table.row_size() != y.row_size() || ids[0] < 0 || ids[0] >= table.rows()) return false;
  StepInstruction call = blank(StepCode::embed);
  call.dtype = table.dtype;
  call.n = int32(y.row_size());
  call.m = int32(static_cast<std::int64_t>(ids_.size()));
  call.N = int32(table.rows());
  call.stride = table.stride * static_cast<std::int64_t>(size_of(table.dtype));
  call.y = y.data;
  call.a = table.data;
  ids_.push_back(ids[0]);
  return record(call);
}

/// y [n] = a [m] · b [n, m]ᵀ + d
bool StepTrace::linear(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias) {
  if (!one_row(y) || !one_row(x) || !weight || weight.dtype == DType::i32 || weight.shape.rank() != 2) return false;
  if (weight.row_size() != x.row_size() || weight.rows() != y.row_size() || (bias && !vector_of(bias, y.row_size()))) return false;
  StepInstruction call = blank(StepCode::linear);
  call.dtype = weight.dtype;
  call.n = int32(y.row_size());
  call.m = int32(x.row_size());
  call.stride = weight.stride * static_cast<std::int64_t>(size_of(weight.dtype));
  call.y = y.data;
  call.a = x.data;
  call.b = weight.data;
  call.d = bias.data;
  ++weights_;
  return record(call);
}

/// c: up
bool StepTrace::gated_linear(Tensor y, ConstTensor x, ConstTensor gate, ConstTensor up) {
  if (gate.dtype != up.dtype || gate.shape != up.shape || gate.stride != up.stride || !linear(y, x, gate, {})) return false;
  calls_.back().c = up.data;
  return true;
}

/// number: divisor, eps, offset
bool StepTrace::rms_norm(Tensor y, ConstTensor x, ConstTensor weight, float eps, float offset) {
  if (!weight || weight.dtype != DType::f32) return false;
  StepInstruction call = blank(StepCode::inverse_root_norm);
  call.number[0] = static_cast<float>(weight.shape.size());
  call.number[1] = eps;
  call.number[2] = offset;
  return group(call, y, x, weight.shape.size(), weight);
}

bool StepTrace::rms_norm_plain(Tensor y, ConstTensor x, std::int64_t size, float eps) {
  StepInstruction call = blank(StepCode::inverse_root_norm);
  call.number[0] = static_cast<float>(size);
  call.number[1] = eps;
  return group(call, y, x, size);
}

bool StepTrace::l2_norm(Tensor y, ConstTensor x) {
  constexpr float eps = 1e-6F;
  StepInstruction call = blank(StepCode::inverse_root_norm);
  call.number[0] = 1;
  call.number[1] = eps;
  return group(call, y, x, last_axis(x));
}

bool StepTrace::sum_norm(Tensor y, ConstTensor x, float eps) {
  StepInstruction call = blank(StepCode::sum_norm);
  call.number[0] = eps;
  return group(call, y, x, last_axis(x));
}

bool StepTrace::softmax(Tensor y, ConstTensor x, float temperature) {
  if (temperature == 0) return fill(y, 1 / static_cast<float>(last_axis(x)));  // 0 · ∞ has no value
  StepInstruction call = blank(StepCode::softmax);
  call.number[0] = temperature;
  return group(call, y, x, last_axis(x));
}

bool StepTrace::activate(Tensor y, ConstTensor x, Activation act) {
  StepInstruction call = blank(StepCode::activate);
  call.act = act;
  return map(call, y, {x});
}

bool StepTrace::gate(Tensor y, ConstTensor a, ConstTensor b, Activation act) {
  StepInstruction call = blank(StepCode::gate);
  call.act = act;
  return map(call, y, {a, b});
}

bool StepTrace::add(Tensor y, ConstTensor a, ConstTensor b, float factor) {
  StepInstruction call = blank(StepCode::add);
  call.number[0] = factor;
  return map(call, y, {a, b});
}

/// y[i] = number[0] · b[i / m] · a[i]
bool StepTrace::scale_heads(Tensor y, ConstTensor x, ConstTensor g, float scale) {
  if (!one_row(y) || !one_row(g) || y.row_size() % g.row_size() != 0) return false;
  StepInstruction call = blank(StepCode::scale_heads);
  call.m = int32(y.row_size() / g.row_size());
  call.number[0] = scale;
  call.b = g.data;
  return map(call, y, {x});
}

/// y[i] = a[i] / (b[i / m] + number[0])
bool StepTrace::divide_heads(Tensor y, ConstTensor x, ConstTensor d, float eps) {
  if (!one_row(y) || !one_row(d) || y.row_size() % d.row_size() != 0) return false;
  StepInstruction call = blank(StepCode::divide_heads);
  call.m = int32(y.row_size() / d.row_size());
  call.number[0] = eps;
  call.b = d.data;
  return map(call, y, {x});
}

bool StepTrace::log_sigmoid_decay(Tensor y, ConstTensor x, float normalizer, float clamp_min) {
  StepInstruction call = blank(StepCode::log_sigmoid_decay);
  call.number[0] = normalizer;
  call.number[1] = clamp_min;
  return map(call, y, {x});
}

bool StepTrace::gated_delta_decay(Tensor y, ConstTensor a, ConstTensor A_log, ConstTensor dt_bias) {
  return map(blank(StepCode::gated_delta_decay), y, {a, A_log, dt_bias});
}

bool StepTrace::softplus_clamp(Tensor y, ConstTensor x, ConstTensor dt_bias, float dt_min, float dt_max) {
  StepInstruction call = blank(StepCode::softplus_clamp);
  call.number[0] = dt_min;
  call.number[1] = dt_max;
  return map(call, y, {x, dt_bias});
}

bool StepTrace::one_minus_exp(Tensor y, ConstTensor x) { return map(blank(StepCode::one_minus_exp), y, {x}); }

/// y [m] = the m largest of a [n]
bool StepTrace::top_k(Tensor ids, ConstTensor scores) {
  if (!one_row(ids, DType::i32) || !one_row(scores) || ids.row_size() > scores.row_size()) return false;
  StepInstruction call = blank(StepCode::top_k);
  call.n = int32(scores.row_size());
  call.m = int32(ids.row_size());
  call.y = ids.data;
  call.a = scores.data;
  return record(call);
}

/// y [n] = a / the sum of those that selected [m] names, for them, else 0
bool StepTrace::renormalise(Tensor y, ConstTensor gate, ConstTensor ids) {
  if (!one_row(y) || !vector_of(gate, y.row_size()) || !one_row(ids, DType::i32)) return false;
  StepInstruction call = blank(StepCode::renormalise);
  call.n = int32(y.row_size());
  call.m = int32(ids.row_size());
  call.y = y.data;
  call.a = gate.data;
  call.selected = ids.data;
  return record(call);
}

/// y [H, m] of a; `to` [H, m]: the log decay, changed where flags ≠ 0; writers: topk
bool StepTrace::row_sparse(Tensor k, Tensor log_decay, ConstTensor z, std::int64_t topk, bool skip_decay) {
  if (!one_row(k) || !one_row(log_decay) || !one_row(z) || z.shape.rank() != 3 || k.shape != z.shape || log_decay.shape != z.shape)
    return false;
  if (topk < 1 || topk > z.shape[2] || z.shape[2] > StepLimits::head) return false;
  StepInstruction call = blank(StepCode::row_sparse);
  call.n = int32(z.row_size());
  call.m = int32(z.shape[2]);
  call.writers = int32(topk);
  call.flags = skip_decay ? 1 : 0;
  call.y = k.data;
  call.a = z.data;
  call.to = log_decay.data;
  return record(call);
}

/// y [n] of a, weight b [n, m], bias d; caches `from` and `to` [m − 1, n]
bool StepTrace::short_convolution(const ShortConvolution& op) {
  if (!one_token(op.segments.cu_seqlens) || !one_row(op.x) || !one_row(op.y) || op.weight.dtype != DType::f32) return false;
  const std::int64_t C = op.x.row_size(), w = op.weight.row_size(), slot = op.segments.slot_of(0);
  const auto fitting = [&](ConstTensor cache) { return cache && cache.dtype == DType::f32 && cache.row_size() == (w - 1) * C; };
  if (w < 2 || op.weight.rows() != C || !op.weight.contiguous() || op.y.row_size() != C || (op.bias && !vector_of(op.bias, C)))
    return false;
  if (!fitting(op.initial_cache) || !fitting(op.final_cache)) return false;
  StepInstruction call = blank(StepCode::convolution);
  call.act = op.act;
  call.n = int32(C);
  call.m = int32(w);
  call.y = op.y.data;
  call.a = op.x.data;
  call.b = op.weight.data;
  call.d = op.bias.data;
  call.from = op.initial_cache.f32(slot);
  call.to = op.final_cache.f32(slot);
  return record(call);
}

namespace {

/// What both memories have: a to e are q, k, v, log_decay, beta; y [n] is o. Nothing if it does not fit.
template <class Memory>
std::optional<StepInstruction> memory_call(StepCode code, const Memory& op, ConstTensor beta) {
  if (!one_token(op.segments.cu_seqlens) || !fitting_state(op.initial_state, op.final_state)) return {};
  const Shape& state = op.initial_state.shape;
  const std::int64_t H = state[1], K = state[2], V = state[3], slot = op.segments.slot_of(0);
  if (!fitting_operand(op.q, H, K) || !fitting_operand(op.k, H, K) || !fitting_operand(op.v, H, V) || !aligned(op.v.data)) return {};
  if (!one_row(op.o) || op.o.row_size() != H * V || !aligned(op.o.data)) return {};
  StepInstruction call = blank(code);
  call.n = int32(H * V);
  call.H = int32(H);
  call.K = int32(K);
  call.V = int32(V);
  call.heads[0] = int32(op.q.shape[1]);
  call.heads[1] = int32(op.k.shape[1]);
  call.heads[2] = int32(op.v.shape[1]);
  call.heads[3] = op.log_decay ? int32(op.log_decay.shape[1]) : 0;
  call.heads[4] = beta ? int32(beta.shape[1]) : 0;
  call.number[0] = op.scale;
  call.y = op.o.data;
  call.a = op.q.data;
  call.b = op.k.data;
  call.c = op.v.data;
  call.d = op.log_decay.data;
  call.e = beta.data;
  call.from = op.initial_state.f32(slot);
  call.to = op.final_state.f32(slot);
  return call;
}

}  // namespace

/// m numbers of log decay a head: 1, K, or V (flags = 1)
bool StepTrace::decayed_outer_product(const DecayedOuterProduct& op) {
  std::optional<StepInstruction> call = memory_call(StepCode::decayed_outer_product, op, {});
  if (!call) return false;
  const bool wide = op.log_decay && op.log_decay.shape.rank() == 3, columns = wide && op.decay_axis == DecayAxis::columns;
  call->m = columns ? call->V : wide ? call->K : 1;
  call->flags = columns ? 1 : 0;
  if (op.log_decay && !fitting_operand(op.log_decay, call->H, call->m)) return false;
  if (columns && !aligned(op.log_decay.data)) return false;
  return record(*call);
}

bool StepTrace::gated_delta_rule(const GatedDeltaRule& op) {
  std::optional<StepInstruction> call = memory_call(StepCode::gated_delta_rule, op, op.beta);
  if (!call) return false;
  call->m = 1;
  if ((op.log_decay && !fitting_operand(op.log_decay, call->H, 1)) || (op.beta && !fitting_operand(op.beta, call->H, 1))) return false;
  return record(*call);
}

/// States [1 + N, H, K, V] from `to` on; m choices; heads[3]: numbers of log decay a head. flags: 1 gate_q, 2 gate_k, 4 gate before L2.
/// number: scale, write scale.
bool StepTrace::sparse_state(const SparseState& op) {
  if (!one_token(op.cu_seqlens) || !fitting_state(op.initial_state, op.final_state)) return false;
  if (op.initial_state.data != op.final_state.data || !op.final_state.contiguous()) return false;
  for (const ConstTensor& x : {op.q, op.k, op.v, op.gate, ConstTensor(op.o)}) {
    if (!one_row(x)) return false;
  }
  if (!one_row(op.selected, DType::i32) || !aligned(op.v.data) || !aligned(op.o.data)) return false;
  if ((op.log_decay && !one_row(op.log_decay)) || (op.beta && !one_row(op.beta))) return false;
  const Shape& state = op.initial_state.shape;
  StepInstruction call = blank(StepCode::sparse_state);
  call.flags = static_cast<std::uint8_t>((op.gate_q ? 1 : 0) | (op.gate_k ? 2 : 0) | (op.gate_place == GatePlace::before_l2 ? 4 : 0));
  call.n = int32(state[1] * state[3]);
  call.m = int32(op.selected.row_size());
  call.H = int32(state[1]);
  call.K = int32(state[2]);
  call.V = int32(state[3]);
  call.heads[3] = op.log_decay ? int32(op.log_decay.row_size() / (2 * state[1])) : 0;
  call.N = int32(op.gate.row_size());
  call.writers = int32(op.writers);
  call.readers = int32(op.readers);
  call.number[0] = op.scale;
  call.number[1] = op.write_scale;
  call.y = op.o.data;
  call.a = op.q.data;
  call.b = op.k.data;
  call.c = op.v.data;
  call.d = op.log_decay.data;
  call.e = op.beta.data;
  call.to = op.final_state.data;
  call.gate = op.gate.data;
  call.selected = op.selected.data;
  return record(call);
}

// ---- scheduling ----------------------------------------------------------------------------------------------------------------------

namespace {

using Address = std::uintptr_t;
constexpr std::int64_t word = 4;  // bytes of a number

/// Memory that an instruction touches. `by_number`: number i of it has to do with number i of the result alone.
struct Access {
  Address begin, end;
  bool write, by_number;
  bool overlaps(const Access& other) const { return begin < other.end && other.begin < end; }
  bool covers(const Access& other) const { return begin <= other.begin && other.end <= end; }
  bool same_range(const Access& other) const { return begin == other.begin && end == other.end; }
};

Access numbers_at(const void* p, std::int64_t count) {
  const auto begin = reinterpret_cast<Address>(p);
  return {begin, begin + static_cast<Address>(count * word), false, false};
}

class Accesses {
 public:
  void read(const void* p, std::int64_t bytes, bool by_number = false) { put(p, bytes, false, by_number); }
  void write(const void* p, std::int64_t bytes, bool by_number = false) { put(p, bytes, true, by_number); }
  const Access* begin() const { return list_.data(); }
  const Access* end() const { return list_.data() + count_; }

 private:
  void put(const void* p, std::int64_t bytes, bool write, bool by_number) {
    const auto from = reinterpret_cast<Address>(p);
    if (p != nullptr && bytes > 0) list_.at(count_++) = {from, from + static_cast<Address>(bytes), write, by_number};
  }
  std::array<Access, 12> list_{};
  std::size_t count_ = 0;
};

bool is_map(StepCode code) { return code <= StepCode::convolution; }
bool is_norm(StepCode code) { return code == StepCode::inverse_root_norm || code == StepCode::sum_norm || code == StepCode::softmax; }
bool is_row(StepCode code) { return code >= StepCode::inverse_root_norm && code <= StepCode::row_sparse; }
bool is_linear(StepCode code) { return code == StepCode::streamed_linear || code == StepCode::linear; }
bool is_memory(StepCode code) { return code >= StepCode::decayed_outer_product; }

/// Groups of a row that know nothing of each other.
std::int32_t groups_of(const StepInstruction& i) { return i.code == StepCode::top_k || i.code == StepCode::renormalise ? 1 : i.n / i.m; }

void memory_accesses(Accesses& out, const StepInstruction& i, bool with_qk) {
  const std::int64_t state = std::int64_t{i.H} * i.K * i.V * word, pair = std::int64_t{2} * i.H * word;
  if (i.code == StepCode::sparse_state) {
    if (with_qk) out.read(i.a, pair * i.K), out.read(i.b, pair * i.K);
    out.read(i.c, std::int64_t{i.n} * word);
    out.read(i.d, pair * i.heads[3]);
    out.read(i.e, pair);
    out.read(i.gate, i.N * word);
    out.read(i.selected, i.m * word);
    out.write(i.to, (1 + i.N) * state);
  } else {
    if (with_qk) out.read(i.a, std::int64_t{i.heads[0]} * i.K * word), out.read(i.b, std::int64_t{i.heads[1]} * i.K * word);
    out.read(i.c, std::int64_t{i.heads[2]} * i.V * word);
    if (i.decay_steps == 0) out.read(i.d, std::int64_t{i.heads[3]} * i.m * word);
    out.read(i.e, i.heads[4] * word);
    out.read(i.from, state);
    out.write(i.to, state);
  }
  out.write(i.y, std::int64_t{i.n} * word);
}

void map_accesses(Accesses& out, const StepInstruction& i) {
  const std::int64_t row = std::int64_t{i.n} * word;
  switch (i.code) {
    case StepCode::embed:
      out.read(i.a, i.N * i.stride);
      break;
    case StepCode::scale_heads:
    case StepCode::divide_heads:
      out.read(i.a, row, true);
      out.read(i.b, row / i.m, i.m == 1);
      break;
    case StepCode::convolution:
      out.read(i.a, row, true);
      out.read(i.b, row * i.m);
      out.read(i.d, row, true);
      out.read(i.from, row * (i.m - 1));
      out.write(i.to, row * (i.m - 1));
      break;
    default:
      for (const void* operand : {i.a, i.b, i.c}) out.read(operand, row, true);
  }
  out.write(i.y, row, true);
}

/// What the instruction itself touches; with or without what it may read through steps: the input of a product, q and k of a memory.
Accesses accesses_of(const StepInstruction& i, bool with_stepped = true) {
  Accesses out;
  const std::int64_t row = std::int64_t{i.n} * word;
  if (is_memory(i.code)) {
    memory_accesses(out, i, with_stepped);
  } else if (is_linear(i.code)) {
    if (with_stepped) out.read(i.a, std::int64_t{i.m} * word);
    for (const void* weight : {i.b, i.c}) out.read(weight, i.n * i.stride);
    out.read(i.d, row, true);
    out.write(i.y, row, true);
  } else if (is_map(i.code)) {
    map_accesses(out, i);
  } else {
    out.read(i.a, row);
    if (is_norm(i.code)) out.read(i.b, i.m * word);
    out.read(i.selected, i.m * word);
    out.read(i.to, row);
    out.write(i.to, row);
    out.write(i.y, i.code == StepCode::top_k ? i.m * word : row);
  }
  return out;
}

/// What a step reads: its first operand,
Access base_of_step(const StepInstruction& i) { return numbers_at(i.a, is_linear(i.code) ? i.m : i.n); }

/// and all others.
Accesses accesses_of_step(const StepInstruction& i) {
  Accesses out;
  if (is_linear(i.code)) out.read(i.b, i.n * i.stride), out.read(i.d, std::int64_t{i.n} * word);
  if (is_norm(i.code)) out.read(i.b, i.m * word);
  if (i.code == StepCode::gate) out.read(i.b, std::int64_t{i.n} * word);
  if (i.code == StepCode::scale_heads) out.read(i.b, std::int64_t{i.n} / i.m * word);
  return out;
}

/// What is done at one go: an instruction, the maps behind it, the steps before it.
struct Task {
  std::int32_t level = 0;
  StepInstruction lead{};
  std::vector<StepInstruction> followers = {}, q_steps = {}, k_steps = {}, decay_steps = {};
  bool dead = false;  // what it writes is written over before it is read
};

/// Operations that have been put off: `result` is to be `steps` of what stands at `base`.
struct Promise {
  Access result;
  const void* base;
  std::vector<StepInstruction> steps;
};

constexpr std::size_t most_steps = 2, most_followers = 6;

class Scheduler {
 public:
  explicit Scheduler(int blocks) : blocks_(blocks) {}

  void add(const StepInstruction& call) {
    if (is_norm(call.code) || is_small(call)) return promise(call);
    if (extend(call)) return;
    if (is_linear(call.code)) return add_linear(call);
    if (is_memory(call.code)) return add_memory(call);
    add_pieces(call);
  }

  StepProgram finish() {
    while (!promises_.empty()) keep(promises_.begin());
    return program();
  }

 private:
  struct Touch {
    std::int32_t task;
    Access access;
  };
  /// Of a piece of memory: who wrote it last, and who has read it since.
  struct Piece {
    Address end;
    std::optional<Touch> writer;
    std::vector<Touch> readers;
  };
  using Pieces = std::map<Address, Piece>;
  using Promises = std::list<Promise>;

  // -- operations that are put off until somebody needs them, who may do them
  // himself

  Promises::iterator promised(const Access& range) {
    return std::find_if(promises_.begin(), promises_.end(), [&](const Promise& p) { return p.result.same_range(range); });
  }

  void promise(const StepInstruction& call) {
    settle_read(base_of_step(call));
    for (const Access& access : accesses_of_step(call)) settle_read(access);
    const Promise made{numbers_at(call.y, call.n), call.a, {call}};
    // What was promised for the same place is not wanted any more, if all of it is replaced.
    promises_.remove_if([&](const Promise& p) { return made.result.covers(p.result); });
    settle_read(made.result);
    promises_.push_back(made);
  }

  /// A product of so few inputs that whoever needs a part of it may compute it for himself.
  static bool is_small(const StepInstruction& call) {
    constexpr std::int32_t few = 32;
    return call.code == StepCode::linear && call.c == nullptr && call.m <= few;
  }

  /// A gate or a scale on top of a norm that has been promised, a log decay on top of a small product, in its place.
  bool extend(const StepInstruction& call) {
    const bool on_norm = call.code == StepCode::gate || call.code == StepCode::scale_heads || call.code == StepCode::activate;
    if (!(on_norm || call.code == StepCode::log_sigmoid_decay) || call.y != call.a) return false;
    for (const Access& access : accesses_of_step(call)) settle_read(access);
    const auto before = promised(numbers_at(call.a, call.n));
    if (before == promises_.end() || before->steps.size() == most_steps || is_norm(before->steps.front().code) != on_norm) return false;
    before->steps.push_back(call);
    return true;
  }

  /// Does what was promised. Others that were promised something of what stands in its place come first.
  void keep(Promises::iterator promise) {
    const Promise kept = std::move(*promise);
    promises_.erase(promise);
    settle_write(kept.result);
    for (const StepInstruction& step : kept.steps) place(Task{.lead = step});
  }

  /// Before something is read: promises for it are kept.
  void settle_read(const Access& read) {
    for (auto p = promises_.begin(); p != promises_.end();) {
      if (p->result.overlaps(read)) {
        keep(p);
        p = promises_.begin();
      } else {
        ++p;
      }
    }
  }

  static bool reads(const Promise& promise, const Access& written) {
    if (written.overlaps(base_of_step(promise.steps.front()))) return true;
    for (const StepInstruction& step : promise.steps) {
      for (const Access& access : accesses_of_step(step)) {
        if (access.overlaps(written)) return true;
      }
    }
    return false;
  }

  /// Before something is written: promises that it would break are kept, those whose result it replaces are forgotten.
  void settle_write(const Access& written) {
    for (auto p = promises_.begin(); p != promises_.end();) {
      if (written.covers(p->result)) {
        p = promises_.erase(p);
      } else if (p->result.overlaps(written) || reads(*p, written)) {
        keep(p);
        p = promises_.begin();
      } else {
        ++p;
      }
    }
  }

  void settle(const Accesses& own) {
    for (const Access& access : own) {
      if (!access.write) settle_read(access);
    }
    for (const Access& access : own) {
      if (access.write) settle_write(access);
    }
  }

  /// Before an instruction that may read `operands` through steps: all else that it touches, and the operands where it writes there.
  void settle_around(const StepInstruction& call, std::initializer_list<Access> operands) {
    const Accesses rest = accesses_of(call, false);
    for (const Access& operand : operands) {
      for (const Access& access : rest) {
        if (access.write && access.overlaps(operand)) settle_read(operand);
      }
    }
    settle(rest);
  }

  // -- products

  static bool streams(const StepInstruction& call) {
    const std::int64_t bytes = std::int64_t{call.m} * static_cast<std::int64_t>(size_of(call.dtype));
    constexpr std::int64_t worth_it = 1024;  // bytes of a row
    return call.m <= StepLimits::inputs && bytes >= worth_it && bytes % 16 == 0 && call.stride % 16 == 0 && call.stride <= most_numbers &&
           aligned(call.b) && aligned(call.c);
  }

  /// Whether a block can do the steps to a whole vector that it reads.
  static bool through_block(const Promise& promise) {
    return aligned(promise.base) && std::all_of(promise.steps.begin(), promise.steps.end(), [](const StepInstruction& step) {
             constexpr std::int32_t of_warp = 128;
             if (step.n % 4 != 0) return false;
             if (step.code == StepCode::scale_heads) return step.m % 4 == 0;
             if (step.code == StepCode::gate || step.code == StepCode::activate) return aligned(step.b);
             const bool power = step.m >= 4 && (step.m & (step.m - 1)) == 0;
             return step.code == StepCode::inverse_root_norm && aligned(step.b) && (step.m == step.n || step.m % of_warp == 0 || power);
           });
  }

  bool is_written(const void* p, std::int64_t bytes) const {
    const auto begin = reinterpret_cast<Address>(p), end = begin + static_cast<Address>(p != nullptr ? bytes : 0);
    for (auto piece = first_piece(begin); piece != pieces_.end() && piece->first < end; ++piece) {
      if (piece->second.end > begin && piece->second.writer) return true;
    }
    return false;
  }

  void add_linear(const StepInstruction& call) {
    const Access input = numbers_at(call.a, call.m);
    settle_around(call, {input});
    const std::int64_t bytes = call.n * call.stride;
    const bool streamed = streams(call) && !is_written(call.b, bytes) && !is_written(call.c, bytes);
    Task task{.lead = call};
    const auto p = promised(input);
    if (streamed && p != promises_.end() && through_block(*p)) {
      task.lead.a = p->base;
      task.q_steps = p->steps;
    } else {
      settle_read(input);
    }
    if (streamed && aligned(task.lead.a)) task.lead.code = StepCode::streamed_linear;
    place(std::move(task));
  }

  // -- memories

  void add_memory(const StepInstruction& call) {
    const bool pairs = call.code == StepCode::sparse_state;
    const Access q = numbers_at(call.a, std::int64_t{pairs ? 2 * call.H : call.heads[0]} * call.K);
    const Access k = numbers_at(call.b, std::int64_t{pairs ? 2 * call.H : call.heads[1]} * call.K);
    Task task{.lead = call};
    const Access log_decay = numbers_at(call.d, std::int64_t{call.heads[3]} * call.m);
    if (through_product(call, log_decay)) task.lead.decay_steps = most_steps;
    settle_around(task.lead, {q, k, log_decay});
    if (task.lead.decay_steps > 0 && !through_product(call, log_decay)) {
      task.lead.decay_steps = 0;
      settle_read(log_decay);
    }
    // What one of them is kept for may have to be kept for the other too; so they are looked at again afterwards.
    if (!through_warp(q, call.K)) settle_read(q);
    if (!through_warp(k, call.K)) settle_read(k);
    if (!through_warp(q, call.K)) settle_read(q);
    read_through(task.lead.a, task.q_steps, q);
    read_through(task.lead.b, task.k_steps, k);
    if (task.lead.decay_steps > 0) read_through(task.lead.d, task.decay_steps, log_decay);
    place(std::move(task));
  }

  /// Whether half a block can compute the log decays of a head's rows, logσ of a small product, for itself.
  bool through_product(const StepInstruction& call, const Access& log_decay) {
    if (call.code != StepCode::decayed_outer_product || call.d == nullptr || call.flags != 0 || call.m != call.K) return false;
    const auto p = promised(log_decay);
    return p != promises_.end() && p->steps.size() == most_steps && is_linear(p->steps.front().code);
  }

  /// Whether a warp can do what was promised to a head that it reads.
  bool through_warp(const Access& range, std::int32_t K) {
    const auto p = promised(range);
    return p != promises_.end() && p->steps.size() == 1 && is_norm(p->steps.front().code) && p->steps.front().m == K;
  }

  void read_through(const void*& operand, std::vector<StepInstruction>& steps, const Access& range) {
    const auto p = promised(range);
    if (p == promises_.end()) return;
    operand = p->base;
    steps = p->steps;
  }

  // -- maps that span what two tasks have written are done in two pieces

  void add_pieces(const StepInstruction& call) {
    settle(accesses_of(call));
    const bool divisible = is_map(call.code) && call.code != StepCode::convolution && call.code != StepCode::embed &&
                           call.code != StepCode::scale_heads && call.code != StepCode::divide_heads && call.a != nullptr;
    if (!divisible) return place(Task{.lead = call});
    std::int32_t begin = 0;
    for (const std::int32_t end : cuts(call.a, call.n)) {
      place(Task{.lead = part(call, begin, end)});
      begin = end;
    }
  }

  static StepInstruction part(StepInstruction call, std::int32_t begin, std::int32_t end) {
    const auto moved = [&](const void* p) { return p != nullptr ? static_cast<const float*>(p) + begin : nullptr; };
    call.n = end - begin;
    call.y = static_cast<float*>(call.y) + begin;
    call.a = moved(call.a);
    call.b = moved(call.b);
    call.c = moved(call.c);
    return call;
  }

  /// Where in the n numbers at p another writer begins, if that is one place; and n.
  std::vector<std::int32_t> cuts(const void* p, std::int32_t n) const {
    const Access range = numbers_at(p, n);
    std::vector<std::int32_t> found;
    std::int32_t last = -1;
    for (auto piece = first_piece(range.begin); piece != pieces_.end() && piece->first < range.end; ++piece) {
      if (piece->second.end <= range.begin) continue;
      const std::int32_t writer = piece->second.writer ? piece->second.writer->task : -1;
      const auto bytes = static_cast<std::int64_t>(piece->first - range.begin);
      if (piece->first > range.begin && bytes % word == 0 && writer != last) found.push_back(int32(bytes / word));
      last = writer;
    }
    if (found.size() > 1) found.clear();
    found.push_back(n);
    return found;
  }

  // -- levels

  std::vector<Access> all_accesses(const Task& task) const {
    std::vector<Access> all;
    const auto append = [&](const Accesses& accesses) { all.insert(all.end(), accesses.begin(), accesses.end()); };
    append(accesses_of(task.lead));  // operands that come through steps: their base
    for (const auto* steps : {&task.q_steps, &task.k_steps, &task.decay_steps}) {
      for (const StepInstruction& step : *steps) append(accesses_of_step(step));
    }
    if (!task.decay_steps.empty()) all.push_back(base_of_step(task.decay_steps.front()));
    return all;
  }

  struct Conflicts {
    std::int32_t level = -1, task = -1;  // the last of those it depends on; task −1: several of that level
    bool by_number = true;               // as far as that level is concerned
  };

  void meet(Conflicts& found, const Access& own, const Touch& other) const {
    const std::int32_t level = tasks_[static_cast<std::size_t>(other.task)].level;
    const bool by_number = own.by_number && other.access.by_number && own.same_range(other.access);
    if (level > found.level) {
      found = {level, other.task, by_number};
    } else if (level == found.level) {
      if (other.task != found.task) found.task = -1;
      found.by_number &= by_number;
    }
  }

  Conflicts conflicts(const std::vector<Access>& accesses) const {
    Conflicts found;
    for (const Access& own : accesses) {
      for (auto piece = first_piece(own.begin); piece != pieces_.end() && piece->first < own.end; ++piece) {
        if (piece->second.end <= own.begin) continue;
        if (piece->second.writer) meet(found, own, *piece->second.writer);
        if (!own.write) continue;
        for (const Touch& reader : piece->second.readers) meet(found, own, reader);
      }
    }
    return found;
  }

  /// Whether the thread, or the warp, that did `before` can do `next` at once.
  static bool follows(const Task& before, const StepInstruction& next, bool by_number) {
    if (before.followers.size() == most_followers) return false;
    const StepCode lead = before.lead.code;
    if (is_map(next.code)) return by_number && (is_map(lead) || is_linear(lead)) && before.lead.n == next.n;
    const auto by_one_warp = [](const StepInstruction& i) { return is_row(i.code) && groups_of(i) == 1; };
    return by_one_warp(next) && by_one_warp(before.lead);
  }

  void place(Task task) {
    const std::vector<Access> accesses = all_accesses(task);
    const Conflicts found = conflicts(accesses);
    std::int32_t index = found.task;
    if (index >= 0 && follows(tasks_[static_cast<std::size_t>(index)], task.lead, found.by_number)) {
      tasks_[static_cast<std::size_t>(index)].followers.push_back(task.lead);
    } else {
      index = static_cast<std::int32_t>(tasks_.size());
      task.level = found.level + 1;
      tasks_.push_back(std::move(task));
    }
    for (const Access& access : accesses) {
      if (!access.write) note_read({index, access});
    }
    for (const Access& access : accesses) {
      if (access.write) note_write({index, access});
    }
  }

  // -- pieces of memory

  /// The piece that holds `at`, or the first behind it; a piece that ends before `at` may come first.
  Pieces::const_iterator first_piece(Address at) const {
    auto piece = pieces_.upper_bound(at);
    if (piece != pieces_.begin()) --piece;
    return piece;
  }

  /// Makes a piece begin at `at` where one spans it.
  void cut(Address at) {
    auto piece = pieces_.upper_bound(at);
    if (piece == pieces_.begin()) return;
    --piece;
    if (piece->first == at || piece->second.end <= at) return;
    const Piece behind = piece->second;
    piece->second.end = at;
    pieces_.emplace(at, behind);
  }

  void note_read(const Touch& touch) {
    cut(touch.access.begin);
    cut(touch.access.end);
    Address at = touch.access.begin;
    for (auto piece = pieces_.lower_bound(at); at < touch.access.end; ++piece) {
      const Address next = piece == pieces_.end() ? touch.access.end : std::min(piece->first, touch.access.end);
      if (at < next) piece = pieces_.emplace_hint(piece, at, Piece{next, {}, {}});
      piece->second.readers.push_back(touch);
      at = piece->second.end;
    }
  }

  void note_write(const Touch& touch) {
    cut(touch.access.begin);
    cut(touch.access.end);
    const auto first = pieces_.lower_bound(touch.access.begin), last = pieces_.lower_bound(touch.access.end);
    bury(first, last, touch);
    pieces_.erase(first, last);
    pieces_.emplace(touch.access.begin, Piece{touch.access.end, touch, {}});
  }

  /// A norm whose result nobody has read and that is replaced as a whole need not be computed.
  void bury(Pieces::const_iterator first, Pieces::const_iterator last, const Touch& touch) {
    if (first == last || std::next(first) != last || !first->second.writer || !first->second.readers.empty()) return;
    const Touch& writer = *first->second.writer;
    Task& task = tasks_[static_cast<std::size_t>(writer.task)];
    const bool whole = writer.access.begin == first->first && writer.access.end == first->second.end;
    if (whole && writer.task != touch.task && is_norm(task.lead.code) && task.followers.empty()) task.dead = true;
  }

  // -- the program

  static int rank(const Task& task) { return task.lead.code == StepCode::streamed_linear ? 0 : is_memory(task.lead.code) ? 1 : 2; }

  /// Streamed products first, those of one input together.
  static bool comes_before(const Task* a, const Task* b) {
    if (a->level != b->level) return a->level < b->level;
    if (rank(*a) != rank(*b)) return rank(*a) < rank(*b);
    return rank(*a) == 0 && a->lead.a < b->lead.a;
  }

  static bool same_input(const Task& a, const Task& b) {
    const auto equal = [](StepInstruction x, const StepInstruction& y) {
      x.y = y.y;  // a norm of one input into two places is one norm
      return std::memcmp(&x, &y, sizeof y) == 0;
    };
    return rank(a) == 0 && rank(b) == 0 && a.lead.a == b.lead.a && a.lead.m == b.lead.m && a.lead.dtype == b.lead.dtype &&
           std::equal(a.q_steps.begin(), a.q_steps.end(), b.q_steps.begin(), b.q_steps.end(), equal);
  }

  /// Pieces of work of an instruction, and how many workers there are for them.
  std::pair<std::int64_t, std::int64_t> work(const StepInstruction& i) const {
    const auto pieces = [](std::int64_t n, std::int64_t size) { return (n + size - 1) / size; };
    constexpr std::int64_t warp = 32;
    if (i.code == StepCode::streamed_linear)
      return {pieces(i.n, i.c != nullptr ? StepLimits::outputs_together / 2 : StepLimits::outputs_together),
              blocks_ * StepLimits::groups_of_block};
    if (is_memory(i.code)) return {i.H * pieces(i.V, StepLimits::columns_together), blocks_ * StepLimits::halves_of_block};
    return {is_row(i.code) ? groups_of(i) : pieces(i.n, warp), blocks_ * StepLimits::warps_of_block};
  }

  StepProgram program() const {
    std::vector<const Task*> order;
    for (const Task& task : tasks_) {
      if (!task.dead) order.push_back(&task);
    }
    std::stable_sort(order.begin(), order.end(), comes_before);
    StepProgram made;
    std::array<std::int64_t, 3> offsets{};  // by rank
    const Task* before = nullptr;
    for (const Task* task : order) {
      StepInstruction lead = task->lead;
      lead.followers = static_cast<std::uint8_t>(task->followers.size());
      lead.q_steps = static_cast<std::uint8_t>(task->q_steps.size());
      lead.k_steps = static_cast<std::uint8_t>(task->k_steps.size());
      const bool next_level = before == nullptr || before->level != task->level;
      lead.decay_steps = static_cast<std::uint8_t>(task->decay_steps.size());
      if (!next_level && same_input(*before, *task)) lead.flags = 1;
      const auto [pieces, workers] = work(lead);
      std::int64_t& offset = offsets.at(static_cast<std::size_t>(rank(*task)));
      lead.offset = int32(offset % workers);
      offset += pieces;
      if (lead.code == StepCode::streamed_linear) {
        const std::int64_t bytes = lead.m * static_cast<std::int64_t>(size_of(lead.dtype));
        made.streams.push_back({lead.b, lead.c, int32(bytes), int32(lead.stride), lead.n, lead.offset});
      }
      if (next_level || made.levels.back().count + lead.size() > StepLimits::level_instructions)
        made.levels.push_back({int32(static_cast<std::int64_t>(made.code.size())), 0, before != nullptr && next_level ? 1 : 0});
      made.levels.back().count += lead.size();
      made.code.push_back(lead);
      for (const auto* more : {&task->followers, &task->q_steps, &task->k_steps, &task->decay_steps})
        made.code.insert(made.code.end(), more->begin(), more->end());
      before = task;
    }
    return made;
  }

  int blocks_;
  std::vector<Task> tasks_;
  Pieces pieces_;
  Promises promises_;
};

}  // namespace

StepProgram schedule_steps(std::span<const StepInstruction> calls, int blocks) {
  Scheduler scheduler(blocks);
  for (const StepInstruction& call : calls) scheduler.add(call);
  return scheduler.finish();
}

}  // namespace statescope

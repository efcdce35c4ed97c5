#include "kernels/program/program.h"

#include <algorithm>
#include <stdexcept>
#include <type_traits>

namespace statescope::program {
namespace {

template <class Op, class... Ops>
constexpr bool is_one_of = (std::is_same_v<std::remove_const_t<Op>, Ops> || ...);

/// Calls read(value) for what an operation reads and write(value) for what it writes; absent values too.
template <class Op, class Read, class Write>
void see_values(Op& op, const Read& read, const Write& write) {
  const auto read_all = [&](auto&... values) { (read(values), ...); };
  const auto see_memory = [&](auto& memory) {
    read_all(memory.q, memory.k, memory.v, memory.log_decay);
    if constexpr (requires { memory.beta; }) read(memory.beta);
    if constexpr (requires { memory.undecayed_erase; }) read(memory.undecayed_erase);
    if constexpr (requires { memory.erase_key; }) read_all(memory.erase_key, memory.erase_along);
    if constexpr (requires { memory.level_scale; }) read(memory.level_scale);
    if constexpr (requires { memory.selected; }) read_all(memory.gate, memory.selected);
    read(memory.state.copy);
    write(memory.o);
  };
  const auto see_product = [&](auto& p) {
    read_all(p.x, p.gate);
    write(p.z);
    write(p.y);
  };
  if constexpr (is_one_of<Op, Linear, LinearOfHeads, LinearEachHead, Apply, Columns, Convolution, LinearOfSlots, BySlot>) {
    read(op.x);
    write(op.y);
  } else if constexpr (is_one_of<Op, Combine, Stack>) {
    read_all(op.a, op.b);
    write(op.y);
  } else if constexpr (is_one_of<Op, Constant, Fill, CopyState>) {
    write(op.y);
  } else if constexpr (is_one_of<Op, TopK>) {
    read(op.scores);
    write(op.ids);
  } else if constexpr (is_one_of<Op, Route>) {
    write(op.ids);
  } else if constexpr (is_one_of<Op, Renormalise>) {
    read_all(op.gate, op.ids);
    write(op.y);
  } else if constexpr (is_one_of<Op, RowSparse>) {
    read_all(op.z, op.log_decay);
    write(op.k);
    write(op.sparse_decay);
  } else if constexpr (is_one_of<Op, Pair>) {
    read_all(op.shared, op.sparse, op.more);
    write(op.y);
  } else if constexpr (is_one_of<Op, OuterProduct, DeltaRule, Wkv, LogLinearAttention, SparseMemory>) {
    see_memory(op);
  } else if constexpr (is_one_of<Op, Dispatch>) {
    read_all(op.x, op.ids);
    write(op.y);
  } else if constexpr (is_one_of<Op, Collect>) {
    read_all(op.x, op.gate);
    write(op.y);
  } else if constexpr (is_one_of<Op, SelectiveScan>) {
    read_all(op.x, op.dt, op.B, op.C, op.state.copy);
    write(op.o);
  } else if constexpr (is_one_of<Op, StateSpace>) {
    read_all(op.u, op.state.copy);
    write(op.o);
  } else if constexpr (is_one_of<Op, Append>) {
    read_all(op.k, op.v, op.index);
  } else if constexpr (is_one_of<Op, Attend>) {
    read_all(op.q, op.chosen);
    write(op.o);
    write(op.selected);
  } else if constexpr (is_one_of<Op, LatentAttend>) {
    read_all(op.q, op.chosen);
    write(op.o);
  } else if constexpr (is_one_of<Op, CompressedAttend>) {
    read(op.q);
    write(op.o);
    write(op.selected);
    write(op.importance);
  } else if constexpr (is_one_of<Op, ChooseTokens>) {
    read_all(op.q, op.weight);
    write(op.selected);
    write(op.scores);
  } else if constexpr (is_one_of<Op, MeanOfHeads>) {
    read(op.gate);
    write(op.y);
  } else if constexpr (is_one_of<Op, Distance>) {
    read_all(op.other, op.own);
    write(op.y);
  } else if constexpr (is_one_of<Op, Products>) {
    for (auto& p : op.all) see_product(p);
  } else if constexpr (is_one_of<Op, GatedNorm>) {
    read_all(op.x, op.gate);
    write(op.y);
  } else if constexpr (is_one_of<Op, ForgetGatedOuterProduct>) {
    see_product(op.gate);
    see_memory(op.memory);
  } else if constexpr (is_one_of<Op, UnitDeltaRule>) {
    read(op.gate);
    see_memory(op.memory);
  } else {
    static_assert(is_one_of<Op, SparseMemoryFrom>);
    read(op.logits);
    for (auto& p : op.decays) see_product(p);
    for (auto* pair : {&op.q, &op.k}) {
      read_all(pair->shared, pair->sparse, pair->more);
      write(pair->y);
    }
    write(op.memory.gate);
    write(op.memory.selected);
    see_memory(op.memory);
  }
}

constexpr auto pass_over = [](auto&) {};

}  // namespace

std::vector<Value> results(const Operation& op) {
  std::vector<Value> all;
  const auto keep = [&](const Value& v) {
    if (v) all.push_back(v);
  };
  std::visit([&](const auto& known) { see_values(known, pass_over, keep); }, op);
  return all;
}

std::vector<Value> operands(const Operation& op) {
  const std::vector<Value> made = results(op);
  std::vector<Value> all;
  const auto keep = [&](const Value& v) {
    if (v && std::ranges::find(made, v) == made.end()) all.push_back(v);
  };
  std::visit([&](const auto& known) { see_values(known, keep, pass_over); }, op);
  return all;
}

void replace_values(Operation& op, const std::function<Value(Value)>& f) {
  const auto replace = [&](Value& v) {
    if (v) v = f(v);
  };
  std::visit([&](auto& known) { see_values(known, replace, replace); }, op);
}

bool changes_state(const Operation& op) {
  return std::visit(
      [](const auto& known) {
        using Op = std::decay_t<decltype(known)>;
        if constexpr (is_one_of<Op, OuterProduct, DeltaRule, SelectiveScan, Wkv, LogLinearAttention, StateSpace, SparseMemory>)
          return !known.state.copy;
        if constexpr (is_one_of<Op, ForgetGatedOuterProduct, UnitDeltaRule, SparseMemoryFrom>) return !known.memory.state.copy;
        if constexpr (is_one_of<Op, Products>) {
          return std::ranges::any_of(known.all, [](const Product& p) { return std::holds_alternative<Convolution>(p.finish); });
        }
        return is_one_of<Op, Convolution, Append>;
      },
      op);
}

bool norm_folds_into_products(const Program& program) {
  bool result_is_product = false;
  for (const Operation& op : program.operations) {
    const auto* linear = std::get_if<Linear>(&op);
    if (linear) result_is_product |= linear->y == program.result;
    const auto reads_x = [&](Value v) { return program.whole(v) == program.x(); };
    if (!linear && std::ranges::any_of(operands(op), reads_x)) return false;
  }
  return result_is_product;
}

Program::Program(std::int64_t hidden) { value({hidden}); }

Value Program::whole(Value v) const {
  while ((*this)[v].of) v = (*this)[v].of;
  return v;
}

Value Program::value(Shape axes, ValueType numbers) {
  values.push_back({.axes = axes, .numbers = numbers, .name = {}, .of = {}});
  return {static_cast<std::int32_t>(values.size()) - 1};
}

Value Program::columns(Value v, std::int64_t begin, Shape axes) {
  if (begin < 0 || begin + axes.size() > width(v)) throw std::logic_error("Program: columns outside the row");
  const Value view = value(axes, (*this)[v].numbers);
  (*this)[view].of = v;
  (*this)[view].begin = begin;
  (*this)[view].rows = (*this)[v].rows;
  return view;
}

Value Program::show(std::string_view name, Value v, bool costs) {
  const auto known = std::ranges::find(channels, name, &Channel::name);
  if (known != channels.end()) channels.erase(known);
  channels.push_back({std::string(name), v, costs});
  Value named = v;
  (*this)[named].name = name;
  while ((*this)[named].of && width((*this)[named].of) == width(v)) {
    named = (*this)[named].of;
    (*this)[named].name = name;
  }
  return v;
}

template <class Op>
Value Program::add(Op op, Value Op::*written, Shape axes, ValueType numbers) {
  const Value made = op.*written = value(axes, numbers);
  operations.emplace_back(std::move(op));
  const auto is_routed = [this](Value v) { return (*this)[v].rows == Rows::routed; };
  if (std::ranges::any_of(operands(operations.back()), is_routed)) (*this)[made].rows = Rows::routed;
  return made;
}

Value Program::linear(ConstTensor weight, ConstTensor bias, Value x, ValueType numbers) {
  return add(Linear{.x = x, .weight = weight, .bias = bias, .y = {}}, &Linear::y, {weight.rows()}, numbers);
}

Value Program::linear_of_heads(ConstTensor weight, Value x) {
  return add(LinearOfHeads{.x = x, .weight = weight, .y = {}}, &LinearOfHeads::y, {weight.rows()}, ValueType::exact);
}

Value Program::linear_each_head(ConstTensor weight, ConstTensor bias, Value x) {
  const ValueInfo info = (*this)[x];
  return add(LinearEachHead{.x = x, .weight = weight, .bias = bias, .y = {}}, &LinearEachHead::y, {info.axes[0], weight.rows()},
             info.numbers);
}

Value Program::apply(Function f, Value x, ValueType numbers) {
  const Shape axes = (*this)[x].axes;
  return add(Apply{.x = x, .f = std::move(f), .y = {}}, &Apply::y, axes, numbers);
}

Value Program::combine(Combination f, Value a, Value b) {
  const ValueInfo info = (*this)[a];
  return add(Combine{.a = a, .b = b, .f = f, .y = {}}, &Combine::y, info.axes, info.numbers);
}

Value Program::constant(ConstTensor row, Shape axes) { return add(Constant{.row = row, .y = {}}, &Constant::y, axes, ValueType::exact); }

Value Program::fill(float number, Shape axes) { return add(Fill{.number = number, .y = {}}, &Fill::y, axes, ValueType::exact); }

Value Program::taken(Value x, std::vector<std::pair<std::int64_t, std::int64_t>> ranges, Shape axes) {
  const ValueType numbers = (*this)[x].numbers;
  return add(Columns{.x = x, .ranges = std::move(ranges), .y = {}}, &Columns::y, axes, numbers);
}

Value Program::taken_of_heads(Value x, std::vector<std::pair<std::int64_t, std::int64_t>> ranges) {
  const ValueInfo info = (*this)[x];
  return add(Columns{.x = x, .ranges = std::move(ranges), .of_heads = true, .y = {}}, &Columns::y, info.axes, info.numbers);
}

Value Program::repeat_heads(Value x, std::int64_t groups, std::int64_t from, std::int64_t to) {
  if (from == to) return x;
  Shape axes = (*this)[x].axes;
  const std::int64_t n = axes.size() / (groups * from);
  axes[groups > 1 ? 1 : 0] = to;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (std::int64_t i = 0; i < groups * to; ++i) ranges.emplace_back((i / to * from + producer_head(i % to, from, to)) * n, n);
  return taken(x, std::move(ranges), axes);
}

Value Program::stack(Value a, Value b, Shape axes) {
  const ValueType numbers = (*this)[a].numbers;
  return add(Stack{.a = a, .b = b, .y = {}}, &Stack::y, axes, numbers);
}

Value Program::convolution(Value x, ConstTensor weight, ConstTensor bias, Activation act, std::size_t cache) {
  const ValueInfo info = (*this)[x];
  return add(Convolution{.x = x, .weight = weight, .bias = bias, .act = act, .cache = cache, .y = {}}, &Convolution::y, info.axes,
             info.numbers);
}

Value Program::top_k(Value scores, std::int64_t count) {
  Shape axes = (*this)[scores].axes;
  axes[axes.rank() - 1] = count;
  return add(TopK{.scores = scores, .ids = {}}, &TopK::ids, axes, ValueType::indices);
}

Value Program::renormalise(Value gate, Value ids) {
  const Shape axes = (*this)[gate].axes;
  return add(Renormalise{.gate = gate, .ids = ids, .y = {}}, &Renormalise::y, axes, ValueType::exact);
}

std::pair<Value, Value> Program::row_sparse(Value z, Value log_decay, std::int64_t topk, bool skip_decay) {
  const ValueInfo keys = (*this)[z], decays = (*this)[log_decay];
  const Value k = value(keys.axes, keys.numbers), decay = value(decays.axes, decays.numbers);
  operations.emplace_back(RowSparse{.z = z, .log_decay = log_decay, .topk = topk, .skip_decay = skip_decay, .k = k, .sparse_decay = decay});
  return {k, decay};
}

Value Program::pair(Pair of, Shape axes) { return add(of, &Pair::y, axes, ValueType::rounded); }

Value Program::copy_state(std::size_t memory, Shape state) {
  const Value y = add(CopyState{.memory = memory, .y = {}}, &CopyState::y, state, ValueType::exact);
  (*this)[y].rows = Rows::slots;
  return y;
}

Value Program::remember(OuterProduct memory, std::int64_t heads, std::int64_t V, ValueType numbers) {
  return add(memory, &OuterProduct::o, {heads, V}, numbers);
}
Value Program::remember(DeltaRule memory, std::int64_t heads, std::int64_t V, ValueType numbers) {
  return add(memory, &DeltaRule::o, {heads, V}, numbers);
}
Value Program::remember(SelectiveScan memory, std::int64_t heads, std::int64_t P) {
  return add(memory, &SelectiveScan::o, {heads, P}, (*this)[memory.x].numbers);
}
Value Program::remember(Wkv memory, std::int64_t heads, std::int64_t V, ValueType numbers) {
  return add(memory, &Wkv::o, {heads, V}, numbers);
}
Value Program::remember(LogLinearAttention memory, std::int64_t heads, std::int64_t V) {
  return add(memory, &LogLinearAttention::o, {heads, V}, ValueType::exact);
}
Value Program::remember(StateSpace memory, std::int64_t width) { return add(memory, &StateSpace::o, {width}, ValueType::exact); }
Value Program::remember(SparseMemory memory, std::int64_t heads, std::int64_t V) {
  return add(memory, &SparseMemory::o, {heads, V}, ValueType::rounded);
}

Value Program::dispatch(Value x, Value ids, std::int64_t memories, bool shared, Shape axes) {
  const ValueType numbers = (*this)[x].numbers;
  const Value y = add(Dispatch{.x = x, .ids = ids, .memories = memories, .shared = shared, .y = {}}, &Dispatch::y, axes, numbers);
  (*this)[y].rows = Rows::routed;
  return y;
}

Value Program::linear_of_slots(std::vector<ConstTensor> weights, Value x, ValueType numbers) {
  const std::int64_t out = weights.front().rows();
  return add(LinearOfSlots{.x = x, .weights = std::move(weights), .y = {}}, &LinearOfSlots::y, {out}, numbers);
}

Value Program::collect(Value x, Value gate) {
  const Shape axes = (*this)[x].axes;
  const Value y = add(Collect{.x = x, .gate = gate, .y = {}}, &Collect::y, axes, ValueType::exact);
  (*this)[y].rows = Rows::tokens;
  return y;
}

Value Program::by_slot(Value x, std::int64_t slots) {
  const Value y = add(BySlot{.x = x, .y = {}}, &BySlot::y, {slots, width(x)}, ValueType::exact);
  (*this)[y].rows = Rows::tokens;
  return y;
}

std::pair<Value, Value> Program::attend(Attend attention, std::int64_t heads, std::int64_t V) {
  attention.o = value({heads, V}, ValueType::exact);
  if (!attention.chosen && attention.block_size > 0 && attention.topk > 1)
    attention.selected = value({heads, attention.topk - 1}, ValueType::indices);
  operations.emplace_back(attention);
  return {attention.o, attention.selected};
}

Value Program::attend(LatentAttend attention, std::int64_t heads, std::int64_t V) {
  return add(attention, &LatentAttend::o, {heads, V}, ValueType::exact);
}

CompressedAttend Program::attend(CompressedAttend attention, std::int64_t heads, std::int64_t V, std::int64_t kv_heads,
                                 std::int64_t count) {
  attention.o = value({heads, V}, ValueType::exact);
  attention.selected = value({kv_heads, count}, ValueType::indices);
  attention.importance = value({kv_heads, count}, ValueType::exact);
  operations.emplace_back(attention);
  return attention;
}

ChooseTokens Program::choose(ChooseTokens choice, std::int64_t count) {
  choice.selected = value({count}, ValueType::indices);
  choice.scores = value({count}, ValueType::exact);
  operations.emplace_back(choice);
  return choice;
}

Value Program::mean_of_heads(Value gate, std::int64_t heads, Activation act) {
  return add(MeanOfHeads{.gate = gate, .heads = heads, .act = act, .y = {}}, &MeanOfHeads::y, {heads}, ValueType::exact);
}

Value Program::distance(Value other, Value own) {
  return add(Distance{.other = other, .own = own, .y = {}}, &Distance::y, {1}, ValueType::exact);
}

}  // namespace statescope::program

#include "kernels/passes/passes.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "kernels/passes/uses.h"

namespace statescope::program {

Program compiled(Program program, const Purpose& purpose) {
  drop_dead_values(program, purpose);
  if (purpose.one_token) parts_into_products(program);
  norms_into_products(program);
  products_together(program);
  if (!purpose.one_token) decays_into_memories(program);
  norms_into_delta_rules(program);
  if (!purpose.one_token) readouts_into_delta_rules(program);
  choices_into_sparse_memories(program, !purpose.one_token);
  stacks_in_place(program);
  overwrite_operands(program);
  return program;
}

void drop_dead_values(Program& program, const Purpose& purpose) {
  std::vector<bool> needed(program.values.size(), false);
  const auto need = [&](Value v) { needed[static_cast<std::size_t>(program.whole(v).index)] = true; };
  const auto is_needed = [&](Value v) { return needed[static_cast<std::size_t>(program.whole(v).index)]; };
  if (purpose.state_only) program.result = {};
  if (program.result) need(program.result);
  for (std::size_t i = 0; i < program.channels.size(); ++i) {
    if (purpose.wanted[i] && !purpose.state_only) need(program.channels[i].value);
  }
  std::vector<std::size_t> dead;
  for (std::size_t i = program.operations.size(); i-- > 0;) {
    Operation& op = program.operations[i];
    const auto spare = [&](Value& v) {
      if (v && !is_needed(v)) v = {};
    };
    if (auto* attend = std::get_if<Attend>(&op)) spare(attend->selected);
    if (auto* attend = std::get_if<CompressedAttend>(&op)) spare(attend->importance);
    if (auto* choose = std::get_if<ChooseTokens>(&op)) spare(choose->scores);
    if (changes_state(op) || std::ranges::any_of(results(op), is_needed)) {
      for (const Value v : operands(op)) need(v);
      for (const Value v : results(op)) need(v);
    } else {
      dead.push_back(i);
    }
  }
  remove_operations(program, dead);
  std::vector<Channel> shown;
  for (std::size_t i = 0; i < program.channels.size(); ++i) {
    if (purpose.wanted[i] && is_needed(program.channels[i].value)) shown.push_back(program.channels[i]);
  }
  program.channels = std::move(shown);
}

namespace {

/// Columns of a product's result: rows of its weight.
struct Part {
  std::int64_t begin = 0, end = 0;
  auto operator<=>(const Part&) const = default;
  bool has(const Part& other) const { return begin <= other.begin && other.end <= end; }
};

/// Where v lies in the value that it is a view of.
Part part_of(const Program& program, Value v) {
  Part part{0, program.width(v)};
  for (; program[v].of; v = program[v].of) part.begin += program[v].begin;
  part.end += part.begin;
  return part;
}

/// What is read of y, in order, if there are several parts and none overlaps another; else empty.
std::vector<Part> parts_read(const Program& program, const Uses& uses, Value y) {
  std::vector<Part> parts;
  for (const std::size_t reader : uses.readers(program, y)) {
    for (const Value v : operands(program.operations[reader])) {
      if (program.whole(v) == y) parts.push_back(part_of(program, v));
    }
  }
  std::ranges::sort(parts);
  parts.erase(std::ranges::unique(parts).begin(), parts.end());
  const auto overlap = [](const Part& a, const Part& b) { return b.begin < a.end; };
  return parts.size() < 2 || std::ranges::adjacent_find(parts, overlap) != parts.end() ? std::vector<Part>{} : parts;
}

}  // namespace

void parts_into_products(Program& program) {
  const Uses uses(program);
  std::vector<Operation> operations;
  std::vector<std::pair<Value, Value>> wholes;  // a view, and the value that it is all of
  for (const Operation& op : program.operations) {
    operations.push_back(op);
    const auto* linear = std::get_if<Linear>(&op);
    if (!linear || linear->weight.scales || uses.is_shown(program, linear->y) || !uses.maker(program, linear->y)) continue;
    const Linear all = *linear;
    const std::vector<Part> parts = parts_read(program, uses, all.y);
    if (parts.empty()) continue;
    operations.pop_back();
    const std::size_t views = program.values.size();
    for (const Part& part : parts) {
      const std::int64_t count = part.end - part.begin;
      const Value own = program.value({count}, program[all.y].numbers);
      operations.emplace_back(Linear{.x = all.x,
                                     .weight = all.weight.slice(part.begin, count),
                                     .bias = all.bias ? all.bias.slice(part.begin, count) : ConstTensor{},
                                     .y = own});
      // Views are found by the value that they are of: all of them are looked at before any is changed.
      std::vector<std::pair<Value, Part>> of_part;
      for (std::size_t i = 0; i < views; ++i) {
        const Value v{static_cast<std::int32_t>(i)};
        if (v != all.y && program.whole(v) == all.y && part.has(part_of(program, v))) of_part.emplace_back(v, part_of(program, v));
      }
      for (const auto& [v, lies] : of_part) {
        program[v].of = own;
        program[v].begin = lies.begin - part.begin;
        if (lies == part && program[v].axes.rank() == 1) wholes.emplace_back(v, own);
      }
    }
  }
  program.operations = std::move(operations);
  for (Operation& op : program.operations) {
    replace_values(op, [&](Value v) {
      const auto found = std::ranges::find(wholes, v, &std::pair<Value, Value>::first);
      return found == wholes.end() ? v : found->second;
    });
  }
}

namespace {

/// RMSNorm(x), perhaps ⊙ act(gate), as the operations say it that make a value.
struct NormOf {
  Value x, gate;
  RmsNorm norm;
  Activation act = Activation::identity;
  std::vector<std::size_t> operations;
};

std::optional<NormOf> norm_of(Program& program, const Uses& uses, Value v) {
  if (const auto* gated = uses.maker_as<Combine>(program, v)) {
    const auto* gate = std::get_if<Gate>(&gated->f);
    if (!gate || !uses.is_private(program, gated->a)) return std::nullopt;
    const auto* apply = uses.maker_as<Apply>(program, gated->a);
    const auto* norm = apply ? std::get_if<RmsNorm>(&apply->f) : nullptr;
    if (!norm) return std::nullopt;
    return NormOf{apply->x, gated->b, *norm, gate->act, {uses.maker_index(program, v), uses.maker_index(program, gated->a)}};
  }
  const auto* apply = uses.maker_as<Apply>(program, v);
  const auto* norm = apply ? std::get_if<RmsNorm>(&apply->f) : nullptr;
  if (!norm) return std::nullopt;
  return NormOf{apply->x, {}, *norm, Activation::identity, {uses.maker_index(program, v)}};
}

}  // namespace

void norms_into_products(Program& program) {
  const Uses uses(program);
  std::vector<std::size_t> done;
  const std::size_t count = program.operations.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (const auto* linear = std::get_if<Linear>(&program.operations[i]); linear && uses.is_private(program, linear->x)) {
      const std::optional<NormOf> before = norm_of(program, uses, linear->x);
      if (!before || before->norm.offset != 0) continue;
      Product product{.x = before->x,
                      .norm = before->norm,
                      .gate = before->gate,
                      .gate_act = before->act,
                      .weight = linear->weight,
                      .bias = linear->bias,
                      .finish = Activation::identity,
                      .z = {},
                      .y = linear->y};
      program.operations[i] = Products{{product}};
      done.insert(done.end(), before->operations.begin(), before->operations.end());
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto* gated = std::get_if<Combine>(&program.operations[i]);
    if (!gated || std::ranges::find(done, i) != done.end()) continue;
    const Value y = gated->y;
    const std::optional<NormOf> norm = norm_of(program, uses, y);
    if (!norm || norm->norm.offset != 0) continue;
    program.operations[i] = GatedNorm{.x = norm->x, .gate = norm->gate, .norm = norm->norm, .act = norm->act, .y = y};
    done.push_back(norm->operations.back());
  }
  remove_operations(program, done);
}

namespace {

/// Collects products of one x, and what follows each, in the order in which they are to be computed.
class Group {
 public:
  Group(Program& program, const Uses& uses) : program_(program), uses_(uses) {}

  /// All products of the x of the one at `first` that are not taken yet.
  void collect(std::size_t first) {
    const Value x = std::get<Linear>(program_.operations[first]).x;
    std::vector<Product> of_x;
    for (std::size_t i = first; i < program_.operations.size(); ++i) {
      if (const auto* linear = std::get_if<Linear>(&program_.operations[i]); linear && linear->x == x) of_x.push_back(taken(i));
    }
    // What others are made of comes first, so that nothing waits for it long.
    std::vector<Product> others, behind;
    for (const Product& p : of_x) {
      const std::size_t before = behind.size();
      for (const std::size_t i : uses_.readers(program_, p.y)) {
        if (const auto* linear = std::get_if<Linear>(&program_.operations[i]); linear && linear->x == p.y) behind.push_back(taken(i));
      }
      (behind.size() > before ? all : others).push_back(p);
    }
    all.insert(all.end(), others.begin(), others.end());
    all.insert(all.end(), behind.begin(), behind.end());
  }

  std::vector<Product> all;
  std::vector<std::size_t> operations;  // what they were

 private:
  /// The product at `i` with the epilogue that follows it.
  Product taken(std::size_t i) {
    const Linear linear = std::get<Linear>(program_.operations[i]);
    operations.push_back(i);
    Product p{.x = linear.x,
              .norm = {},
              .gate = {},
              .weight = linear.weight,
              .bias = linear.bias,
              .finish = Activation::identity,
              .z = {},
              .y = linear.y};
    for (const std::size_t reader : uses_.readers(program_, linear.y)) {
      if (const auto* convolution = std::get_if<Convolution>(&program_.operations[reader]);
          convolution && convolution->x == linear.y && program_[linear.y].rows == Rows::tokens) {
        if (!uses_.is_private(program_, linear.y)) p.z = linear.y;
        p.y = convolution->y;
        p.finish = *convolution;
        operations.push_back(reader);
        return p;
      }
    }
    if (!uses_.is_private(program_, linear.y)) return p;
    const std::size_t reader = uses_.readers(program_, linear.y).front();
    const auto* apply = std::get_if<Apply>(&program_.operations[reader]);
    if (!apply || apply->x != linear.y) return p;
    const auto finish = [&](const auto* f) {
      if (!f) return;
      p.finish = *f;
      p.y = apply->y;
      operations.push_back(reader);
    };
    finish(std::get_if<Activation>(&apply->f));
    finish(std::get_if<ForgetGate>(&apply->f));
    const auto* decay = std::get_if<DeltaDecay>(&apply->f);
    if (decay && decay->lower_bound == 0 && decay->A_log.shape.size() == decay->dt_bias.shape.size()) finish(decay);
    return p;
  }

  Program& program_;
  const Uses& uses_;
};

}  // namespace

void products_together(Program& program) {
  const Uses uses(program);
  std::vector<std::size_t> gone;
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    if (!std::holds_alternative<Linear>(program.operations[i]) || std::ranges::find(gone, i) != gone.end()) continue;
    Group group(program, uses);
    group.collect(i);
    program.operations[i] = Products{std::move(group.all)};
    std::ranges::copy_if(group.operations, std::back_inserter(gone), [i](std::size_t j) { return j != i; });
  }
  remove_operations(program, gone);
}

namespace {

/// Takes the product that makes `decay` out of its group, if that is a forget gate which nobody else reads.
std::optional<Product> taken_forget_gate(Program& program, const Uses& uses, Value decay) {
  if (!decay || !uses.is_private(program, decay)) return std::nullopt;
  auto* products = uses.maker_as<Products>(program, decay);
  if (!products) return std::nullopt;
  const auto made = std::ranges::find(products->all, program.whole(decay), &Product::y);
  if (made == products->all.end() || !std::holds_alternative<ForgetGate>(made->finish)) return std::nullopt;
  const Product gate = *made;
  products->all.erase(made);
  return gate;
}

}  // namespace

void decays_into_memories(Program& program) {
  const Uses uses(program);
  for (Operation& op : program.operations) {
    const auto* memory = std::get_if<OuterProduct>(&op);
    if (!memory) continue;
    if (const std::optional<Product> gate = taken_forget_gate(program, uses, memory->log_decay))
      op = ForgetGatedOuterProduct{*memory, *gate};
  }
}

void norms_into_delta_rules(Program& program) {
  const Uses uses(program);
  std::vector<std::size_t> done;
  for (Operation& op : program.operations) {
    const auto* memory = std::get_if<DeltaRule>(&op);
    if (!memory || program[memory->q].rows != Rows::tokens || memory->steps > 1) continue;
    const auto norm = [&](Value v) -> const Apply* {
      const Apply* apply = uses.is_private(program, v) ? uses.maker_as<Apply>(program, v) : nullptr;
      return apply && std::holds_alternative<L2Norm>(apply->f) ? apply : nullptr;
    };
    const Apply *q = norm(memory->q), *k = norm(memory->k);
    if (!q || !k) continue;
    done.insert(done.end(), {uses.maker_index(program, memory->q), uses.maker_index(program, memory->k)});
    UnitDeltaRule unit{.memory = *memory, .readout = {}, .gate = {}};
    unit.memory.q = q->x;
    unit.memory.k = k->x;
    op = unit;
  }
  remove_operations(program, done);
}

void readouts_into_delta_rules(Program& program) {
  const Uses uses(program);
  for (Operation& op : program.operations) {
    auto* unit = std::get_if<UnitDeltaRule>(&op);
    if (!unit || !uses.is_private(program, unit->memory.o)) continue;
    auto* products = std::get_if<Products>(&program.operations[uses.readers(program, unit->memory.o).front()]);
    if (!products || products->all.size() != 1 || !products->all.front().norm) continue;
    Product& read = products->all.front();
    if (program.whole(read.x) != program.whole(unit->memory.o)) continue;
    unit->readout = std::exchange(read.norm, std::nullopt);
    unit->gate = std::exchange(read.gate, Value{});
    unit->gate_act = read.gate_act;
  }
}

namespace {

/// The operations that make what a sparse state reads, where they are those of SparseMemoryFrom.
std::optional<SparseMemoryFrom> choices_of(Program& program, const Uses& uses, const SparseMemory& memory) {
  const auto *q = uses.maker_as<Pair>(program, memory.q), *k = uses.maker_as<Pair>(program, memory.k);
  const auto* gate = uses.maker_as<Apply>(program, memory.gate);
  const auto* choice = uses.maker_as<TopK>(program, memory.selected);
  if (!q || !k || !gate || !choice || q->y != memory.q || k->y != memory.k) return std::nullopt;
  const auto* softmax = std::get_if<Softmax>(&gate->f);
  if (!softmax || softmax->temperature != 1 || (choice->scores != gate->y && choice->scores != gate->x)) return std::nullopt;
  const auto read_once = [&](Value v, std::size_t times) { return uses.readers(program, v).size() == times; };
  const bool by_logits = choice->scores == gate->x;
  const bool alone = read_once(q->y, 1) && read_once(k->y, 1) && read_once(choice->ids, 1) && read_once(gate->y, by_logits ? 1 : 2);
  if (!alone) return std::nullopt;
  return SparseMemoryFrom{.memory = memory, .q = *q, .k = *k, .logits = gate->x, .by_logits = by_logits, .decays = {}};
}

}  // namespace

void choices_into_sparse_memories(Program& program, bool with_decays) {
  const Uses uses(program);
  std::vector<std::size_t> done;
  for (Operation& op : program.operations) {
    const auto* memory = std::get_if<SparseMemory>(&op);
    if (!memory) continue;
    std::optional<SparseMemoryFrom> from = choices_of(program, uses, *memory);
    if (!from) continue;
    for (const Value v : {memory->q, memory->k, memory->gate, memory->selected}) done.push_back(uses.maker_index(program, v));
    const auto* halves =
        with_decays && uses.is_private(program, memory->log_decay) ? uses.maker_as<Stack>(program, memory->log_decay) : nullptr;
    if (halves) {
      const Stack both = *halves;
      std::optional<Product> shared = taken_forget_gate(program, uses, both.a), sparse = taken_forget_gate(program, uses, both.b);
      if (shared && sparse) from->decays = {*shared, *sparse};
    }
    op = *from;
  }
  remove_operations(program, done);
}

void stacks_in_place(Program& program) {
  const Uses uses(program);
  std::vector<std::size_t> done;
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    const auto* stack = std::get_if<Stack>(&program.operations[i]);
    if (!stack || !uses.is_private(program, stack->a) || !uses.is_private(program, stack->b)) continue;
    std::int64_t begin = 0;
    for (const Value part : {stack->a, stack->b}) {
      ValueInfo& info = program[program.whole(part)];
      info.of = stack->y;
      info.begin = begin;
      begin += program.width(part);
    }
    done.push_back(i);
  }
  remove_operations(program, done);
}

namespace {

/// Where an operation on each number alone finds what it may overwrite, and what it writes.
struct InPlace {
  Value x, y;
};
InPlace in_place(const Operation& op) {
  if (const auto* apply = std::get_if<Apply>(&op)) return {apply->x, apply->y};
  if (const auto* combine = std::get_if<Combine>(&op)) return {combine->a, combine->y};
  if (const auto* gated = std::get_if<GatedNorm>(&op)) return {gated->x, gated->y};
  return {};
}

}  // namespace

void overwrite_operands(Program& program) {
  const Uses uses(program);
  std::vector<InPlace> all;
  for (const Operation& op : program.operations) {
    const InPlace one = in_place(op);
    if (!one.x || one.y == program.result || program[one.y].of || !uses.is_private(program, one.x)) continue;
    const bool fits = program[one.x].numbers == program[one.y].numbers && program.width(one.x) == program.width(one.y);
    if (fits && !uses.maker_as<Constant>(program, one.x)) all.push_back(one);
  }
  for (const auto& [x, y] : all) {
    program[y].of = x;
    program[y].begin = 0;
  }
}

}  // namespace statescope::program

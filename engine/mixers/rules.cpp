#include "engine/mixers/rules.h"

#include <algorithm>

namespace statescope::program {
namespace {

/// `is` for `was`, of a view of `was` the same view of `is`; any other value is itself.
Value exchanged(Program& program, Value v, Value was, Value is) {
  if (v == was) return is;
  if (!v || !program[v].of) return v;
  const Value whole = program[v].of, other = exchanged(program, whole, was, is);
  return other == whole ? v : program.columns(other, program[v].begin, Shape(program[v].axes));
}

/// What reads `was` or a view of it behind operation `index` reads `is` from now on.
void read_instead(Program& program, std::size_t index, Value was, Value is) {
  for (std::size_t i = index + 1; i < program.operations.size(); ++i)
    replace_values(program.operations[i], [&](Value v) { return exchanged(program, v, was, is); });
  if (program.result == was) program.result = is;
}

/// The last operation that writes to v, or to what it is a view of.
std::size_t maker(const Program& program, Value v) {
  const auto makes = [&](const Operation& op) {
    return std::ranges::any_of(results(op), [&](Value made) { return program.whole(made) == program.whole(v); });
  };
  const auto last = std::find_if(program.operations.rbegin(), program.operations.rend(), makes);
  return static_cast<std::size_t>(program.operations.rend() - last) - 1;
}

Value shown(const Program& program, std::string_view name) {
  const auto channel = std::ranges::find(program.channels, name, &Channel::name);
  return channel == program.channels.end() ? Value{} : channel->value;
}

/// Puts y = f(v) behind what makes v. Returns y.
Value insert(Program& program, Value v, const std::function<Operation(Value y)>& f) {
  const std::size_t at = maker(program, v);
  const ValueInfo info = program[v];
  const Value y = program.value(info.axes, info.numbers);
  program.operations.insert(program.operations.begin() + static_cast<std::ptrdiff_t>(at) + 1, f(y));
  for (Channel& channel : program.channels) {
    if (channel.value == v) channel.value = y;
  }
  return y;
}

/// log α ← factor · log α, as the memories read it
void change_decay(Program& program, float factor) {
  for (Operation& op : program.operations) {
    if (auto* scan = std::get_if<SelectiveScan>(&op)) scan->decay_factor *= factor;
  }
  Value decay = shown(program, "log_decay");
  if (!decay) return;
  if (const auto* spread = std::get_if<BySlot>(&program.operations[maker(program, decay)])) decay = spread->x;
  const Value changed = insert(program, decay, [&](Value y) { return Apply{.x = decay, .f = Times{factor}, .y = y}; });
  for (Operation& op : program.operations) {
    const auto reads_changed = [&](auto& memory) {
      if (memory.log_decay == decay) memory.log_decay = changed;
    };
    if (auto* outer = std::get_if<OuterProduct>(&op)) reads_changed(*outer);
    if (auto* delta = std::get_if<DeltaRule>(&op)) reads_changed(*delta);
    if (auto* wkv = std::get_if<Wkv>(&op)) reads_changed(*wkv);
    if (auto* levels = std::get_if<LogLinearAttention>(&op)) reads_changed(*levels);
    if (auto* sparse = std::get_if<SparseMemory>(&op)) reads_changed(*sparse);
    if (auto* spread = std::get_if<BySlot>(&op); spread && spread->x == decay) spread->x = changed;
  }
}

/// Other numbers of partitions, or the same partitions for every token.
void change_routing(Program& program, const Rules& rules) {
  const Value ids = shown(program, "partition_selected");
  if (!ids) return;
  SparseMemory* memory = nullptr;
  for (Operation& op : program.operations) {
    if (auto* sparse = std::get_if<SparseMemory>(&op)) memory = sparse;
  }
  const auto count = std::ssize(rules.route);
  const std::int64_t chosen = program[program.whole(ids)].axes[0];
  const std::int64_t written = memory ? memory->writers : chosen, read = memory ? memory->readers : chosen;
  const std::int64_t writers = count > 0 ? count : rules.writers > 0 ? rules.writers : written;
  const std::int64_t readers = count > 0 ? count : rules.readers > 0 ? rules.readers : read;
  if (memory) memory->writers = writers, memory->readers = readers;
  for (ValueInfo& info : program.values) {
    if (info.of == ids && info.axes[0] == written) info.axes[0] = writers;
  }
  program[ids].axes = {std::max(writers, readers)};
  if (count > 0) program.operations[maker(program, ids)] = Route{rules.route, ids};
}

void sharpen(Program& program, float sharpness) {
  for (const std::string_view name : {"head_gate_q", "head_gate_k"}) {
    const Value gate = shown(program, name);
    if (gate) std::get<Softmax>(std::get<Apply>(program.operations[maker(program, gate)]).f).temperature *= sharpness;
  }
}

}  // namespace

void apply_rules(Program& program, const Rules& rules) {
  if (rules.decay != 1) change_decay(program, rules.decay);
  if (rules.writers > 0 || rules.readers > 0 || !rules.route.empty()) change_routing(program, rules);
  if (rules.sharpness != 1) sharpen(program, rules.sharpness);
  if (rules.unread) {
    for (const Value o : program.reads) {
      const std::size_t at = maker(program, o);
      read_instead(program, at + 1, o, insert(program, o, [](Value y) { return Fill{.number = 0, .y = y}; }));
    }
  }
  if (const auto [head, heads] = rules.unread_head; heads > 0) {
    for (const Value read : program.readouts) {
      const std::size_t at = maker(program, read);
      const Value rest = insert(program, read, [&](Value y) { return Apply{.x = read, .f = WithoutHead{head, heads}, .y = y}; });
      read_instead(program, at + 1, read, rest);
    }
  }
}

}  // namespace statescope::program

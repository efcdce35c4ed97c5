#include "kernels/program/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <set>
#include <string>
#include <utility>

namespace statescope::program {
namespace {

std::string number(double x, const char* format = "%.4g") {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, std::abs(x));
  return (x < 0 ? "−" : "") + std::string(text.data());
}

std::string name_of(Activation act) {
  constexpr std::array names{"identity", "silu", "relu", "sigmoid", "elu+1", "exp", "ln(1 − ·)", "tanh", "gelu"};
  return names[static_cast<std::size_t>(act)];
}

/// Of a part of another value: "v1[0:16]".
std::string part_of(const Program& program, Value v) {
  const ValueInfo& info = program[v];
  const std::string whole = name_in(program, info.of);
  if (program.width(v) == program.width(info.of)) return whole;
  return whole + "[" + std::to_string(info.begin) + ":" + std::to_string(info.begin + program.width(v)) + "]";
}

/// act(x)
std::string applied(Activation act, const std::string& x) { return act == Activation::identity ? x : name_of(act) + "(" + x + ")"; }

/// Writes one operation after the other.
class Writer {
 public:
  explicit Writer(const Program& program) : program_(program) {}

  std::string text;

  /// Parts of a value that have names of their own, before they are read.
  void define(Value v) {
    const ValueInfo& info = program_[v];
    if (!info.of) return;
    define(info.of);
    if (info.name.empty() || of(info.of) == info.name || !defined_.insert(info.name).second) return;
    text += info.name + " " + info.axes.to_string() + " = " + part_of(program_, v) + "\n";
  }

  void operator()(const Linear& op) { line(op.y, product(op.x, op.weight, op.bias)); }
  void operator()(const LinearOfHeads& op) { line(op.y, of(op.x) + " · one row of " + shape(op.weight) + "ᵀ for each head"); }
  void operator()(const LinearEachHead& op) { line(op.y, product(op.x, op.weight, op.bias) + " in each head"); }
  void operator()(const Apply& op) { line(op.y, std::visit(Function{of(op.x)}, op.f)); }
  void operator()(const Combine& op) { line(op.y, std::visit(Combination{of(op.a), of(op.b)}, op.f)); }
  void operator()(const Constant& op) { line(op.y, "constant " + shape(op.row)); }
  void operator()(const Fill& op) { line(op.y, number(op.number)); }
  void operator()(const Columns& op) {
    line(op.y, of(op.x) + " in " + std::to_string(op.ranges.size()) + (op.of_heads ? " ranges of each head" : " ranges"));
  }
  void operator()(const Stack& op) { line(op.y, "[" + of(op.a) + " | " + of(op.b) + "]"); }
  void operator()(const Convolution& op) { line(op.y, convolution(op, of(op.x))); }
  void operator()(const TopK& op) { line(op.ids, "top_k(" + of(op.scores) + ")"); }
  void operator()(const Route& op) {
    std::string ids;
    for (const std::int32_t id : op.partitions) ids += " " + std::to_string(id);
    line(op.ids, "partitions" + ids);
  }
  void operator()(const Renormalise& op) { line(op.y, "renormalise(" + of(op.gate) + ", " + of(op.ids) + ")"); }
  void operator()(const RowSparse& op) {
    line(op.k, op.sparse_decay,
         "row_sparse(" + of(op.z) + ", " + of(op.log_decay) + "), top " + std::to_string(op.topk) +
             (op.skip_decay ? ", no decay in other rows" : ""));
  }
  void operator()(const Pair& op) { line(op.y, pair(op)); }
  void operator()(const CopyState& op) { line(op.y, "copy of S" + std::to_string(op.memory)); }
  void operator()(const OuterProduct& op) { line(op.o, memory(op)); }
  void operator()(const DeltaRule& op) { line(op.o, memory(op)); }
  void operator()(const SelectiveScan& op) {
    line(op.o, "selective_scan(" + state(op.state) + "; " + of(op.x) + ", " + of(op.dt) + ", A " + shape(op.A) + ", " + of(op.B) + ", " +
                   of(op.C) + (op.decay_factor == 1 ? "" : ", decay " + number(op.decay_factor)) + ")");
  }
  void operator()(const Wkv& op) { line(op.o, memory(op)); }
  void operator()(const LogLinearAttention& op) {
    line(op.o, "log_linear_attention(" + state(op.state) + "; " + of(op.q) + ", " + of(op.k) + ", " + of(op.v) + decayed(op.log_decay) +
                   "), levels times " + of(op.level_scale));
  }
  void operator()(const StateSpace& op) {
    line(op.o,
         "state_space(" + state(op.state) + "; " + of(op.u) + ", A " + shape(op.A) + ", B " + shape(op.B) + ", C " + shape(op.C) + ")");
  }
  void operator()(const SparseMemory& op) { line(op.o, memory(op)); }
  void operator()(const Dispatch& op) {
    line(op.y, "rows of " + of(op.x) + (op.shared ? " for the shared memory, then" : "") + " for each of " + std::to_string(op.memories) +
                   " memories, by " + of(op.ids));
  }
  void operator()(const LinearOfSlots& op) { line(op.y, product(op.x, op.weights.front(), {}) + " of its memory"); }
  void operator()(const Collect& op) { line(op.y, "Σ over the rows of a token of " + of(op.gate) + " · " + of(op.x)); }
  void operator()(const BySlot& op) { line(op.y, of(op.x) + " by memory, 0 where a token has no row"); }
  void operator()(const Append& op) {
    text += "append " + of(op.k) + (op.v ? ", " + of(op.v) : "") + (op.index ? ", " + of(op.index) : "") + " to the cache\n";
  }
  void operator()(const Attend& op) { line(op.o, "attend(" + of(op.q) + ")" + sight(op)); }
  void operator()(const LatentAttend& op) {
    line(op.o, "attend(" + of(op.q) + ") to the latents of the cache, keys " + shape(op.W_k) + ", values " + shape(op.W_v) +
                   (op.chosen ? ", over " + of(op.chosen) : ""));
  }
  void operator()(const CompressedAttend& op) {
    line(op.o, op.selected,
         "attend(" + of(op.q) + ") to the means of blocks of " + std::to_string(op.block_size) + " tokens, and the " +
             std::to_string(program_.width(op.selected)) + " blocks with most of it");
  }
  void operator()(const ChooseTokens& op) { line(op.selected, "choose_tokens(" + of(op.q) + ", " + of(op.weight) + ")"); }
  void operator()(const MeanOfHeads& op) {
    line(op.y, "mean of " + applied(op.act, of(op.gate)) + (op.heads > 1 ? " in each of " + std::to_string(op.heads) + " heads" : ""));
  }
  void operator()(const Distance& op) { line(op.y, "‖" + of(op.other) + " − " + of(op.own) + "‖ / ‖" + of(op.own) + "‖"); }
  void operator()(const Products& op) {
    if (op.all.size() == 1) return line(op.all[0].y, product(op.all[0]));
    text += "together\n";
    for (const Product& p : op.all) {
      text += "  ";
      line(p.y, product(p));
    }
  }
  void operator()(const GatedNorm& op) { line(op.y, norm(of(op.x), op.norm, op.gate, op.act)); }
  void operator()(const ForgetGatedOuterProduct& op) {
    line(op.memory.o, memory(op.memory) + " with " + of(op.gate.y) + " = " + product(op.gate));
  }
  void operator()(const UnitDeltaRule& op) {
    const std::string o = memory(op.memory, "L2(" + of(op.memory.q) + ")", "L2(" + of(op.memory.k) + ")");
    line(op.memory.o, op.readout ? norm(o, *op.readout, op.gate, op.gate_act) : o);
  }
  void operator()(const SparseMemoryFrom& op) {
    std::string from = "\n    with " + of(op.q.y) + " = " + pair(op.q) + "\n    with " + of(op.k.y) + " = " + pair(op.k) + "\n    with " +
                       of(op.memory.gate) + " = softmax(" + of(op.logits) + ")\n    with " + of(op.memory.selected) + " = top_k(" +
                       of(op.by_logits ? op.logits : op.memory.gate) + ")";
    for (const Product& p : op.decays) from += "\n    with " + of(p.y) + " = " + product(p);
    line(op.memory.o, memory(op.memory) + from);
  }

 private:
  struct Function {
    std::string x;
    std::string operator()(Activation act) const { return applied(act, x); }
    std::string operator()(const RmsNorm& f) const {
      return "RMSNorm(" + x + ") over " + std::to_string(f.group) + (f.weight ? "" : ", no weight") +
             (f.offset != 0 ? ", zero-centred" : "");
    }
    std::string operator()(const LayerNorm& f) const { return "LayerNorm(" + x + ") over " + std::to_string(f.group); }
    std::string operator()(const L2Norm&) const { return "L2(" + x + ")"; }
    std::string operator()(const SumNorm&) const { return x + " / Σ " + x; }
    std::string operator()(const Softmax& f) const {
      return f.temperature == 1 ? "softmax(" + x + ")" : "softmax(" + number(f.temperature) + " " + x + ")";
    }
    std::string operator()(const ForgetGate& f) const { return "logσ(" + x + ") / " + number(f.normalizer); }
    std::string operator()(const DeltaDecay& f) const {
      if (f.lower_bound < 0) return number(f.lower_bound) + " · σ(exp(A_log) · (" + x + " + dt_bias))";
      return "−exp(A_log) · softplus(" + x + " + dt_bias)";
    }
    std::string operator()(const SoftplusClamp& f) const {
      const std::string y = "softplus(" + x + (f.dt_bias ? " + dt_bias)" : ")");
      return f.dt_min <= 0 && std::isinf(f.dt_max) ? y : "clamp(" + y + ")";
    }
    std::string operator()(const OneMinusExp&) const { return "1 − exp(" + x + ")"; }
    std::string operator()(const Rope& f) const { return "RoPE(" + x + "), base " + number(f.theta, "%.7g"); }
    std::string operator()(const ListedRope&) const { return "RoPE(" + x + "), frequencies of its own"; }
    std::string operator()(const Times& f) const { return number(f.factor) + " · " + x; }
    std::string operator()(const WithoutHead& f) const { return x + ", 0 in head " + std::to_string(f.head); }
  };
  struct Combination {
    std::string a, b;
    std::string operator()(const Add& f) const {
      return a + (f.factor < 0 ? " − " : " + ") + (std::abs(f.factor) == 1 ? "" : number(std::abs(f.factor)) + " · ") + b;
    }
    std::string operator()(const Gate& f) const { return a + " ⊙ " + applied(f.act, b); }
    std::string operator()(const ScaleHeads&) const { return b + " · " + a + " by heads"; }
    std::string operator()(const DivideHeads&) const { return a + " / " + b + " by heads"; }
  };

  static std::string shape(ConstTensor x) { return x.shape.to_string(); }
  std::string of(Value v) const { return name_in(program_, v); }
  std::string made(Value y) {
    defined_.insert(of(y));
    return of(y) + " " + program_[y].axes.to_string();
  }
  void line(Value y, const std::string& how) { text += made(y) + " = " + how + "\n"; }
  void line(Value y, Value beside, const std::string& how) { text += made(y) + ", " + made(beside) + " = " + how + "\n"; }

  std::string sight(const Attend& op) const {
    const std::string blocks = "blocks of " + std::to_string(std::max(op.block_size, op.pattern.block_size)) + " tokens";
    if (op.chosen) return " to " + of(op.chosen) + (op.block_size > 1 ? ", " + blocks : "");
    if (op.pattern.block_size > 0) return " to a fixed pattern of " + blocks;
    const std::string window = op.window > 0 ? " to the last " + std::to_string(op.window) + " tokens" : "";
    if (window.empty() && op.block_size == 0) return " to all tokens so far";
    return window + (op.block_size > 0 ? ", the " + std::to_string(op.topk) + " " + blocks + " that suit best" : "");
  }
  static std::string convolution(const Convolution& op, const std::string& x) {
    const std::string y = "convolution of " + std::to_string(op.weight.row_size()) + " tokens(" + x + ")";
    return applied(op.act, y);
  }
  std::string product(Value x, ConstTensor weight, ConstTensor bias) const {
    return of(x) + " · " + shape(weight) + "ᵀ" + (bias ? " + bias" : "");
  }
  std::string product(const Product& p) const {
    std::string z = p.norm ? "(" + norm(of(p.x), *p.norm, p.gate, p.gate_act) + ") · " + shape(p.weight) + "ᵀ" + (p.bias ? " + bias" : "")
                           : product(p.x, p.weight, p.bias);
    if (p.z) z = "(" + of(p.z) + " = " + z + ")";
    if (const auto* act = std::get_if<Activation>(&p.finish)) return applied(*act, z);
    if (const auto* forget = std::get_if<ForgetGate>(&p.finish)) return Function{z}(*forget);
    if (const auto* decay = std::get_if<DeltaDecay>(&p.finish)) return Function{z}(*decay);
    return convolution(std::get<Convolution>(p.finish), z);
  }
  std::string norm(const std::string& x, const RmsNorm& f, Value gate, Activation act) const {
    const std::string normed = Function{x}(f);
    return gate ? normed + " ⊙ " + applied(act, of(gate)) : normed;
  }
  std::string pair(const Pair& op) const {
    const auto f = [&](const std::string& x) { return op.softmax ? "softmax(" + x + ")" : applied(op.act, x); };
    return "(" + f(of(op.shared)) + ", " + f(of(op.sparse) + " + " + of(op.more)) + ")";
  }
  std::string state(const StateOf& state) const { return state.copy ? of(state.copy) : "S" + std::to_string(state.index); }
  std::string memory(const OuterProduct& op) const {
    return "outer_product(" + state(op.state) + "; " + of(op.q) + ", " + of(op.k) + ", " + of(op.v) + decayed(op.log_decay) +
           (op.decay_axis == DecayAxis::columns ? " by columns" : "") + ")";
  }
  std::string memory(const DeltaRule& op) const { return memory(op, of(op.q), of(op.k)); }
  std::string memory(const DeltaRule& op, const std::string& q, const std::string& k) const {
    return "delta_rule(" + state(op.state) + "; " + q + ", " + k + ", " + of(op.v) + decayed(op.log_decay) + ", " + of(op.beta) +
           (op.undecayed_erase ? ", erases " + of(op.undecayed_erase) + " of what has not decayed" : "") +
           (op.steps > 1 ? ", " + std::to_string(op.steps) + " steps a token" : "") + ")";
  }
  std::string memory(const Wkv& op) const {
    return "wkv(" + state(op.state) + "; " + of(op.q) + ", " + of(op.k) + ", " + of(op.v) + decayed(op.log_decay) +
           (op.erase_key ? ", erases what " + of(op.erase_key) + " reads along " + of(op.erase_along) : "") +
           (op.reads_first ? ", reads first" : "") + ")";
  }
  std::string memory(const SparseMemory& op) const {
    return "sparse_" + std::string(op.beta ? "delta_rule(" : "outer_product(") + state(op.state) + "; " + of(op.q) + ", " + of(op.k) +
           ", " + of(op.v) + decayed(op.log_decay) + (op.beta ? ", " + of(op.beta) : "") + ", " + of(op.gate) + ", " + of(op.selected) +
           "), writes " + std::to_string(op.writers) + ", reads " + std::to_string(op.readers);
  }
  std::string decayed(Value decay) const { return decay ? ", " + of(decay) : ""; }

  const Program& program_;
  std::set<std::string> defined_;
};

}  // namespace

std::string name_in(const Program& program, Value v) {
  if (!v) return "nothing";
  const ValueInfo& info = program[v];
  if (!info.name.empty()) return info.name;
  if (v == program.x()) return "x";
  if (v == program.result) return "y";
  return info.of ? part_of(program, v) : "v" + std::to_string(v.index);
}

std::string to_string(const Program& program) {
  Writer writer(program);
  for (const Operation& op : program.operations) {
    for (const Value v : operands(op)) writer.define(v);
    std::visit(writer, op);
  }
  return std::move(writer.text);
}

}  // namespace statescope::program

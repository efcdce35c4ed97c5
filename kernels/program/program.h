// A layer's computation as data: operations over symbolic values. A mixer describes itself as one, once, in the paper's terms
// (engine/mixers); passes turn it into one that computes the same with fewer launches (kernels/passes); run.h runs it on a device.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/ops/decayed_outer_product.h"
#include "kernels/ops/elementwise.h"
#include "kernels/ops/projection.h"
#include "kernels/ops/softmax_attention.h"
#include "kernels/ops/sparse_state.h"

namespace statescope::program {

/// A symbolic tensor [T, axes…], T the tokens of a pass; absent by default.
struct Value {
  std::int32_t index = -1;
  explicit operator bool() const { return index >= 0; }
  bool operator==(const Value&) const = default;
};

/// rounded: what the next product or memory rounds anyway (Backend::activation_type); exact: float32; indices: i32.
enum class ValueType : std::uint8_t { rounded, exact, indices };

// Functions of one value, whose result has its shape. Equations: kernels/ops/elementwise.h.
struct RmsNorm {
  ConstTensor weight;  // [group] or absent
  std::int64_t group = 0;
  float eps = 0, offset = 0;
};
struct LayerNorm {
  ConstTensor weight, bias;  // as long as a row, or absent
  std::int64_t group = 0;
  float eps = 0;
};
struct L2Norm {};
struct SumNorm {
  float eps = 0;
};
struct Softmax {
  float temperature = 1;
};
struct SoftplusClamp {
  ConstTensor dt_bias;
  float dt_min = 0, dt_max = 0;
};
struct OneMinusExp {};
struct Rope {
  double theta = 10000;
  std::int64_t rotary = 0;
};
/// RoPE whose frequencies are listed, or follow from the length of the context (spec §19.15).
struct ListedRope {
  std::function<std::vector<float>(std::int64_t length)> frequencies;  // ω of a context of so many tokens
  bool by_length = false;  // a prompt has those of its whole length, a token after it those of the context up to itself
  float factor = 1;        // multiplies cos and sin
};
/// y = factor · x, 0 where the factor is 0 and x infinite
struct Times {
  float factor = 1;
};
/// y = 0 in one of so many heads
struct WithoutHead {
  std::int64_t head = 0, heads = 0;
};
using Function = std::variant<Activation, RmsNorm, LayerNorm, L2Norm, SumNorm, Softmax, ForgetGate, DeltaDecay, SoftplusClamp, OneMinusExp,
                              Rope, ListedRope, Times, WithoutHead>;

// Functions of two values; the result has the shape of the first.
struct Add {
  float factor = 1;  // y = a + factor · b
};
struct Gate {
  Activation act = Activation::identity;  // y = a ⊙ act(b)
};
struct ScaleHeads {};  // y[t, h, :] = b[t, h] · a[t, h, :]
struct DivideHeads {
  float eps = 0;  // y[t, h, :] = a[t, h, :] / (b[t, h] + eps)
};
using Combination = std::variant<Add, Gate, ScaleHeads, DivideHeads>;

// Operations: their operands, what they need besides, their results.

/// y = x · weightᵀ + bias
struct Linear {
  Value x;
  ConstTensor weight, bias;
  Value y;
};
/// y[t, h] = x[t, h, :] · weight[h, :]: row h of the weight sees head h alone
struct LinearOfHeads {
  Value x;
  ConstTensor weight;
  Value y;
};
/// y[t, h, :] = x[t, h, :] · weightᵀ + bias: every head by itself
struct LinearEachHead {
  Value x;
  ConstTensor weight, bias;
  Value y;
};
struct Apply {
  Value x;
  Function f;
  Value y;
};
struct Combine {
  Value a, b;
  Combination f;
  Value y;
};
/// One row for all tokens.
struct Constant {
  ConstTensor row;
  Value y;
};
/// One number everywhere.
struct Fill {
  float number = 0;
  Value y;
};
/// y = of every row of x, or of every head of x [T, heads, n], these ranges (begin, count), side by side
struct Columns {
  Value x;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  bool of_heads = false;
  Value y;
};
/// y = [a | b]: the two side by side
struct Stack {
  Value a, b;
  Value y;
};
/// The short convolution of x with cache `cache` of the state     (spec §1.5)
struct Convolution {
  Value x;
  ConstTensor weight, bias;
  Activation act = Activation::identity;
  std::size_t cache = 0;
  Value y;
};
/// ids = the largest of scores, of each head's where there are heads; ties to the lowest index     (routing.h)
struct TopK {
  Value scores;
  Value ids;
};
/// The same partitions for every token.
struct Route {
  std::vector<std::int32_t> partitions;
  Value ids;
};
/// routing.h: y = gate, divided by its sum over ids, 0 elsewhere
struct Renormalise {
  Value gate, ids;
  Value y;
};
/// routing.h: the row-sparse write
struct RowSparse {
  Value z, log_decay;
  std::int64_t topk = 1;
  bool skip_decay = true;
  Value k, sparse_decay;
};
/// sparse_state.h: y[:, 0] = f(shared), y[:, 1] = f(sparse + more)
struct Pair {
  Value shared, sparse, more;
  Activation act = Activation::identity;
  bool softmax = false;  // instead of act
  Value y;
};

/// The matrix state that a memory reads and writes: memory `index` of the layer's, or a copy of one that is used up.
struct StateOf {
  std::size_t index = 0;
  Value copy;
};
/// y [slots, …]: a memory's state before the tokens, for a memory that is read once more
struct CopyState {
  std::size_t memory = 0;
  Value y;
};
/// decayed_outer_product.h
struct OuterProduct {
  Value q, k, v, log_decay;
  DecayAxis decay_axis = DecayAxis::rows;
  float scale = 1;
  StateOf state;
  Value o;
};
/// gated_delta_rule.h, fused/delta_rules.h
struct DeltaRule {
  Value q, k, v, log_decay, beta;
  Value undecayed_erase;   // absent, or c: what is erased is of the state before its decay
  std::int64_t steps = 1;  // of a token; more: k, v and beta are of all steps, one step's heads side by side
  float scale = 1;
  StateOf state;
  Value o;
};
/// selective_scan.h
struct SelectiveScan {
  Value x, dt, B, C;
  ConstTensor A;
  float decay_factor = 1;
  StateOf state;
  Value o;
};
/// wkv.h
struct Wkv {
  Value q, k, v, log_decay;
  Value erase_key, erase_along;  // absent: nothing is taken away
  bool reads_first = false;
  float scale = 1;
  StateOf state;
  Value o;
};
/// log_linear_attention.h
struct LogLinearAttention {
  Value q, k, v, log_decay, level_scale;
  StateOf state;
  Value o;
};
/// state_space.h
struct StateSpace {
  Value u;
  ConstTensor A, B, C;
  StateOf state;
  Value o;
};
/// sparse_state.h
struct SparseMemory {
  Value q, k, v, log_decay, beta, gate, selected;
  std::int64_t writers = 1, readers = 1;
  bool gate_q = true, gate_k = true;
  GatePlace gate_place = GatePlace::before_l2;
  bool writes_mean = false;  // write_scale is 1 / writers
  float scale = 1;
  StateOf state;
  Value o;
};

// Tokens that are routed to memories: a row for each token of each memory that it goes to.

/// y: every token's row of x for the shared memory, where there is one, then for each memory in turn those of the tokens whose ids name it.
/// What is made of such rows has such rows.
struct Dispatch {
  Value x, ids;
  std::int64_t memories = 1;
  bool shared = false;
  Value y;
};
/// y = x · weightᵀ, with the weight of the slot that a row is routed to
struct LinearOfSlots {
  Value x;
  std::vector<ConstTensor> weights;  // of each slot
  Value y;
};
/// y[t] = x of the shared memory + Σ_m gate[t, m] · x of memory m, over the rows of token t
struct Collect {
  Value x, gate;
  Value y;
};
/// y[t, slot] = x of token t's row of that slot, 0 where it has none
struct BySlot {
  Value x;
  Value y;
};

/// The tokens' keys and values come behind those of all tokens before them; with them the indexer's keys, where there is one.
struct Append {
  Value k, v;  // no v: what is read is in k
  Value index;
};
/// softmax_attention.h, over all keys and values so far
struct Attend {
  Value q;
  float scale = 1;
  std::int64_t window = 0;
  std::int64_t block_size = 0, topk = 0;  // MoBA's, of prompts; with `chosen` its blocks' size
  FixedPattern pattern;
  Value chosen;  // blocks of block_size tokens, or absent
  Value o;
  Value selected;  // [T, H, topk − 1], or absent: no blocks are chosen, or nobody wants to know which
};
/// latent_attention.h, over all latents so far: the cache's keys
struct LatentAttend {
  Value q;
  bool shared_first = false;
  ConstTensor W_k, W_v;
  float scale = 1;
  Value chosen;  // tokens, or absent
  Value o;
};
/// compressed_attention.h, over all keys and values so far
struct CompressedAttend {
  Value q;
  float scale = 1;
  std::int64_t block_size = 1;
  Value o, selected;
  Value importance;  // absent: nobody wants to know it
};
/// token_choice.h, over all of the indexer's keys so far
struct ChooseTokens {
  Value q, weight;
  float scale = 1;
  Value selected;
  Value scores;  // absent: nobody wants to know them
};

// What somebody may want to see and nothing else needs; worked out on the host.
/// y [T, heads]: the mean over a head's channels of act(gate)
struct MeanOfHeads {
  Value gate;
  std::int64_t heads = 1;
  Activation act = Activation::identity;
  Value y;
};
/// y [T, 1] = ‖other − own‖ / ‖own‖
struct Distance {
  Value other, own;
  Value y;
};

// What passes make.
/// One of Products (projection.h): z = x̂ · weightᵀ + bias, y = finish(z), x̂ = x or its norm.
struct Product {
  Value x;
  std::optional<RmsNorm> norm;
  Value gate;  // of the norm
  Activation gate_act = Activation::identity;
  ConstTensor weight, bias;
  std::variant<Activation, ForgetGate, DeltaDecay, Convolution> finish;  // a Convolution's x and y are not used
  Value z;                                                               // absent: nobody else reads it
  Value y;
};
/// Products that a device may compute together; the x of one may be the y of one before it.
struct Products {
  std::vector<Product> all;
};
/// y = RMSNorm(x) ⊙ act(gate)
struct GatedNorm {
  Value x, gate;
  RmsNorm norm;
  Activation act = Activation::identity;
  Value y;
};
/// An outer product whose decay is the y of `gate`, a ForgetGate that only the memory reads.
struct ForgetGatedOuterProduct {
  OuterProduct memory;
  Product gate;
};
/// A delta rule of L2(q) and L2(k), whose output perhaps passes a norm over heads.
struct UnitDeltaRule {
  DeltaRule memory;
  std::optional<RmsNorm> readout;
  Value gate;  // of that norm
  Activation gate_act = Activation::identity;
};
/// A sparse state whose pairs, gate and choice are made on the way, perhaps its decays too.
struct SparseMemoryFrom {
  SparseMemory memory;
  Pair q, k;
  Value logits;
  bool by_logits = false;
  std::vector<Product> decays;
};

using Operation =
    std::variant<Linear, LinearOfHeads, LinearEachHead, Apply, Combine, Constant, Fill, Columns, Stack, Convolution, TopK, Route,
                 Renormalise, RowSparse, Pair, CopyState, OuterProduct, DeltaRule, SelectiveScan, Wkv, LogLinearAttention, StateSpace,
                 SparseMemory, Dispatch, LinearOfSlots, Collect, BySlot, Append, Attend, LatentAttend, CompressedAttend, ChooseTokens,
                 MeanOfHeads, Distance, Products, GatedNorm, ForgetGatedOuterProduct, UnitDeltaRule, SparseMemoryFrom>;

/// What axis 0 of a value counts: tokens, a state's slots, or rows as Dispatch makes them.
enum class Rows : std::uint8_t { tokens, slots, routed };

struct ValueInfo {
  Shape axes;  // behind that of the rows
  ValueType numbers = ValueType::rounded;
  std::string name;  // as a mixer calls it; channels are those of Program::channels
  Value of;          // a view: columns [begin, …) of every row of this
  std::int64_t begin = 0;
  Rows rows = Rows::tokens;
};

/// A value that an observer may ask for by name.
struct Channel {
  std::string name;
  Value value;
  bool costs = false;  // takes work of its own, which is done only for observers that want all
};

class Program {
 public:
  /// x: [T, hidden], already normalised.
  explicit Program(std::int64_t hidden);

  Value x() const { return {0}; }
  /// What the layer puts out [T, hidden]; absent: not yet said, or nobody wants it.
  Value result;
  std::vector<Operation> operations;
  std::vector<ValueInfo> values;
  std::vector<Channel> channels;
  // What interventions change: what is read of a memory on its way out, and the heads side by side that the last product reads.
  std::vector<Value> reads, readouts;

  const ValueInfo& operator[](Value v) const { return values[static_cast<std::size_t>(v.index)]; }
  ValueInfo& operator[](Value v) { return values[static_cast<std::size_t>(v.index)]; }
  /// The value whose memory v lies in: v itself if it is no view.
  Value whole(Value v) const;
  std::int64_t width(Value v) const { return (*this)[v].axes.size(); }

  Value value(Shape axes, ValueType numbers = ValueType::rounded);
  /// Of every row of v the numbers from `begin` on, read as `axes`.
  Value columns(Value v, std::int64_t begin, Shape axes);
  Value with_axes(Value v, Shape axes) { return columns(v, 0, axes); }
  /// v may be asked for by this name. Twice the same name: the last one holds.
  Value show(std::string_view name, Value v, bool costs = false);

  Value linear(ConstTensor weight, ConstTensor bias, Value x, ValueType numbers = ValueType::rounded);
  Value linear_of_heads(ConstTensor weight, Value x);
  Value linear_each_head(ConstTensor weight, ConstTensor bias, Value x);
  Value apply(Function f, Value x) { return apply(std::move(f), x, (*this)[x].numbers); }
  Value apply(Function f, Value x, ValueType numbers);
  /// y, a part of another value, becomes f(x).
  void apply_into(Value y, Function f, Value x) { operations.emplace_back(Apply{.x = x, .f = std::move(f), .y = y}); }
  Value combine(Combination f, Value a, Value b);
  Value constant(ConstTensor row, Shape axes);
  Value fill(float number, Shape axes);
  Value taken(Value x, std::vector<std::pair<std::int64_t, std::int64_t>> ranges, Shape axes);
  /// Of every head of x [T, heads, n] the same ranges, n numbers together.
  Value taken_of_heads(Value x, std::vector<std::pair<std::int64_t, std::int64_t>> ranges);
  /// x [T, groups, from, …] with `to` heads in each group, head i taking producer_head(i): repeat-interleave. One group has no axis of its
  /// own. x itself where there are as many heads as wanted.
  Value repeat_heads(Value x, std::int64_t groups, std::int64_t from, std::int64_t to);
  Value stack(Value a, Value b, Shape axes);
  Value convolution(Value x, ConstTensor weight, ConstTensor bias, Activation act, std::size_t cache);
  Value top_k(Value scores, std::int64_t count);
  Value renormalise(Value gate, Value ids);
  /// k and the decay that goes with it
  std::pair<Value, Value> row_sparse(Value z, Value log_decay, std::int64_t topk, bool skip_decay);
  Value pair(Pair of, Shape axes);
  Value copy_state(std::size_t memory, Shape state);
  /// o [T, heads, V], which the fields before it say all else about
  Value remember(OuterProduct memory, std::int64_t heads, std::int64_t V, ValueType numbers = ValueType::rounded);
  Value remember(DeltaRule memory, std::int64_t heads, std::int64_t V, ValueType numbers = ValueType::rounded);
  Value remember(SelectiveScan memory, std::int64_t heads, std::int64_t P);
  Value remember(Wkv memory, std::int64_t heads, std::int64_t V, ValueType numbers = ValueType::rounded);
  Value remember(LogLinearAttention memory, std::int64_t heads, std::int64_t V);
  /// o [T, width]
  Value remember(StateSpace memory, std::int64_t width);
  Value remember(SparseMemory memory, std::int64_t heads, std::int64_t V);
  Value dispatch(Value x, Value ids, std::int64_t memories, bool shared, Shape axes);
  Value linear_of_slots(std::vector<ConstTensor> weights, Value x, ValueType numbers = ValueType::rounded);
  Value collect(Value x, Value gate);
  Value by_slot(Value x, std::int64_t slots);
  void append(Value k, Value v, Value index = {}) { operations.emplace_back(Append{k, v, index}); }
  /// o [T, heads, V] and, where blocks are chosen, which
  std::pair<Value, Value> attend(Attend attention, std::int64_t heads, std::int64_t V);
  /// o [T, heads, V]
  Value attend(LatentAttend attention, std::int64_t heads, std::int64_t V);
  /// The same with its results: o [T, heads, V], selected and importance [T, kv_heads, count].
  CompressedAttend attend(CompressedAttend attention, std::int64_t heads, std::int64_t V, std::int64_t kv_heads, std::int64_t count);
  /// The same with its results [T, count].
  ChooseTokens choose(ChooseTokens choice, std::int64_t count);
  Value mean_of_heads(Value gate, std::int64_t heads, Activation act);
  Value distance(Value other, Value own);

 private:
  template <class Op>
  Value add(Op op, Value Op::*written, Shape axes, ValueType numbers);
};

/// What an operation reads, and what it writes; without absent ones.
std::vector<Value> operands(const Operation& op);
std::vector<Value> results(const Operation& op);
/// The operation with other values: each becomes f(value).
void replace_values(Operation& op, const std::function<Value(Value)>& f);
/// Whether it changes what the layer keeps: a state or the cache of a convolution.
bool changes_state(const Operation& op);

/// Whether a norm of x may be left to the products: nothing else reads x, and the result is a product.
bool norm_folds_into_products(const Program& program);

/// One line for each operation, as people read it.
std::string to_string(const Program& program);

}  // namespace statescope::program

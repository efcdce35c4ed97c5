#include "engine/mixers/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/error.h"

namespace statescope {

std::int64_t divided(std::int64_t a, std::string_view a_name, std::int64_t b, std::string_view b_name) {
  if (b < 1 || a % b != 0) throw Error(fmt::format("config: {} ({}) is not a multiple of {} ({})", a_name, a, b_name, b));
  return a / b;
}

void require_pairs(std::int64_t channels, std::string_view name) {
  if (channels % 2 != 0) throw Error(fmt::format("config: {} is {}, but RoPE turns channels in pairs", name, channels));
}

std::int64_t expanded(std::int64_t size, const Config& config, std::string_view key, double fallback) {
  const double factor = config.number(key, fallback);
  const double product = static_cast<double>(size) * factor;
  if (!(product >= 1 && product <= 1e9)) throw Error(fmt::format("config: \"{}\" is {}, out of range", key, factor));
  return static_cast<std::int64_t>(product);
}

Activation activation_named(const Config& config, std::string_view key, std::string_view fallback,
                            std::initializer_list<std::string_view> allowed) {
  const std::string name = config.has(key) ? config.text(key, {}, allowed) : std::string(fallback);
  if (name == "swish" || name == "silu") return Activation::silu;
  if (name == "relu") return Activation::relu;
  if (name == "sigmoid") return Activation::sigmoid;
  return name == "elu" ? Activation::elu_plus_one : Activation::identity;
}

Linear::Linear(const WeightScope& weights, std::string_view name, std::int64_t out, std::int64_t in, bool with_bias) {
  weight = weights.matrix(fmt::format("{}.weight", name), {out, in});
  if (with_bias) bias = weights.floats(fmt::format("{}.bias", name), {out});
}

void Linear::load_together(const WeightScope& weights, const std::vector<Part>& parts, std::int64_t in) {
  std::vector<TensorSpec> specs;
  for (const Part& part : parts) specs.push_back({fmt::format("{}.weight", part.name), {part.out, in}});
  const std::vector<ConstTensor> loaded = weights.matrices(std::move(specs));
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].to->weight = loaded[i];
}

Tensor Linear::operator()(Context& ctx, ConstTensor x) const {
  Tensor y = ctx.workspace.tensor({x.rows(), out()}, ctx.activation_type());
  into(ctx, y, x);
  return y;
}

Tensor Linear::exact(Context& ctx, ConstTensor x) const {
  Tensor y = ctx.workspace.tensor({x.rows(), out()});
  into(ctx, y, x);
  return y;
}

ToldSize::ToldSize(const Config& config, std::string_view key_, std::int64_t fallback)
    : value(config.integer(key_, fallback)), key(config.has(key_) ? config.in_file(key_) : std::string()) {}

std::int64_t ToldSize::of(const WeightScope& weights, std::string_view tensor, std::size_t axis) const {
  const std::int64_t told = weights.extent(tensor, axis, value);
  if (told < 1) throw Error(fmt::format("tensor {} has nothing on axis {}", weights.full(tensor), axis));
  if (!key.empty() && told != value)
    throw Error(fmt::format("config: \"{}\" is {}, but tensor {} has {} on axis {}", key, value, weights.full(tensor), told, axis));
  return told;
}

LowRank::LowRank(const WeightScope& weights, std::string_view name, std::int64_t out, std::int64_t in, ToldSize rank_told, bool bias) {
  first = Linear(weights, fmt::format("{}.0", name), rank(weights, name, rank_told), in);
  second = Linear(weights, fmt::format("{}.1", name), out, first.out(), bias);
}

std::int64_t LowRank::rank(const WeightScope& weights, std::string_view name, ToldSize told) {
  return told.of(weights, fmt::format("{}.0.weight", name), 0);
}

Conv::Conv(const WeightScope& weights, std::string_view name, std::int64_t channels, ToldSize width_told, Activation act_, bool with_bias)
    : act(act_) {
  const std::string weight_name = fmt::format("{}.weight", name);
  const std::int64_t width = width_told.of(weights, weight_name, 2);
  weight = weights.floats(weight_name, {channels, 1, width}).with_row({width});
  if (with_bias) bias = weights.floats(fmt::format("{}.bias", name), {channels});
}

Conv token_shift(const WeightScope& weights, std::int64_t channels) {
  std::vector<float> taps;
  for (std::int64_t c = 0; c < channels; ++c) taps.insert(taps.end(), {1, -1});
  Conv shift;
  shift.weight = {weights.constant(taps).data, DType::f32, {channels, 2}};
  return shift;
}

QkvProjection::QkvProjection(const WeightScope& weights, std::int64_t hidden, std::int64_t q_heads_, std::int64_t k_heads_,
                             std::int64_t v_heads_, std::int64_t K_, std::int64_t V_, bool gated)
    : q_heads(q_heads_), k_heads(k_heads_), v_heads(v_heads_), K(K_), V(V_) {
  std::vector<Linear::Part> parts{{&q_proj, "q_proj", q_heads * K}, {&k_proj, "k_proj", k_heads * K}, {&v_proj, "v_proj", v_heads * V}};
  if (gated) parts.push_back({&g_proj, "g_proj", value_dim()});
  Linear::load_together(weights, parts, hidden);
}

QkvProjection::QkvProjection(const MixerBuild& build, std::int64_t default_heads, double default_expand_k, double default_expand_v,
                             bool gated) {
  const Config& config = build.config;
  const std::int64_t hidden = config.integer("hidden_size"), heads = config.integer("num_heads", default_heads);
  const std::int64_t kv_heads = config.integer("num_kv_heads", heads);
  divided(heads, "num_heads", kv_heads, "num_kv_heads");
  const std::int64_t key_dim = expanded(hidden, config, "expand_k", default_expand_k);
  const std::int64_t value_dim = expanded(hidden, config, "expand_v", default_expand_v);
  *this = QkvProjection(build.weights, hidden, heads, kv_heads, kv_heads, divided(key_dim, "key dim", heads, "num_heads"),
                        divided(value_dim, "value dim", heads, "num_heads"), gated);
}

void QkvProjection::load_convolutions(const WeightScope& weights, ToldSize width, Activation qk_act) {
  if (weights.has("conv1d.weight")) {
    // One tensor over q | k | v, as Transformers saves Olmo-Hybrid again (spec §19.8).
    const Conv all(weights, "conv1d", q_heads * K + k_heads * K + v_heads * V, width, qk_act);
    std::int64_t begin = 0;
    for (const auto& [conv, channels] : {std::pair{&q_conv, q_heads * K}, {&k_conv, k_heads * K}, {&v_conv, v_heads * V}}) {
      *conv = all;
      conv->weight = all.weight.slice(begin, channels);
      begin += channels;
    }
    return;
  }
  q_conv = Conv(weights, "q_conv1d", q_heads * K, width, qk_act);
  k_conv = Conv(weights, "k_conv1d", k_heads * K, width, qk_act);
  v_conv = Conv(weights, "v_conv1d", v_heads * V, width, Activation::silu);
}

std::vector<Shape> QkvProjection::cache_shapes() const {
  if (!convolved()) return {};
  return {q_conv.cache_shape(), k_conv.cache_shape(), v_conv.cache_shape()};
}

QkvProjection::Qkv QkvProjection::operator()(Program& p, Value x) const {
  const Value q = q_proj(p, x), k = k_proj(p, x), v = v_proj(p, x), gate = g_proj ? g_proj(p, x) : Value{};
  const auto heads = [&](Value z, std::int64_t count, std::int64_t width) { return p.with_axes(z, {count, width}); };
  return {heads(q_conv(p, q, 0), q_heads, K),
          heads(k_conv(p, k, 1), k_heads, K),
          heads(v_conv(p, v, 2), v_heads, V),
          heads(q, q_heads, K),
          heads(k, k_heads, K),
          gate};
}

Value input_of(Program& p, std::int64_t width) {
  p[p.x()].axes = {width};
  return p.x();
}

Value scaled_input(Program& p, Value x, float factor, std::int64_t hidden) {
  if (factor == 1) return x;
  const Value y = p.value({hidden});
  p.apply_into(y, program::Times{factor}, x);
  return y;
}

void multiply(Backend& backend, Workspace& workspace, Tensor x, float factor) {
  if (factor == 1) return;
  const Workspace::Mark mark(workspace);
  const Tensor of_rows = workspace.tensor({x.rows(), 1}), heads = x.with_row({1, x.row_size()});
  backend.fill(of_rows, factor);
  backend.scale_heads(heads, heads, of_rows);
}

Value Readout::normed(Program& p, Value o, Value gate, Value head_scale) const {
  p.reads.push_back(o);
  Value heads = p.apply(program::RmsNorm{.weight = norm, .group = head_dim, .eps = eps}, o);
  if (head_scale) heads = p.combine(program::ScaleHeads{}, heads, head_scale);
  Value read = p.with_axes(heads, {p.width(heads)});
  if (gate) read = p.combine(program::Gate{gate_act}, read, gate);
  p.readouts.push_back(read);
  return read;
}

Value Readout::operator()(Program& p, Value o, Value gate, Value head_scale) const {
  const Value read = p.show("readout", normed(p, o, gate, head_scale));
  if (gate) p.show("output_gate", p.mean_of_heads(gate, p.width(o) / head_dim, gate_act), true);
  return o_proj(p, read);
}

Value Readout::unseen(Program& p, Value o, Value gate, Value head_scale) const { return o_proj(p, normed(p, o, gate, head_scale)); }

ConstTensor norm_weight(const MixerBuild& build, std::string_view name, std::int64_t n) {
  const bool plain = !build.config.boolean("elementwise_affine", true) && !build.weights.has(name);
  return plain ? ConstTensor{} : build.weights.floats(name, {n});
}

Readout normed_readout(const MixerBuild& build, std::string_view name, std::int64_t head_dim, std::int64_t value_dim) {
  return {.norm = norm_weight(build, name, head_dim),
          .head_dim = head_dim,
          .eps = static_cast<float>(build.config.not_negative("norm_eps", 1e-6)),
          .o_proj = Linear(build.weights, "o_proj", build.config.integer("hidden_size"), value_dim)};
}

Readout gated_readout(const MixerBuild& build, std::int64_t head_dim, std::int64_t value_dim, bool gated) {
  // The fused kernel's module has a name of its own; where config and tensors disagree, the tensors are right.
  const bool fused = gated && build.config.boolean("fuse_norm", true);
  const std::string_view name = fused ? "g_norm_swish_gate.weight" : "g_norm.weight";
  const std::string_view other = fused ? "g_norm.weight" : "g_norm_swish_gate.weight";
  const bool renamed = !build.weights.has(name) && build.weights.has(other);
  return normed_readout(build, renamed ? other : name, head_dim, value_dim);
}

MixerLayout single_state(std::int64_t heads, std::int64_t K, std::int64_t V, std::vector<Shape> conv_caches) {
  MixerLayout layout;
  layout.slot_names = {"state"};
  layout.memory.push_back({"recurrent", {1, heads, K, V}});
  layout.conv_caches = std::move(conv_caches);
  return layout;
}

MixerLayout decaying_state(std::int64_t heads, std::int64_t K, std::int64_t V, std::vector<Shape> conv_caches) {
  MixerLayout layout = single_state(heads, K, V, std::move(conv_caches));
  layout.decays = true;
  return layout;
}

float inverse_sqrt(std::int64_t K) { return 1 / std::sqrt(static_cast<float>(K)); }

namespace {

template <class Memory>
Value shown_and_remembered(Program& p, const Memory& memory, std::int64_t heads, std::int64_t V) {
  p.show("q", memory.q);
  p.show("k", memory.k);
  p.show("v", memory.v);
  if (memory.log_decay) p.show("log_decay", memory.log_decay);
  if constexpr (requires { memory.beta; }) {
    if (memory.beta) p.show("beta", memory.beta);
  }
  return p.remember(memory, heads, V);
}

}  // namespace

MixerLayout with_attention(MixerLayout memory, const MixerLayout& attention) {
  memory.attention_heads = attention.attention_heads;
  memory.kv_heads = attention.kv_heads;
  memory.key_dim = attention.key_dim;
  memory.value_dim = attention.value_dim;
  return memory;
}

Value attention_beside(Program& p, const Mixer& attention) {
  constexpr std::array<std::string_view, 4> named = {"q", "k", "v", "readout"};
  const std::vector<program::Channel> before = std::exchange(p.channels, {});
  attention.describe(p);
  for (const program::Channel& channel : std::exchange(p.channels, before)) {
    if (std::ranges::count(named, channel.name) > 0) p.show("attention_" + channel.name, channel.value);
  }
  return p.result;
}

Value remember(Program& p, const program::OuterProduct& memory, std::int64_t heads, std::int64_t V) {
  return shown_and_remembered(p, memory, heads, V);
}
Value remember(Program& p, const program::DeltaRule& memory, std::int64_t heads, std::int64_t V) {
  return shown_and_remembered(p, memory, heads, V);
}
Value remember(Program& p, const program::Wkv& memory, std::int64_t heads, std::int64_t V) {
  return shown_and_remembered(p, memory, heads, V);
}
Value remember(Program& p, const program::SparseMemory& memory, std::int64_t heads, std::int64_t V) {
  return shown_and_remembered(p, memory, heads, V);
}

Coupled coupled(Program& p, Value f, float normalizer) {
  const Value log_decay = p.apply(ForgetGate{normalizer, -std::numeric_limits<float>::infinity()}, f);
  return {p.apply(program::OneMinusExp{}, log_decay), log_decay};
}

Coupled coupled_row_sparse(Program& p, Value f, std::int64_t topk) {
  p.show("row_selected", p.top_k(f, topk), true);
  const Value w = p.row_sparse(f, p.fill(0, p[f].axes), topk, true).first;
  return {w, p.apply(Activation::log_one_minus, w)};
}

namespace {

/// The numbers in a part of a state. Slots, heads and dimensions come from a file and may multiply to anything. Throws Error.
std::int64_t checked_size(const Shape& shape) {
  constexpr std::int64_t most = std::int64_t{1} << 37;  // half a terabyte of float32
  std::int64_t product = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (__builtin_mul_overflow(product, shape[axis], &product) || product > most) {
      throw Error(fmt::format("the state of a layer would have the shape {}", shape.to_string()));
    }
  }
  return product;
}

}  // namespace

MixerState make_state(const MixerLayout& layout, Backend& backend) {
  std::int64_t floats = 0;
  auto aligned = [](std::int64_t n) { return (n + 15) / 16 * 16; };  // every part begins on a cache line
  for (const MixerLayout::Memory& memory : layout.memory) floats += aligned(checked_size(memory.shape));
  for (const Shape& cache : layout.conv_caches) floats += aligned(checked_size(cache));
  MixerState state;
  if (floats == 0) return state;
  state.block = backend.allocate(static_cast<std::size_t>(floats) * sizeof(float));
  state.everything = Tensor(state.block.get(), DType::f32, {1, floats});
  backend.fill(state.everything, 0);
  auto* next = static_cast<float*>(state.block.get());
  auto take = [&](const Shape& shape) {
    Tensor part(next, DType::f32, shape);
    next += aligned(shape.size());
    return part;
  };
  for (const MixerLayout::Memory& memory : layout.memory) state.memory.push_back(take(memory.shape));
  for (const Shape& cache : layout.conv_caches) state.conv_caches.push_back(take(cache));
  return state;
}

}  // namespace statescope

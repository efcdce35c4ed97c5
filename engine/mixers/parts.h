// The stages that several mixers share.
#pragma once

#include <algorithm>
#include <optional>

#include "engine/mixers/mixer.h"
#include "kernels/program/program.h"

namespace statescope {

using program::Program;
using program::Value;
using program::ValueType;

/// a / b for sizes that must divide. Throws Error naming both.
std::int64_t divided(std::int64_t a, std::string_view a_name, std::int64_t b, std::string_view b_name);
/// RoPE turns channels in pairs. Throws Error for an odd number of them.
void require_pairs(std::int64_t channels, std::string_view name);
/// trunc(size · factor), at least 1: expand_k, expand_v. Throws Error.
std::int64_t expanded(std::int64_t size, const Config& config, std::string_view key, double fallback);
/// "swish", "relu", … as config files name them, of those `allowed`: not every layer knows all. Throws Error.
Activation activation_named(const Config& config, std::string_view key, std::string_view fallback,
                            std::initializer_list<std::string_view> allowed);

/// y = x · Wᵀ (+ b).
struct Linear {
  ConstTensor weight;  // [out, in] as stored
  ConstTensor bias;    // [out] or absent

  Linear() = default;
  /// Loads `name`.weight and, where wanted, `name`.bias.
  Linear(const WeightScope& weights, std::string_view name, std::int64_t out, std::int64_t in, bool with_bias = false);
  struct Part {
    Linear* to;
    std::string name;
    std::int64_t out;
  };
  /// Loads several of one input, without biases; their weights lie side by side (Weights::matrices).
  static void load_together(const WeightScope& weights, const std::vector<Part>& parts, std::int64_t in);
  explicit operator bool() const { return static_cast<bool>(weight); }
  std::int64_t out() const { return weight.rows(); }
  void into(Context& ctx, Tensor y, ConstTensor x) const { ctx.backend.linear(y, x, weight, bias); }
  Tensor operator()(Context& ctx, ConstTensor x) const;
  /// In float32, for scores and decays.
  Tensor exact(Context& ctx, ConstTensor x) const;
  Value operator()(Program& p, Value x, ValueType numbers = ValueType::rounded) const { return p.linear(weight, bias, x, numbers); }
};

/// A size that a tensor's shape tells; where the config says it as well, both must agree.
struct ToldSize {
  std::int64_t value;  // of a model that is only described
  std::string key;     // of the config that says it, by its name in the file; empty: it does not

  ToldSize(std::int64_t value_) : value(value_) {}
  ToldSize(const Config& config, std::string_view key_, std::int64_t fallback);
  /// Throws Error where the tensor has nothing on that axis, or other than the config says.
  std::int64_t of(const WeightScope& weights, std::string_view tensor, std::size_t axis) const;
};

/// y = second(first(x)): LoRA, low-rank gates (tensors `name`.0 and `name`.1, the rank is read from the shape).
struct LowRank {
  Linear first, second;

  LowRank() = default;
  LowRank(const WeightScope& weights, std::string_view name, std::int64_t out, std::int64_t in, ToldSize rank_told, bool bias = false);
  static std::int64_t rank(const WeightScope& weights, std::string_view name, ToldSize told);
  explicit operator bool() const { return static_cast<bool>(second); }
  Value operator()(Program& p, Value x, ValueType numbers = ValueType::rounded) const { return second(p, first(p, x, numbers), numbers); }
};

/// The layer's input, `width` wide: for a layer that reads parts of it.
Value input_of(Program& p, std::int64_t width);
/// factor · x, `hidden` wide
Value scaled_input(Program& p, Value x, float factor, std::int64_t hidden);
/// x ← factor · x
void multiply(Backend& backend, Workspace& workspace, Tensor x, float factor);

/// Short convolution with its cache in MixerState::conv_caches (spec §1.5).
struct Conv {
  ConstTensor weight;  // [C, w] float32
  ConstTensor bias;
  Activation act = Activation::identity;

  Conv() = default;
  /// Loads `name`.weight [C, 1, w]; w is what the tensor tells. With `with_bias` also `name`.bias.
  Conv(const WeightScope& weights, std::string_view name, std::int64_t channels, ToldSize width_told, Activation act_,
       bool with_bias = false);
  explicit operator bool() const { return static_cast<bool>(weight); }
  std::int64_t channels() const { return weight.rows(); }
  Shape cache_shape(std::int64_t slots = 1) const { return {slots, weight.row_size() - 1, channels()}; }
  /// With cache `cache` of the layer; x itself where there is no convolution.
  Value operator()(Program& p, Value x, std::size_t cache) const { return *this ? p.convolution(x, weight, bias, act, cache) : x; }
};

/// δ_t = x_{t−1} − x_t, x_{−1} = 0, as a convolution of two taps (spec §17.10).
Conv token_shift(const WeightScope& weights, std::int64_t channels);

/// q, k and v of T tokens as heads: projected from x and, where the model has short convolutions, convolved (caches 0, 1, 2 of its state).
/// With them the output gate's logits, where the model has such a gate.
struct QkvProjection {
  std::int64_t q_heads = 0, k_heads = 0, v_heads = 0, K = 0, V = 0;
  Linear q_proj, k_proj, v_proj, g_proj;
  Conv q_conv, k_conv, v_conv;

  struct Qkv {
    Value q, k, v;       // [T, q_heads, K], [T, k_heads, K], [T, v_heads, V]
    Value raw_q, raw_k;  // before the convolutions
    Value gate;          // [T, value_dim()], or absent: no gate
  };

  QkvProjection() = default;
  QkvProjection(const WeightScope& weights, std::int64_t hidden, std::int64_t q_heads_, std::int64_t k_heads_, std::int64_t v_heads_,
                std::int64_t K_, std::int64_t V_, bool gated = false);
  /// Grouped heads whose sizes follow from expand_k and expand_v (linear attention, RetNet, GLA, GSA). Throws Error if they do not divide.
  QkvProjection(const MixerBuild& build, std::int64_t default_heads, double default_expand_k, double default_expand_v, bool gated = false);
  void load_convolutions(const WeightScope& weights, ToldSize width, Activation qk_act = Activation::silu);

  bool convolved() const { return static_cast<bool>(q_conv); }
  std::int64_t key_dim() const { return q_heads * K; }
  /// Of all query heads: the width of what is read.
  std::int64_t value_dim() const { return std::max(q_heads, v_heads) * V; }
  std::vector<Shape> cache_shapes() const;
  Qkv operator()(Program& p, Value x) const;
};

/// The end of most mixers: y = o_proj( RMSNorm_head(o) ⊙ act(gate) ) (spec §1.3).
struct Readout {
  ConstTensor norm;  // [V]; absent: no norm weight (elementwise_affine false)
  std::int64_t head_dim = 0;
  float eps = 1e-6f;
  Activation gate_act = Activation::silu;
  Linear o_proj;

  /// y of o [T, H, V] and gate [T, H·V] or absent; head_scale [T, H] multiplies the normalised heads, or is absent. Shows readout and
  /// output_gate.
  Value operator()(Program& p, Value o, Value gate = {}, Value head_scale = {}) const;
  /// The same, and shows nothing.
  Value unseen(Program& p, Value o, Value gate, Value head_scale = {}) const;

 private:
  Value normed(Program& p, Value o, Value gate, Value head_scale) const;
};

/// A norm's weight `name` [n]: there unless the config's elementwise_affine is false; and where the file has it all the same.
ConstTensor norm_weight(const MixerBuild& build, std::string_view name, std::int64_t n);

/// The readout with the norm `name` [V].
Readout normed_readout(const MixerBuild& build, std::string_view name, std::int64_t head_dim, std::int64_t value_dim);

/// The readout of RetNet and GLA, whose norm has two names (spec §3.3, §3.4).
Readout gated_readout(const MixerBuild& build, std::int64_t head_dim, std::int64_t value_dim, bool gated);

/// The layout of a mixer with one matrix state [H, K, V] and, perhaps, convolutions.
MixerLayout single_state(std::int64_t heads, std::int64_t K, std::int64_t V, std::vector<Shape> conv_caches = {});
/// The same, of a memory that forgets.
MixerLayout decaying_state(std::int64_t heads, std::int64_t K, std::int64_t V, std::vector<Shape> conv_caches = {});

/// K^{-1/2}
float inverse_sqrt(std::int64_t K);

/// The layout of a layer with attention beside its memory.
MixerLayout with_attention(MixerLayout memory, const MixerLayout& attention);
/// What attention puts out beside the memory, which is described already; its channels get names of their own behind those.
Value attention_beside(Program& p, const Mixer& attention);

/// One memory: shows its operands and returns o [T, heads, V].
Value remember(Program& p, const program::OuterProduct& memory, std::int64_t heads, std::int64_t V);
Value remember(Program& p, const program::DeltaRule& memory, std::int64_t heads, std::int64_t V);
Value remember(Program& p, const program::Wkv& memory, std::int64_t heads, std::int64_t V);
Value remember(Program& p, const program::SparseMemory& memory, std::int64_t heads, std::int64_t V);
/// What is written where decay and write are one: w = 1 − α, and log α.
struct Coupled {
  Value w, log_decay;
};
/// log α = logσ(f) / normalizer; f [T, H, K] exact.
Coupled coupled(Program& p, Value f, float normalizer);
/// w_r = exp(f_r) / Σ_{j∈R} exp(f_j) for the `topk` largest rows R, else 0, where α is 1 [A26]. Shows the rows.
Coupled coupled_row_sparse(Program& p, Value f, std::int64_t topk);
/// Head-level competition, SLA (spec §6): gates over heads from x, from all heads of q (or k), or per head.
struct HeadGates {
  enum class Input { per_head, concat, x };
  ConstTensor w_q, w_k;  // [H, d_in] as stored
  Input input = Input::x;
  bool phi_stage = false;  // logits from q, k after convolution and feature map
  bool post_norm = false;  // G^Q multiplies the normalised head output instead of q
  float temperature = 1;   // λ
  bool gdn_decay = true;

  struct Gates {
    Value q, k;  // [T, H], each row sums to 1
  };
  /// None unless config["sla"].enabled; then q and k must have equally many heads. Model width `hidden`. Throws Error.
  static std::optional<HeadGates> load(const MixerBuild& build, const QkvProjection& qkv, std::int64_t hidden);
  /// G^Q = softmax_h(λ · logits(q)), G^K likewise (SLA eq. 4). q, k [T, H, K]; x [T, D]. Shows both.
  Gates operator()(Program& p, Value x, Value q, Value k) const;
};

/// The output of a layer whose heads may compete: y = readout(o), o of `memory`, G^Q on the normalised heads where the gates say so. Shows
/// what the read gate does to it: read_gate_effective [T, 1] = ‖y₁ − y‖ / ‖y‖, y₁ the output with G^Q = 1, for queries `ungated` (spec §6,
/// A13).
template <class Memory>
Value gated_output(Program& p, const Memory& memory, std::int64_t heads, std::int64_t V, const Readout& readout, Value gate,
                   const std::optional<HeadGates>& head_gates, const std::optional<HeadGates::Gates>& G, Value ungated) {
  if (!G) return readout(p, remember(p, memory, heads, V), gate);
  Memory again = memory;
  again.q = ungated;
  again.state.copy = p.copy_state(memory.state.index, {1, heads, p[memory.q].axes[1], V});
  const Value y = readout(p, remember(p, memory, heads, V), gate, head_gates->post_norm ? G->q : Value{});
  p.show("read_gate_effective", p.distance(readout.unseen(p, p.remember(again, heads, V), gate), y), true);
  return y;
}

}  // namespace statescope

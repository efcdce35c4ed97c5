// RWKV-6: a decayed memory that is read before it is written; how far a token looks back follows from itself (spec §17.10).
#include <array>

#include "engine/mixers/parts.h"
#include "engine/mixers/recurrent/rwkv_parts.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

class Rwkv6 final : public Mixer {
 public:
  explicit Rwkv6(const MixerBuild& build) : hidden_(build.config.integer("hidden_size")), heads_(build.config.integer("num_heads", 4)) {
    const Config& config = build.config;
    const WeightScope& weights = build.weights;
    K_ = divided(expanded(hidden_, config, "expand_k", 0.5), "key dim", heads_, "num_heads");
    V_ = divided(expanded(hidden_, config, "expand_v", 1.0), "value dim", heads_, "num_heads");
    rank_ = config.integer("proj_low_rank_dim", 32);
    shift_ = token_shift(weights, hidden_);
    mu_ = weights.floats("x_proj.0.mu", {hidden_});
    const auto parts = static_cast<std::int64_t>(mixing_.size());
    into_parts_ = Linear(weights, "x_proj.0.linear", parts * rank_, hidden_);
    load_mixing(weights, parts);
    r_proj_ = Linear(weights, "r_proj.linear", heads_ * K_, hidden_);
    k_proj_ = Linear(weights, "k_proj.linear", heads_ * K_, hidden_);
    v_proj_ = Linear(weights, "v_proj.linear", heads_ * V_, hidden_);
    g_proj_ = Linear(weights, "g_proj.linear", heads_ * V_, hidden_);
    w_proj_ = Lora(weights, "w_proj.linear", heads_ * K_, hidden_, {config, "gate_low_rank_dim", 64}, Activation::tanh, true);
    bonus_ = Present(weights, "bonus", heads_, K_);
    g_norm_ = head_norm(build, "g_norm", heads_, V_, static_cast<float>(config.not_negative("norm_eps", 1e-5)));
    o_proj_ = Linear(weights, "o_proj", hidden_, heads_ * V_);
  }

  MixerLayout layout() const override { return decaying_state(heads_, K_, V_, {shift_.cache_shape()}); }

  void describe(Program& p) const override {
    const Value x = input_of(p, hidden_), delta = shift_(p, x, 0);
    // z_r | z_w | z_k | z_v | z_g = tanh(x_proj (x + δ ⊙ μ)),   μ_n = x_bias_n + W_n z_n,   x_n = x + δ ⊙ μ_n
    const Value z = p.apply(Activation::tanh, into_parts_(p, shifted(p, x, delta, p.constant(mu_, {hidden_})), ValueType::exact));
    const auto mixed = [&](std::size_t n) {
      const Value z_n = p.columns(z, static_cast<std::int64_t>(n) * rank_, {rank_});
      return shifted(p, x, delta, mixing_[n](p, z_n, ValueType::exact));
    };
    const Value r = p.with_axes(r_proj_(p, mixed(0)), {heads_, K_}), k = p.with_axes(k_proj_(p, mixed(2)), {heads_, K_});
    const Value v = p.with_axes(v_proj_(p, mixed(3)), {heads_, V_}), g = g_proj_(p, mixed(4));
    // log w = −exp(w_proj x_w)
    const Value log_decay = p.apply(program::Times{-1}, p.apply(Activation::exp, w_proj_(p, mixed(1))));

    // o_t = r_t S_{t-1} + (Σ_r r u k) v,   S_t = diag(w_t) S_{t-1} + k_tᵀ v_t,   u the bonus
    const program::Wkv memory{
        .q = r, .k = k, .v = v, .log_decay = p.with_axes(log_decay, {heads_, K_}), .erase_key = {}, .erase_along = {}, .reads_first = true};
    const Value past = remember(p, memory, heads_, V_);
    p.reads.push_back(past);
    const Value o = p.combine(program::Add{}, past, bonus_(p, r, k, v));
    // y = o_proj( GroupNorm(o) ⊙ silu(g) )
    const Value normed = p.apply(g_norm_, p.with_axes(o, {heads_ * V_}));
    const Value read = p.show("readout", p.combine(program::Gate{Activation::silu}, normed, g));
    p.show("output_gate", p.mean_of_heads(g, heads_, Activation::silu), true);
    p.readouts.push_back(read);
    p.result = o_proj_(p, read);
  }

 private:
  /// W_n [D, rank] of x_proj.2 = [W_r | W_w | W_k | W_v | W_g], with x_bias_n.
  void load_mixing(const WeightScope& weights, std::int64_t parts) {
    const std::vector<float> all = weights.host("x_proj.2.weight", {hidden_, parts * rank_});
    const ConstTensor bias = weights.floats("x_bias", {parts, hidden_});
    for (std::int64_t n = 0; n < parts; ++n) {
      std::vector<float> own;
      for (std::int64_t c = 0; c < hidden_; ++c) {
        const auto begin = all.begin() + (c * parts + n) * rank_;
        own.insert(own.end(), begin, begin + rank_);
      }
      Linear& mixing = mixing_[static_cast<std::size_t>(n)];
      mixing.weight = {weights.constant(own).data, DType::f32, {hidden_, rank_}};
      mixing.bias = {bias.slice(n, 1).data, DType::f32, {hidden_}};
    }
  }

  std::int64_t hidden_, heads_, K_, V_, rank_;
  Conv shift_;
  ConstTensor mu_;
  Present bonus_;
  std::array<Linear, 5> mixing_;  // of r, w, k, v, g
  Linear into_parts_, r_proj_, k_proj_, v_proj_, g_proj_, o_proj_;
  Lora w_proj_;
  program::LayerNorm g_norm_;
};

}  // namespace

std::unique_ptr<Mixer> make_rwkv6(const MixerBuild& build) { return std::make_unique<Rwkv6>(build); }

}  // namespace statescope

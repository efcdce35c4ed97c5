// RWKV-7: a memory that takes away what one key reads and writes with another; its values remember those of layer 0 (spec §17.10).
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "engine/error.h"
#include "engine/mixers/parts.h"
#include "engine/mixers/recurrent/rwkv_parts.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

class Rwkv7 final : public Mixer {
 public:
  explicit Rwkv7(const MixerBuild& build)
      : hidden_(build.config.integer("hidden_size")), values_(build.config.integer("value_dim", hidden_)) {
    const Config& config = build.config;
    const WeightScope& weights = build.weights;
    read_heads(config);
    shift_ = token_shift(weights, hidden_);
    for (std::size_t i = 0; i < mu_.size(); ++i) mu_[i] = weights.floats(fmt::format("x_{}", "rwkvag"[i]), {1, 1, hidden_});
    r_proj_ = Linear(weights, "r_proj", hidden_, hidden_);
    k_proj_ = Linear(weights, "k_proj", hidden_, hidden_);
    v_proj_ = Linear(weights, "v_proj", values_, hidden_);
    o_proj_ = Linear(weights, "o_proj", hidden_, values_);
    const auto lora = [&](std::string_view name, std::int64_t out, ToldSize rank, Activation act, bool bias = true) {
      return Lora(weights, name, out, hidden_, rank, act, bias);
    };
    w_lora_ = lora("w_lora", hidden_, {config, "decay_low_rank_dim", 64}, Activation::tanh);
    a_lora_ = lora("a_lora", hidden_, {config, "a_low_rank_dim", 64}, Activation::identity);
    if (build.layer > 0) v_lora_ = lora("v_lora", values_, {config, "v_low_rank_dim", 16}, Activation::identity);
    g_lora_ = lora("g_lora", values_, {config, "gate_low_rank_dim", 128}, Activation::sigmoid, false);
    k_k_ = weights.floats("k_k", {hidden_});
    k_a_ = weights.floats("k_a", {hidden_});
    bonus_ = Present(weights, "r_k", heads_, K_);
    const double eps = config.not_negative("norm_eps", 1e-5);
    g_norm_ = head_norm(build, "g_norm", heads_, V_, static_cast<float>(static_cast<double>(K_) * eps));
    // x / max(‖x‖, 1e-12) instead of the L2 norm
    if (!config.boolean("fuse_norm", true))
      unit_norm_ = {.weight = weights.constant(std::vector<float>(static_cast<std::size_t>(K_), inverse_sqrt(K_))),
                    .group = K_,
                    .eps = 1e-24F / static_cast<float>(K_)};
  }

  MixerLayout layout() const override { return decaying_state(heads_, K_, V_, {shift_.cache_shape()}); }

  void describe(Program& p) const override {
    // x, and behind it v₀ where this is not layer 0, with zeros up to a multiple of x's width
    const std::int64_t beside = v_lora_ ? (values_ + hidden_ - 1) / hidden_ : 0;
    const Value input = input_of(p, (1 + beside) * hidden_), x = p.columns(input, 0, {hidden_}), delta = shift_(p, x, 0);
    const auto heads = [&](Value z) { return p.with_axes(z, {heads_, K_}); };
    // x_* = x + δ ⊙ μ_*,   r = r_proj x_r,   k = k_proj x_k,   v = v_proj x_v,   g = g_lora x_g
    const auto mixed = [&](std::size_t which) { return shifted(p, x, delta, p.constant(mu_[which], {hidden_})); };
    const Value x_v = mixed(3), r = heads(r_proj_(p, mixed(0))), raw_k = k_proj_(p, mixed(2), ValueType::exact), g = g_lora_(p, mixed(5));
    Value v = v_proj_(p, x_v);
    // v ← v + (v₀ − v) ⊙ σ(v_lora x_v), v₀ the values of layer 0
    if (v_lora_) {
      const Value missing = p.combine(program::Add{-1}, p.columns(input, hidden_, {values_}), v);
      v = p.combine(program::Add{}, v, p.combine(program::Gate{Activation::sigmoid}, missing, v_lora_(p, x_v)));
    }
    v = p.with_axes(v, {heads_, V_});
    // log w = −e^{−1/2} σ(w_lora x_w),   a = σ(a_lora x_a)
    const Value w = p.apply(Activation::sigmoid, w_lora_(p, mixed(1)));
    const Value log_decay = heads(p.apply(program::Times{-std::exp(-0.5F)}, w));
    const Value a = p.apply(Activation::sigmoid, a_lora_(p, mixed(4)));
    p.show("erase_rate", heads(a));
    // κ̂ = L2(k ⊙ k_k),   k ← k ⊙ (1 + (a − 1) ⊙ k_a)
    const Value kappa = heads(p.combine(program::Gate{}, raw_k, p.constant(k_k_, {hidden_})));
    const Value key = p.show("erase_key", unit_norm_.group > 0 ? p.apply(unit_norm_, kappa) : p.apply(program::L2Norm{}, kappa));
    const Value own = p.combine(program::Gate{}, raw_k, p.constant(k_a_, {hidden_}));
    const Value less = p.combine(program::Add{-1}, p.combine(program::Gate{}, own, a), own);
    const Value k = heads(p.combine(program::Add{}, raw_k, less));

    // S_t = diag(w_t) S_{t-1} − (κ̂ ⊙ a)ᵀ (κ̂ S_{t-1}) + k_tᵀ v_t,   o_t = r_t S_t
    const program::Wkv memory{
        .q = r, .k = k, .v = v, .log_decay = log_decay, .erase_key = key, .erase_along = p.combine(program::Gate{}, key, heads(a))};
    const Value o = remember(p, memory, heads_, V_);
    p.reads.push_back(o);
    // y = o_proj( ( GroupNorm(o) + (Σ_r r k r_k) v ) ⊙ g )
    const Value normed = p.apply(g_norm_, p.with_axes(o, {values_})), bonus = p.with_axes(bonus_(p, r, k, v), {values_});
    const Value read = p.show("readout", p.combine(program::Gate{}, p.combine(program::Add{}, normed, bonus), g));
    p.show("output_gate", p.mean_of_heads(g, heads_, Activation::identity), true);
    p.readouts.push_back(read);
    p.result = o_proj_(p, read);
  }

 private:
  void read_heads(const Config& config) {
    const bool by_count = !config.has("head_dim") && config.has("num_heads");
    K_ = by_count ? divided(hidden_, "hidden_size", config.integer("num_heads"), "num_heads") : config.integer("head_dim", 64);
    heads_ = divided(hidden_, "hidden_size", K_, "head_dim");
    if (const std::int64_t named = config.integer("num_heads", heads_); named != heads_)
      throw Error(fmt::format("config: \"num_heads\" is {}, but hidden_size / head_dim {}", named, heads_));
    V_ = divided(values_, "value_dim", heads_, "heads");
  }

  std::int64_t hidden_, values_, heads_ = 0, K_ = 0, V_ = 0;
  Conv shift_;
  std::array<ConstTensor, 6> mu_;  // of r, w, k, v, a, g
  Linear r_proj_, k_proj_, v_proj_, o_proj_;
  Lora w_lora_, a_lora_, v_lora_, g_lora_;
  ConstTensor k_k_, k_a_;
  Present bonus_;
  program::LayerNorm g_norm_;
  program::RmsNorm unit_norm_;
};

}  // namespace

std::unique_ptr<Mixer> make_rwkv7(const MixerBuild& build) { return std::make_unique<Rwkv7>(build); }

}  // namespace statescope

// Kimi Delta Attention: the delta rule with a decay for each key channel (spec §17.3, §17.4).
#include <fmt/format.h>

#include "engine/error.h"
#include "engine/mixers/parts.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

class Kda final : public Mixer {
 public:
  explicit Kda(const MixerBuild& build) {
    const Config& config = build.config;
    const WeightScope& weights = build.weights;
    const std::int64_t hidden = config.integer("hidden_size"), heads = config.integer("num_heads", 16);
    heads_ = config.integer("num_v_heads", heads);
    divided(heads_, "num_v_heads", heads, "num_heads");
    K_ = config.integer("head_dim", 128);
    V_ = expanded(K_, config, "expand_v", 1.0);
    beta_factor_ = config.boolean("allow_neg_eigval", false) ? 2.0f : 1.0f;
    lower_bound_ = static_cast<float>(config.number("lower_bound", 0));
    if (config.has("lower_bound") && !(lower_bound_ < 0)) {
      throw Error(fmt::format("config: \"lower_bound\" is {}, expected a number below 0", lower_bound_));
    }
    if (config.boolean("safe_gate", false) && !config.has("lower_bound")) throw Error("config: \"safe_gate\" needs \"lower_bound\"");
    qkv_ = QkvProjection(weights, hidden, heads, heads, heads_, K_, V_);
    if (config.boolean("use_short_conv", true)) {
      const ToldSize width(config, "conv_size", 4);
      const auto convolution = [&](std::string_view name, std::int64_t channels) {
        return Conv(weights, name, channels, width, Activation::silu, weights.has(fmt::format("{}.bias", name)));
      };
      qkv_.q_conv = convolution("q_conv1d", heads * K_);
      qkv_.k_conv = convolution("k_conv1d", heads * K_);
      qkv_.v_conv = convolution("v_conv1d", heads_ * V_);
    }
    f_proj_ = LowRank(weights, "f_proj", heads_ * K_, hidden, V_);
    g_proj_ = LowRank(weights, "g_proj", heads_ * V_, hidden, V_, config.boolean("gate_bias", true));
    b_proj_ = Linear(weights, "b_proj", heads_, hidden);
    A_log_ = lower_bound_ == 0 ? of_channels(weights, weights.host("A_log", {heads_})) : weights.floats("A_log", {heads_});
    dt_bias_ = weights.floats("dt_bias", {heads_ * K_});
    readout_ = normed_readout(build, "o_norm.weight", V_, heads_ * V_);
    readout_.gate_act = Activation::sigmoid;
  }

  MixerLayout layout() const override { return decaying_state(heads_, K_, V_, qkv_.cache_shapes()); }

  void describe(Program& p) const override {
    const Value x = p.x();
    // log α_t = −exp(A_log)·softplus(f_proj x + dt_bias) per key channel, or lower_bound·σ(exp(A_log)·(f_proj x + dt_bias))
    const Value f = f_proj_(p, x, ValueType::exact);
    const Value log_decay = p.with_axes(p.apply(DeltaDecay{A_log_, dt_bias_, lower_bound_}, f), {heads_, K_});
    // β_t = σ(b_proj x), twice that if eigenvalues may be negative
    Value beta = p.apply(Activation::sigmoid, b_proj_(p, x, ValueType::exact));
    if (beta_factor_ != 1) beta = p.combine(program::Add{}, beta, beta);
    // q̂ = L2(silu(conv q)), k̂ = L2(silu(conv k)), v = silu(conv v)
    auto [q, k, v, raw_q, raw_k, no_gate] = qkv_(p, x);
    if (!qkv_.convolved()) {
      for (Value* z : {&q, &k, &v}) *z = p.apply(Activation::silu, *z);
    }
    q = p.apply(program::L2Norm{}, q);
    k = p.apply(program::L2Norm{}, k);
    // S̄ = diag(α_t) S_{t-1},   u_t = β_t (v_t − k̂_t S̄),   S_t = S̄ + k̂_tᵀ u_t,   o_t = K^{-1/2} q̂_t S_t
    const program::DeltaRule memory{.q = q, .k = k, .v = v, .log_decay = log_decay, .beta = beta, .scale = inverse_sqrt(K_)};
    // y = o_proj( RMSNorm_head(o) ⊙ σ(g_proj x) )
    p.result = readout_(p, remember(p, memory, heads_, V_), g_proj_(p, x));
  }

 private:
  /// A head's number for each of its key channels: then the decay is an epilogue of the product before it.
  ConstTensor of_channels(const WeightScope& weights, const std::vector<float>& of_heads) const {
    std::vector<float> numbers;
    for (const float number : of_heads) numbers.insert(numbers.end(), static_cast<std::size_t>(K_), number);
    return weights.constant(numbers);
  }

  QkvProjection qkv_;
  std::int64_t heads_, K_, V_;
  float beta_factor_, lower_bound_;
  LowRank f_proj_, g_proj_;
  Linear b_proj_;
  ConstTensor A_log_, dt_bias_;
  Readout readout_;
};

}  // namespace

std::unique_ptr<Mixer> make_kda(const MixerBuild& build) { return std::make_unique<Kda>(build); }

}  // namespace statescope

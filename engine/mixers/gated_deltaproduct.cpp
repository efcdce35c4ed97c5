// Gated DeltaProduct: several steps of the delta rule for each token (spec §17.12).
#include "engine/mixers/parts.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

class GatedDeltaProduct final : public Mixer {
 public:
  explicit GatedDeltaProduct(const MixerBuild& build) {
    const Config& config = build.config;
    const WeightScope& weights = build.weights;
    const std::int64_t hidden = config.integer("hidden_size");
    heads_ = config.integer("num_heads", 6);
    K_ = config.integer("head_dim", 256);
    V_ = expanded(K_, config, "expand_v", 2.0);
    steps_ = config.integer("num_householder", 1, 1, 64);
    beta_factor_ = config.boolean("allow_neg_eigval", false) ? 2.0f : 1.0f;
    const std::int64_t key_dim = heads_ * K_, value_dim = heads_ * V_;
    std::vector<Linear::Part> parts{
        {&q_proj_, "q_proj", key_dim}, {&k_proj_, "k_proj", steps_ * key_dim}, {&v_proj_, "v_proj", steps_ * value_dim}};
    if (config.boolean("use_output_gate", true)) parts.push_back({&g_proj_, "g_proj", value_dim});
    Linear::load_together(weights, parts, hidden);
    b_proj_ = Linear(weights, "b_proj", steps_ * heads_, hidden);
    if (config.boolean("use_forget_gate", false)) {
      a_proj_ = Linear(weights, "a_proj", heads_, hidden);
      A_log_ = weights.floats("A_log", {heads_});
      dt_bias_ = weights.floats("dt_bias", {heads_});
    }
    if (config.boolean("use_short_conv", true)) {
      const ToldSize width(config, "conv_size", 4);
      q_conv_ = Conv(weights, "q_conv1d", key_dim, width, Activation::silu);
      k_conv_ = Conv(weights, "k_conv1d", steps_ * key_dim, width, Activation::silu);
      v_conv_ = Conv(weights, "v_conv1d", steps_ * value_dim, width, Activation::silu);
    }
    readout_ = normed_readout(build, "o_norm.weight", V_, value_dim);
  }

  MixerLayout layout() const override {
    MixerLayout layout = single_state(heads_, K_, V_);
    if (q_conv_) layout.conv_caches = {q_conv_.cache_shape(), k_conv_.cache_shape(), v_conv_.cache_shape()};
    layout.decays = static_cast<bool>(a_proj_);
    layout.steps = steps_;
    return layout;
  }

  void describe(Program& p) const override {
    const Value x = p.x();
    // log α_t = −exp(A_log)·softplus(a_proj x + dt_bias), or 0;   β_tj = σ(b_proj x) of each step j
    const Value log_decay = a_proj_ ? p.apply(DeltaDecay{A_log_, dt_bias_}, a_proj_(p, x, ValueType::exact)) : Value{};
    Value beta = p.apply(Activation::sigmoid, b_proj_(p, x, ValueType::exact));
    if (beta_factor_ != 1) beta = p.combine(program::Add{}, beta, beta);
    // q of the token, k and v of each step, convolved or silu
    const auto activated = [&](const Linear& project, const Conv& conv, std::size_t cache, Shape axes) {
      const Value z = project(p, x);
      return p.with_axes(conv ? conv(p, z, cache) : p.apply(Activation::silu, z), axes);
    };
    const Value v = activated(v_proj_, v_conv_, 2, {steps_ * heads_, V_});
    // q̂ = L2(q), k̂_j = L2(k_j)
    const Value q = p.apply(program::L2Norm{}, activated(q_proj_, q_conv_, 0, {heads_, K_}));
    const Value k = p.apply(program::L2Norm{}, activated(k_proj_, k_conv_, 1, {steps_ * heads_, K_}));

    // S ← α_t S_{t-1};   S ← S + k̂_jᵀ β_j (v_j − k̂_j S) for each step j;   o_t = K^{-1/2} q̂_t S
    const program::DeltaRule memory{
        .q = q, .k = k, .v = v, .log_decay = log_decay, .beta = beta, .steps = steps_, .scale = inverse_sqrt(K_)};
    p.result = readout_(p, remember(p, memory, heads_, V_), g_proj_ ? g_proj_(p, x) : Value{});
  }

 private:
  std::int64_t heads_, K_, V_, steps_;
  float beta_factor_;
  Linear q_proj_, k_proj_, v_proj_, g_proj_, a_proj_, b_proj_;
  Conv q_conv_, k_conv_, v_conv_;
  ConstTensor A_log_, dt_bias_;
  Readout readout_;
};

}  // namespace

std::unique_ptr<Mixer> make_gated_deltaproduct(const MixerBuild& build) { return std::make_unique<GatedDeltaProduct>(build); }

}  // namespace statescope

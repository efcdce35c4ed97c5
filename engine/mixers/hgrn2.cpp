// HGRN2: an outer product whose write weight is what its decay leaves free, above a bound that grows with depth (spec §17.11).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/error.h"
#include "engine/mixers/parts.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

/// 1 − lb of layer i: lb = the cumulated softmax over layers of lower_bounds [L, D], minus its first row.
std::vector<float> free_part(const std::vector<float>& lower_bounds, std::int64_t layers, std::int64_t layer) {
  const std::size_t D = lower_bounds.size() / static_cast<std::size_t>(layers);
  std::vector<float> result;
  for (std::size_t c = 0; c < D; ++c) {
    double sum = 0, within = 0, largest = -std::numeric_limits<double>::infinity();
    const auto bound = [&](std::int64_t i) { return static_cast<double>(lower_bounds[static_cast<std::size_t>(i) * D + c]); };
    for (std::int64_t i = 0; i < layers; ++i) largest = std::max(largest, bound(i));
    for (std::int64_t i = 0; i < layers; ++i) {
      const double e = std::exp(bound(i) - largest);
      sum += e;
      if (1 <= i && i <= layer) within += e;
    }
    result.push_back(static_cast<float>(1 - within / sum));
  }
  return result;
}

class Hgrn2 final : public Mixer {
 public:
  explicit Hgrn2(const MixerBuild& build) {
    const Config& config = build.config;
    const WeightScope& weights = build.weights;
    hidden_ = config.integer("hidden_size");
    const bool by_heads = config.raw().contains("expand_ratio") && !config.has("expand_ratio");
    K_ = by_heads ? divided(hidden_, "hidden_size", config.integer("num_heads"), "num_heads") : config.integer("expand_ratio", 128);
    heads_ = config.has("num_heads") ? config.integer("num_heads") : divided(hidden_, "hidden_size", K_, "expand_ratio");
    V_ = divided(hidden_, "hidden_size", heads_, "num_heads");
    const std::int64_t key_dim = heads_ * K_;
    Linear::load_together(weights, {{&q_proj_, "q_proj", key_dim}, {&f_proj_, "f_proj", key_dim}, {&i_proj_, "i_proj", hidden_}}, hidden_);
    if (config.boolean("use_short_conv", false)) {
      const ToldSize width(config, "conv_size", 4);
      q_conv_ = Conv(weights, "q_conv1d", key_dim, width, Activation::identity);
      f_conv_ = Conv(weights, "f_conv1d", key_dim, width, Activation::identity);
      i_conv_ = Conv(weights, "i_conv1d", hidden_, width, Activation::identity);
    }
    if (config.boolean("use_lower_bound", true)) {
      const std::int64_t layers = config.integer("num_hidden_layers", 24);
      if (key_dim != hidden_)
        throw Error(fmt::format("config: HGRN2's lower bounds need {} heads of {} channels to be hidden_size ({})", heads_, K_, hidden_));
      const std::vector<float> bounds = weights.of_model().host("model.lower_bounds", {layers, hidden_});
      if (build.layer > 0) free_ = weights.constant(free_part(bounds, layers, build.layer));
    }
    g_norm_ = norm_weight(build, "g_norm.weight", hidden_);
    o_proj_ = Linear(weights, "o_proj", hidden_, hidden_);
  }

  MixerLayout layout() const override {
    MixerLayout layout = single_state(heads_, K_, V_);
    if (q_conv_) layout.conv_caches = {q_conv_.cache_shape(), f_conv_.cache_shape(), i_conv_.cache_shape()};
    layout.decays = true;
    return layout;
  }

  void describe(Program& p) const override {
    const Value x = p.x();
    // q = silu(q_proj x),   f = f_proj x,   v = i_proj x, each convolved first where the model has convolutions
    const Value q = p.apply(Activation::silu, q_conv_(p, q_proj_(p, x), 0));
    const Value f = p.with_axes(f_conv_(p, f_proj_(p, x, ValueType::exact), 1), {heads_, K_});
    const Value v = i_conv_(p, i_proj_(p, x), 2);
    Value k, log_decay;
    if (free_) {
      // α = lb + (1 − lb) σ(f),   k = 1 − α = (1 − lb) σ(−f)
      const Value open = p.apply(Activation::sigmoid, p.apply(program::Times{-1}, f));
      k = p.combine(program::Gate{}, open, p.constant(free_, {heads_, K_}));
      log_decay = p.apply(Activation::log_one_minus, k);
    } else {
      // α = σ(f),   k = 1 − α
      log_decay = p.apply(ForgetGate{1, -std::numeric_limits<float>::infinity()}, f);
      k = p.apply(program::OneMinusExp{}, log_decay);
    }

    // S_t = diag(α_t) S_{t-1} + k_tᵀ v_t,   o_t = K^{-1/2} q_t S_t
    const program::OuterProduct memory{
        .q = p.with_axes(q, {heads_, K_}), .k = k, .v = p.with_axes(v, {heads_, V_}), .log_decay = log_decay, .scale = inverse_sqrt(K_)};
    const Value o = remember(p, memory, heads_, V_);
    p.reads.push_back(o);
    // y = o_proj( RMSNorm(o) ), one norm over the whole width; its eps is the kernel's own 1e-5 [A1]
    const program::RmsNorm norm{.weight = g_norm_, .group = hidden_, .eps = 1e-5f};
    const Value normed = p.show("readout", p.apply(norm, p.with_axes(o, {hidden_})));
    p.readouts.push_back(normed);
    p.result = o_proj_(p, normed);
  }

 private:
  std::int64_t hidden_, heads_, K_, V_;
  Linear q_proj_, f_proj_, i_proj_, o_proj_;
  Conv q_conv_, f_conv_, i_conv_;
  ConstTensor free_, g_norm_;
};

}  // namespace

std::unique_ptr<Mixer> make_hgrn2(const MixerBuild& build) { return std::make_unique<Hgrn2>(build); }

}  // namespace statescope

// Hymba: heads of attention and of Mamba in parallel on one normed input, whose normed outputs are averaged (spec §17.9).
#include <fmt/format.h>

#include "engine/error.h"
#include "engine/mixers/attention/attention_pattern.h"
#include "engine/mixers/mamba.h"
#include "engine/mixers/rope.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

class Hymba final : public Mixer {
 public:
  explicit Hymba(const MixerBuild& build) : scan_(build), d_in_(scan_.channels()) {
    const Config& config = build.config;
    hidden_ = config.integer("hidden_size");
    heads_ = config.integer("num_heads");
    kv_heads_ = config.integer("num_kv_heads", heads_);
    divided(heads_, "num_attention_heads", kv_heads_, "num_key_value_heads");
    d_ = divided(hidden_, "hidden_size", heads_, "num_attention_heads");
    v_dim_ = divided(d_in_, "mamba_expand · hidden_size", heads_, "num_attention_heads");
    eps_ = static_cast<float>(config.not_negative("norm_eps", 1e-6));
    load_projections(build);
    q_norm_ = head_norm(config, build.weights, "q", heads_);
    // What makes the keys normalises them too; a consumer's own norm of keys, where it is stored, has nothing to do.
    const bool unused = kv_proj_ && build.weights.has("self_attn.k_norm.weight");
    if (!kv_proj_ || unused) k_norm_ = head_norm(config, build.weights, "k", kv_heads_);
    if (kv_proj_) k_norm_ = head_norm(config, producer(build).scope("mamba."), "k", kv_heads_);
    if (config.boolean("positions", true)) rope_ = Rope(config, d_, 1);
    if (const auto pattern = AttentionPattern::of(config, build.layer, heads_)) pattern_ = pattern->on_device(build.weights);
    window_ = config.integer("window_size", 0, 0);
  }

  MixerLayout layout() const override {
    MixerLayout layout = scan_.layout();
    layout.attention_heads = heads_;
    layout.kv_heads = kv_heads_;
    layout.key_dim = d_;
    layout.value_dim = v_dim_;
    return layout;
  }

  void describe(Program& p) const override {
    // q | k | v | x | z = in_proj(n); where another layer's keys and values are used, k | v are of what entered that one
    const Value n = kv_proj_ ? p.columns(input_of(p, 2 * hidden_), 0, {hidden_}) : p.x();
    const Value all = in_proj_(p, n, ValueType::exact), kv = kv_proj_ ? shared_keys(p) : p.columns(all, hidden_, {kv_width()});
    const std::int64_t x_at = in_proj_.out() - 2 * d_in_;
    const Value x = p.columns(all, x_at, {d_in_}), z = p.columns(all, x_at + d_in_, {d_in_});
    const Value attention = p.show("attention_readout", p.with_axes(attend(p, p.columns(all, 0, {heads_, d_}), kv), {d_in_}));
    const Value y = scan_(p, x);
    p.show("output_gate", p.mean_of_heads(z, 1, scan_.act()), true);
    const Value scanned = p.show("scan_readout", p.combine(program::Gate{scan_.act()}, y, z));
    p.readouts.push_back(scanned);
    // out_proj( (RMSNorm(attention) + RMSNorm(y ⊙ silu(z))) / 2 )
    const auto normed = [&](ConstTensor weight, Value v) {
      return p.apply(program::RmsNorm{.weight = weight, .group = d_in_, .eps = eps_}, v);
    };
    const Value sum = p.combine(program::Add{}, normed(attention_norm_, attention), normed(scan_norm_, scanned));
    p.result = out_proj_(p, p.show("readout", p.apply(program::Times{0.5F}, sum)));
  }

 private:
  std::int64_t kv_width() const { return kv_heads_ * (d_ + v_dim_); }
  static WeightScope producer(const MixerBuild& build) { return build.weights.of_model().scope(build.config.text("producer")); }

  void load_projections(const MixerBuild& build) {
    const Config& config = build.config;
    const bool bias = config.boolean("use_bias", false), shares = config.has("producer");
    const auto in_proj = [&](const WeightScope& weights, std::int64_t rows) { return Linear(weights, "in_proj", rows, hidden_, bias); };
    const std::int64_t own = hidden_ + 2 * d_in_;
    in_proj_ = in_proj(build.weights, shares ? own : own + kv_width());
    out_proj_ = Linear(build.weights, "out_proj", hidden_, d_in_, bias);
    attention_norm_ = build.weights.floats("pre_avg_layernorm1.weight", {d_in_});
    scan_norm_ = build.weights.floats("pre_avg_layernorm2.weight", {d_in_});
    if (!shares) return;
    kv_proj_ = in_proj(producer(build).scope("mamba."), own + kv_width());
    if (kv_proj_.weight.scales)
      throw Error(fmt::format("tensor {}: keys and values of another layer are not supported where it is quantised",
                              producer(build).full("mamba.in_proj.weight")));
    kv_proj_.weight = kv_proj_.weight.slice(hidden_, kv_width());
    if (bias) kv_proj_.bias = kv_proj_.bias.slice(hidden_, kv_width());
    producer_norm_ = producer(build).floats("input_layernorm.weight", {hidden_});
  }

  /// Of a head's channels, one for all heads or one for each; or none.
  ConstTensor head_norm(const Config& config, const WeightScope& weights, const char* which, std::int64_t heads) const {
    const std::string kind = config.text("kq_norm", "none", {"none", "rms", "perhead-rms"});
    const std::string name = fmt::format("self_attn.{}_norm.weight", which);
    if (kind == "none") return {};
    if (kind == "rms") return weights.floats(name, {d_});
    return {weights.floats(name, {1, heads, 1, d_}).data, DType::f32, {heads * d_}};
  }

  Value normed_heads(Program& p, Value x, ConstTensor weight) const {
    constexpr float eps = 1e-6F;  // whatever the stream's is
    if (!weight) return x;
    if (weight.rows() == d_) return p.apply(program::RmsNorm{.weight = weight, .group = d_, .eps = eps}, x);
    return p.combine(program::Gate{}, p.apply(program::RmsNorm{.weight = {}, .group = d_, .eps = eps}, x), p.constant(weight, p[x].axes));
  }

  /// k | v as the producer has made them, of the stream as it entered there.
  Value shared_keys(Program& p) const {
    const Value entered = p.columns(p.x(), hidden_, {hidden_});
    return kv_proj_(p, p.apply(program::RmsNorm{.weight = producer_norm_, .group = hidden_, .eps = eps_}, entered), ValueType::exact);
  }

  /// o_t = Σ_s softmax_s(d^{-1/2} q_t·k_s) v_s over the s ≤ t in the window, and the memory tokens
  Value attend(Program& p, Value q, Value kv) const {
    const auto turned = [&](Value x) { return rope_ ? (*rope_)(p, x) : x; };
    q = p.show("attention_q", turned(normed_heads(p, q, q_norm_)));
    const Value k = p.show("attention_k", turned(normed_heads(p, p.columns(kv, 0, {kv_heads_, d_}), k_norm_)));
    p.append(k, p.show("attention_v", p.columns(kv, kv_heads_ * d_, {kv_heads_, v_dim_})));
    return p.attend({.q = q, .scale = inverse_sqrt(d_), .window = window_, .pattern = pattern_}, heads_, v_dim_).first;
  }

  MambaScan scan_;
  std::int64_t d_in_, hidden_, heads_, kv_heads_, d_, v_dim_, window_;
  float eps_;
  Linear in_proj_, kv_proj_, out_proj_;  // the second: rows of the producer's in_proj, where keys and values are another layer's
  ConstTensor attention_norm_, scan_norm_, producer_norm_, q_norm_, k_norm_;
  std::optional<Rope> rope_;
  FixedPattern pattern_;
};

}  // namespace

std::unique_ptr<Mixer> make_hymba(const MixerBuild& build) { return std::make_unique<Hymba>(build); }

}  // namespace statescope

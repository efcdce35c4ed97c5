// Mamba-2 (SSD): a decayed outer product with q = C, k = B, v = dt·x and one scalar decay per head (spec §3.9, §19.2); log-linear
// Mamba-2 reads levels of such states (spec §17.14).
#include "engine/mixers/mamba2.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/error.h"
#include "engine/mixers/table.h"

namespace statescope {

Mamba2Mixer::Mamba2Mixer(const MixerBuild& build) {
  const Config& config = build.config;
  const WeightScope& weights = build.weights;
  const std::int64_t hidden = config.integer("hidden_size");
  read_sizes(config, hidden);
  const std::int64_t conv_dim = d_in_ + 2 * groups_ * state_size_;
  const bool bias = config.boolean("use_bias", false);
  levels_ = config.integer("levels", 0, 0, 60);
  in_proj_ = Linear(weights, "in_proj", d_in_ + conv_dim + heads_ + heads_ * levels_, hidden, bias);
  if (levels_ > 0) {
    L_ = {weights.floats("L", {heads_, levels_}).data, DType::f32, {heads_ * levels_}};
    no_bias_ = weights.constant(std::vector<float>(static_cast<std::size_t>(heads_ * levels_)));
  }
  const Activation act = activation_named(config, "hidden_act", "silu", {"silu", "swish", "relu", "sigmoid"});
  conv_ = Conv(weights, "conv1d", conv_dim, ToldSize(config, "conv_kernel", 4), act, config.boolean("use_conv_bias", true));
  // A = −exp(A_log), once
  std::vector<float> A = weights.host("A_log", {heads_});
  for (float& a : A) a = -std::exp(a);
  A_ = weights.constant(A);
  dt_bias_ = weights.floats("dt_bias", {heads_});
  D_per_channel_ = config.boolean("D_has_hdim", false);
  D_ = weights.floats("D", {D_per_channel_ ? d_in_ : heads_});
  read_limit(config);
  read_factors(config, weights);
  if (config.boolean("rmsnorm", true)) norm_ = weights.floats("norm.weight", {d_in_});
  norm_before_gate_ = config.boolean("norm_before_gate", false);
  eps_ = static_cast<float>(config.not_negative("norm_eps", 1e-5));
  out_proj_ = Linear(weights, "out_proj", hidden, d_in_, config.boolean("out_bias", bias));
}

void Mamba2Mixer::read_sizes(const Config& config, std::int64_t hidden) {
  d_in_ = config.has("inner_size") ? config.integer("inner_size") : hidden * config.integer("expand", 2);
  P_ = config.integer("head_dim", 64);
  heads_ = divided(d_in_, "expand · hidden_size", P_, config.in_file("head_dim"));
  if (const std::int64_t named = config.integer("num_heads", heads_); named != heads_)
    throw Error(fmt::format("config: \"num_heads\" is {}, but expand · hidden_size / head_dim {}", named, heads_));
  state_size_ = config.integer("state_size", 128);
  groups_ = config.integer("n_groups", 1);
  divided(heads_, "heads", groups_, config.in_file("n_groups"));
}

void Mamba2Mixer::read_limit(const Config& config) {
  const std::vector<double> limit = config.numbers("dt_limit");
  if (limit.empty()) return;
  if (limit.size() != 2 || limit[0] > limit[1]) throw Error("config: \"dt_limit\" must hold two numbers, the lesser first");
  dt_min_ = static_cast<float>(limit[0]);
  dt_max_ = static_cast<float>(limit[1]);
}

/// Falcon-H1's: of u, and of each of the parts z, x, B, C, dt (spec §19.5).
void Mamba2Mixer::read_factors(const Config& config, const WeightScope& weights) {
  in_factor_ = static_cast<float>(config.number("in_factor", 1));
  const std::vector<double> factors = config.numbers("part_factors");
  if (factors.empty()) return;
  if (factors.size() != 5) throw Error("config: \"ssm_multipliers\" must hold five numbers");
  const std::int64_t bc = groups_ * state_size_;
  std::vector<float> row;
  const std::array<std::int64_t, 5> widths{d_in_, d_in_, bc, bc, heads_};
  for (std::size_t part = 0; part < 5; ++part)
    row.insert(row.end(), static_cast<std::size_t>(widths[part]), static_cast<float>(factors[part]));
  part_factors_ = weights.constant(row);
}

MixerLayout Mamba2Mixer::layout() const {
  MixerLayout layout = decaying_state(heads_, state_size_, P_, {conv_.cache_shape()});
  if (levels_ == 0) return layout;
  layout.memory[0].shape[0] = levels_;
  layout.slot_names.clear();
  for (std::int64_t level = 0; level < levels_; ++level) layout.slot_names.push_back(fmt::format("level {}", level));
  return layout;
}

Value Mamba2Mixer::output(Program& p, Value u) const {
  // z | x | B | C | dt = in_proj(u);   x | B | C = silu(conv(x | B | C))
  const std::int64_t bc = groups_ * state_size_, conv_dim = d_in_ + 2 * bc;
  Value zxbcdt = in_proj_(p, scaled_input(p, u, in_factor_, in_proj_.weight.row_size()));
  if (part_factors_) zxbcdt = p.combine(program::Gate{}, zxbcdt, p.constant(part_factors_, {p.width(zxbcdt)}));
  const Value z = p.columns(zxbcdt, 0, {d_in_});
  const Value xbc = conv_(p, p.columns(zxbcdt, d_in_, {conv_dim}), 0), x = p.columns(xbc, 0, {heads_, P_});
  const Value B = p.columns(xbc, d_in_, {groups_, state_size_}), C = p.columns(xbc, d_in_ + bc, {groups_, state_size_});
  // dt = clamp(softplus(dt + dt_bias)),   log α = −exp(A_log)·dt
  const program::SoftplusClamp clamp{dt_bias_, dt_min_, dt_max_};
  const Value dt = p.show("dt", p.apply(clamp, p.columns(zxbcdt, d_in_ + conv_dim, {heads_}), ValueType::exact));
  const Value log_decay = p.combine(program::Gate{}, dt, p.constant(A_, {heads_}));
  const Value v = p.combine(program::ScaleHeads{}, x, dt);

  // S_t = α_t S_{t-1} + B_tᵀ (dt_t x_t),   y_t = C_t S_t + D x_t
  const Value levels = levels_ > 0 ? p.columns(zxbcdt, d_in_ + conv_dim + heads_, {heads_ * levels_}) : Value{};
  const Value o = remembered(p, {.q = C, .k = B, .v = v, .log_decay = log_decay}, levels);
  const Value read = p.with_axes(o, {d_in_});
  p.reads.push_back(read);  // D x goes past the memory
  const Value D = p.constant(D_, {D_.rows()});
  const Value skip = D_per_channel_ ? p.combine(program::Gate{}, p.with_axes(x, {d_in_}), D)
                                    : p.with_axes(p.combine(program::ScaleHeads{}, x, D), {d_in_});
  Value y = p.combine(program::Add{}, read, skip);
  // RMSNorm(y ⊙ silu(z)), or RMSNorm(y) ⊙ silu(z), over each of the G groups
  if (norm_ && norm_before_gate_) y = group_norm(p, y);
  p.show("output_gate", p.mean_of_heads(z, heads_, Activation::silu), true);
  y = p.combine(program::Gate{Activation::silu}, y, z);
  if (norm_ && !norm_before_gate_) y = group_norm(p, y);
  p.readouts.push_back(p.show("readout", y));
  return out_proj_(p, y);
}

Value Mamba2Mixer::remembered(Program& p, const program::OuterProduct& memory, Value levels) const {
  if (!levels) return remember(p, memory, heads_, P_);
  // λ = softplus(L · dl),   y_t = Σ_ℓ λ_{t,ℓ} C_t S^ℓ_t
  const program::SoftplusClamp softplus{no_bias_, 0, std::numeric_limits<float>::infinity()};
  const Value scaled = p.combine(program::Gate{}, levels, p.constant(L_, {heads_ * levels_}));
  const Value scale = p.show("level_scale", p.with_axes(p.apply(softplus, scaled, ValueType::exact), {heads_, levels_}));
  p.show("q", memory.q);
  p.show("k", memory.k);
  p.show("v", memory.v);
  p.show("log_decay", memory.log_decay);
  return p.remember(
      program::LogLinearAttention{.q = memory.q, .k = memory.k, .v = memory.v, .log_decay = memory.log_decay, .level_scale = scale}, heads_,
      P_);
}

Value Mamba2Mixer::group_norm(Program& p, Value x) const {
  const std::int64_t n = d_in_ / groups_;
  const auto norm = [&](std::int64_t g) { return program::RmsNorm{.weight = norm_.slice(g * n, n), .group = n, .eps = eps_}; };
  if (groups_ == 1) return p.apply(norm(0), x);
  const Value y = p.value({d_in_});
  for (std::int64_t g = 0; g < groups_; ++g) p.apply_into(p.columns(y, g * n, {n}), norm(g), p.columns(x, g * n, {n}));
  return y;
}

std::unique_ptr<Mixer> make_mamba2(const MixerBuild& build) { return std::make_unique<Mamba2Mixer>(build); }

}  // namespace statescope

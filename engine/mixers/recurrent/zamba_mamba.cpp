#include "engine/mixers/recurrent/zamba_mamba.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "engine/error.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

/// The matrices [out, in] of all heads, which are stored as one tensor [heads, out, in].
std::vector<Linear> of_heads(const WeightScope& weights, std::string_view name, std::int64_t heads, std::int64_t out, std::int64_t in) {
  const ConstTensor all = weights.matrix(name, {heads, out, in});
  if (all.scales) throw Error(fmt::format("tensor {}: matrices of heads are not supported where they are quantised", weights.full(name)));
  std::vector<Linear> result(static_cast<std::size_t>(heads));
  for (std::int64_t h = 0; h < heads; ++h) result[static_cast<std::size_t>(h)].weight = {all.slice(h, 1).data, all.dtype, {out, in}};
  return result;
}

/// 0, 2, 4, …, then 1, 3, 5, …
std::vector<std::int64_t> even_rows_first(std::int64_t rows) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < rows; ++i) order.push_back(i < rows / 2 ? 2 * i : 2 * (i - rows / 2) + 1);
  return order;
}

}  // namespace

ZambaMambaMixer::ZambaMambaMixer(const MixerBuild& build) {
  const Config& config = build.config;
  const WeightScope& weights = build.weights;
  const std::int64_t hidden = config.integer("hidden_size");
  d_in_ = expanded(hidden, config, "expand", 2);
  heads_ = config.integer("num_heads", 2);
  P_ = divided(d_in_, "expand · hidden_size", heads_, "n_mamba_heads");
  N_ = config.integer("state_size", 16);
  rank_ = config.integer("time_step_rank");
  const bool bias = config.boolean("use_bias", false);
  // The rows of x and z take turns.
  const std::vector<std::int64_t> order = even_rows_first(2 * d_in_);
  in_proj_.weight = weights.matrix_in_order("in_proj.weight", {2 * d_in_, hidden}, order);
  if (bias) {
    const std::vector<float> stored = weights.host("in_proj.bias", {2 * d_in_});
    std::vector<float> ordered;
    for (const std::int64_t i : order) ordered.push_back(stored[static_cast<std::size_t>(i)]);
    in_proj_.bias = weights.constant(ordered);
  }
  conv_ = Conv(weights, "conv1d", d_in_, ToldSize(config, "conv_kernel", 4), Activation::silu, config.boolean("use_conv_bias", true));
  load_heads(build);
  out_proj_ = Linear(weights, "out_proj", hidden, d_in_, bias);
}

void ZambaMambaMixer::load_heads(const MixerBuild& build) {
  const WeightScope& weights = build.weights;
  x_proj_ = of_heads(weights, "x_proj_weight", heads_, rank_ + 2 * N_, P_);
  dt_proj_ = of_heads(weights, "dt_proj_weight", heads_, P_, rank_);
  dt_bias_ = weights.floats("dt_proj_bias", {heads_, P_});
  // A[h, n, c] = −exp(A_log[h, c, n]), once
  const std::vector<float> A_log = weights.host("A_log", {heads_, P_, N_});
  std::vector<float> A;
  for (std::int64_t i = 0; i < heads_ * N_ * P_; ++i) {
    const std::int64_t h = i / (N_ * P_), n = i / P_ % N_, c = i % P_;
    A.push_back(-std::exp(A_log[static_cast<std::size_t>((h * P_ + c) * N_ + n)]));
  }
  A_ = {weights.constant(A).data, DType::f32, {heads_, N_, P_}};
  D_ = weights.floats("D", {heads_, P_});
}

MixerLayout ZambaMambaMixer::layout() const {
  MixerLayout layout = decaying_state(heads_, N_, P_, {conv_.cache_shape()});
  layout.row_name = "state";
  layout.column_name = "channel";
  return layout;
}

Value ZambaMambaMixer::output(Program& p, Value u) const {
  // x | z = in_proj(u);   x = silu(conv(x))
  const Value xz = in_proj_(p, u), z = p.columns(xz, d_in_, {d_in_}), x = conv_(p, p.columns(xz, 0, {d_in_}), 0);
  const Value dt = p.value({heads_, P_}, ValueType::exact), B = p.value({heads_, N_}, ValueType::exact),
              C = p.value({heads_, N_}, ValueType::exact);
  for (std::int64_t h = 0; h < heads_; ++h) {
    const auto head = static_cast<std::size_t>(h);
    // r | B | C = x_proj_h(x_h),   Δ_h = softplus(dt_proj_h(r) + bias_h)
    const Value rBC = x_proj_[head](p, p.columns(x, h * P_, {P_}), ValueType::exact), r = p.columns(rBC, 0, {rank_});
    const program::SoftplusClamp softplus{{dt_bias_.slice(h, 1).data, DType::f32, {P_}}, 0, std::numeric_limits<float>::infinity()};
    p.apply_into(p.columns(dt, h * P_, {P_}), softplus, dt_proj_[head](p, r, ValueType::exact));
    p.apply_into(p.columns(B, h * N_, {N_}), Activation::identity, p.columns(rBC, rank_, {N_}));
    p.apply_into(p.columns(C, h * N_, {N_}), Activation::identity, p.columns(rBC, rank_ + N_, {N_}));
  }
  const Value of_heads = p.with_axes(x, {heads_, P_});
  p.show("dt", dt);
  p.show("q", C);
  p.show("k", B);
  p.show("v", p.combine(program::Gate{}, of_heads, dt));

  // S_t[n,c] = exp(Δ_c A[n,c]) S_{t-1}[n,c] + B_n Δ_c x_c,   y_c = Σ_n C_n S_t[n,c] + D_c x_c, in each head
  const Value o = p.remember(program::SelectiveScan{.x = of_heads, .dt = dt, .B = B, .C = C, .A = A_}, heads_, P_);
  const Value read = p.with_axes(o, {d_in_});
  p.reads.push_back(read);  // D x goes past the memory
  const Value skip = p.combine(program::Gate{}, x, p.constant(D_, {d_in_}));
  p.show("output_gate", p.mean_of_heads(z, heads_, Activation::silu), true);
  // out_proj( y ⊙ silu(z) )
  const Value gated = p.show("readout", p.combine(program::Gate{Activation::silu}, p.combine(program::Add{}, read, skip), z));
  p.readouts.push_back(gated);
  return out_proj_(p, gated);
}

std::unique_ptr<Mixer> make_zamba_mamba(const MixerBuild& build) { return std::make_unique<ZambaMambaMixer>(build); }

}  // namespace statescope

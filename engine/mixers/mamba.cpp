// Mamba-1: a selective scan behind a convolution, Δ, B and C from its input (spec §17.1). Falcon-Mamba and Jamba normalise r, B and C
// (spec §17.2, §17.6).
#include "engine/mixers/mamba.h"

#include <cmath>
#include <limits>

#include "engine/mixers/table.h"

namespace statescope {

MambaScan::MambaScan(const MixerBuild& build) {
  const Config& config = build.config;
  const WeightScope& weights = build.weights;
  d_in_ = expanded(config.integer("hidden_size"), config, "expand", 2);
  N_ = config.integer("state_size", 16);
  rank_ = config.integer("time_step_rank");
  act_ = activation_named(config, "hidden_act", "silu", {"silu", "swish", "relu", "sigmoid"});
  conv_ = Conv(weights, "conv1d", d_in_, ToldSize(config, "conv_kernel", 4), act_, config.boolean("use_conv_bias", true));
  x_proj_ = Linear(weights, "x_proj", rank_ + 2 * N_, d_in_);
  dt_proj_ = Linear(weights, "dt_proj", d_in_, rank_);
  dt_bias_ = weights.floats("dt_proj.bias", {d_in_});
  // A[n, c] = −exp(A_log[c, n]), once
  const std::vector<float> A_log = weights.host("A_log", {d_in_, N_});
  std::vector<float> A(A_log.size());
  for (std::size_t i = 0; i < A.size(); ++i) {
    const std::size_t n = i / static_cast<std::size_t>(d_in_), c = i % static_cast<std::size_t>(d_in_);
    A[i] = -std::exp(A_log[c * static_cast<std::size_t>(N_) + n]);
  }
  const ConstTensor stored = weights.constant(A);
  if (stored) A_ = ConstTensor(stored.data, DType::f32, {1, N_, d_in_});
  D_ = weights.floats("D", {d_in_});
  const std::string norms = config.text("inner_norms", "none", {"none", "plain", "weighted"});
  if (norms == "none") return;
  const auto eps = static_cast<float>(config.not_negative("inner_norm_eps", 1e-6));
  const auto norm = [&](const char* name, std::int64_t n) {
    return program::RmsNorm{.weight = norms == "weighted" ? weights.floats(name, {n}) : ConstTensor{}, .group = n, .eps = eps};
  };
  norms_ = {norm("dt_layernorm.weight", rank_), norm("b_layernorm.weight", N_), norm("c_layernorm.weight", N_)};
}

MixerLayout MambaScan::layout() const {
  MixerLayout layout = decaying_state(1, N_, d_in_, {conv_.cache_shape()});
  layout.row_name = "state";
  layout.column_name = "channel";
  return layout;
}

Value MambaScan::operator()(Program& p, Value before) const {
  // x = silu(conv(x))
  const Value x = p.with_axes(conv_(p, before, 0), {1, d_in_});
  // r | B | C = x_proj(x), perhaps normalised, each by itself
  const Value rBC = x_proj_(p, p.with_axes(x, {d_in_}), ValueType::exact);
  const Value r = normed(p, 0, p.columns(rBC, 0, {rank_}));
  const Value B = p.with_axes(normed(p, 1, p.columns(rBC, rank_, {N_})), {1, N_});
  const Value C = p.with_axes(normed(p, 2, p.columns(rBC, rank_ + N_, {N_})), {1, N_});
  // Δ = softplus(dt_proj(r) + bias), of every channel
  const program::SoftplusClamp softplus{dt_bias_, 0, std::numeric_limits<float>::infinity()};
  const Value dt = p.show("dt", p.with_axes(p.apply(softplus, dt_proj_(p, r, ValueType::exact)), {1, d_in_}));
  p.show("q", C);
  p.show("k", B);
  p.show("v", p.combine(program::Gate{}, x, dt));

  // S_t[n,c] = exp(Δ_c A[n,c]) S_{t-1}[n,c] + B_n Δ_c x_c,   y_c = Σ_n C_n S_t[n,c] + D_c x_c
  const Value o = p.remember(program::SelectiveScan{.x = x, .dt = dt, .B = B, .C = C, .A = A_}, 1, d_in_);
  const Value read = p.with_axes(o, {d_in_});
  p.reads.push_back(read);  // D x goes past the memory
  const Value skip = p.combine(program::Gate{}, p.with_axes(x, {d_in_}), p.constant(D_, {d_in_}));
  return p.combine(program::Add{}, read, skip);
}

namespace {

class Mamba final : public Mixer {
 public:
  explicit Mamba(const MixerBuild& build) : scan_(build) {
    const std::int64_t hidden = build.config.integer("hidden_size"), d_in = scan_.channels();
    const bool bias = build.config.boolean("use_bias", false);
    in_proj_ = Linear(build.weights, "in_proj", 2 * d_in, hidden, bias);
    out_proj_ = Linear(build.weights, "out_proj", hidden, d_in, bias);
  }

  MixerLayout layout() const override { return scan_.layout(); }

  void describe(Program& p) const override {
    // x | z = in_proj(u)
    const std::int64_t d_in = scan_.channels();
    const Value xz = in_proj_(p, p.x()), z = p.columns(xz, d_in, {d_in});
    const Value y = scan_(p, p.columns(xz, 0, {d_in}));
    p.show("output_gate", p.mean_of_heads(z, 1, scan_.act()), true);
    // out_proj( y ⊙ silu(z) )
    const Value gated = p.show("readout", p.combine(program::Gate{scan_.act()}, y, z));
    p.readouts.push_back(gated);
    p.result = out_proj_(p, gated);
  }

 private:
  MambaScan scan_;
  Linear in_proj_, out_proj_;
};

}  // namespace

std::unique_ptr<Mixer> make_mamba(const MixerBuild& build) { return std::make_unique<Mamba>(build); }

}  // namespace statescope

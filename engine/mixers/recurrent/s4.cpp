// S4 and S4D: a state space whose rule is the same for every token, discretised by zero-order hold (spec §17.17).
#include <fmt/format.h>

#include <cmath>
#include <complex>

#include "engine/error.h"
#include "engine/mixers/parts.h"
#include "engine/mixers/recurrent/hold.h"
#include "engine/mixers/table.h"

namespace statescope {
namespace {

class S4 final : public Mixer {
 public:
  explicit S4(const MixerBuild& build) : hidden_(build.config.integer("hidden_size")) {
    const WeightScope& weights = build.weights;
    N_ = build.config.integer("states");  // of pairs one
    diagonal_ = build.config.boolean("diagonal", false);
    diagonal_ ? load_diagonal(weights) : load_dense(weights);
    D_ = weights.floats("D", {hidden_});
    const ConstTensor stored = weights.matrix("output_linear.0.weight", {2 * hidden_, hidden_, 1});
    if (stored.scales) throw Error(fmt::format("tensor {}: not supported where it is quantised", weights.full("output_linear.0.weight")));
    output_linear_.weight = {stored.data, stored.dtype, {2 * hidden_, hidden_}};
    output_linear_.bias = weights.floats("output_linear.0.bias", {2 * hidden_});
  }

  MixerLayout layout() const override {
    MixerLayout layout = single_state(1, N_, hidden_);
    layout.row_name = diagonal_ ? "state" : "coefficient";
    layout.column_name = "channel";
    if (!diagonal_) return layout;
    layout.memory[0].shape[0] = 2;
    layout.slot_names = {"real part", "imaginary part"};
    return layout;
  }

  void describe(Program& p) const override {
    // X_t = Ā X_{t-1} + B̄ u_t,   y = 2 Re(C X_t) + D u_t, or C X_t + D u_t
    const Value u = p.show("v", p.apply(Activation::identity, input_of(p, hidden_), ValueType::exact));
    const Value read = p.remember(program::StateSpace{.u = u, .A = A_, .B = B_, .C = C_}, hidden_);
    p.reads.push_back(read);  // D u goes past the memory
    const Value y = p.combine(program::Add{}, read, p.combine(program::Gate{}, u, p.constant(D_, {hidden_})));
    // a ⊙ σ(b),   a | b = output_linear(gelu(y))
    const Value g = p.show("readout", p.apply(Activation::gelu, y));
    p.readouts.push_back(g);
    const Value ab = output_linear_(p, g);
    p.result = p.combine(program::Gate{Activation::sigmoid}, p.columns(ab, 0, {hidden_}), p.columns(ab, hidden_, {hidden_}));
  }

 private:
  /// values [parts, N, channels]
  static ConstTensor laid_out(const WeightScope& weights, const std::vector<float>& values, std::int64_t parts, std::int64_t N,
                              std::int64_t channels) {
    return {weights.constant(values).data, DType::f32, {parts, N, channels}};
  }

  /// A = −exp(log_A_real) + i A_imag,   Ā = exp(Δ A),   B̄ = (Ā − 1) / A
  void load_diagonal(const WeightScope& weights) {
    const std::vector<float> log_dt = weights.host("kernel.log_dt", {hidden_}), re = weights.host("kernel.log_A_real", {hidden_, N_}),
                             im = weights.host("kernel.A_imag", {hidden_, N_}), C = weights.host("kernel.C", {hidden_, N_, 2});
    const auto part = static_cast<std::size_t>(N_ * hidden_);
    std::vector<float> A_bar(2 * part), B_bar(2 * part), C_bar(2 * part);
    for (std::size_t i = 0; i < part; ++i) {  // of channel c, state n
      const std::size_t c = i / static_cast<std::size_t>(N_), n = i % static_cast<std::size_t>(N_);
      const std::size_t at = n * static_cast<std::size_t>(hidden_) + c;
      const std::complex<double> A(-std::exp(double{re[i]}), im[i]);
      const HeldState held = zero_order_hold(A, std::exp(double{log_dt[c]}));
      A_bar[at] = static_cast<float>(held.A.real()), A_bar[part + at] = static_cast<float>(held.A.imag());
      B_bar[at] = static_cast<float>(held.B.real()), B_bar[part + at] = static_cast<float>(held.B.imag());
      C_bar[at] = C[2 * i], C_bar[part + at] = C[2 * i + 1];
    }
    A_ = laid_out(weights, A_bar, 2, N_, hidden_);
    B_ = laid_out(weights, B_bar, 2, N_, hidden_);
    C_ = laid_out(weights, C_bar, 2, N_, hidden_);
  }

  /// Ā = e^{Δ A},   B̄ = A^{-1} (Ā − I) B, in every channel with its own Δ
  void load_dense(const WeightScope& weights) {
    const std::vector<float> log_dt = weights.host("kernel.log_dt", {hidden_}), A = weights.host("kernel.A", {N_, N_}),
                             B = weights.host("kernel.B", {N_}), C = weights.host("kernel.C", {hidden_, N_});
    std::vector<float> A_bar(static_cast<std::size_t>(N_ * N_ * hidden_)), B_bar(static_cast<std::size_t>(N_ * hidden_)),
        C_bar(B_bar.size());
    for (std::int64_t c = 0; c < hidden_; ++c) {
      const Held held = zero_order_hold(A, B, std::exp(double{log_dt[static_cast<std::size_t>(c)]}));
      for (std::int64_t i = 0; i < N_ * N_; ++i)
        A_bar[static_cast<std::size_t>(i * hidden_ + c)] = static_cast<float>(held.A[static_cast<std::size_t>(i)]);
      for (std::int64_t n = 0; n < N_; ++n) {
        B_bar[static_cast<std::size_t>(n * hidden_ + c)] = static_cast<float>(held.B[static_cast<std::size_t>(n)]);
        C_bar[static_cast<std::size_t>(n * hidden_ + c)] = C[static_cast<std::size_t>(c * N_ + n)];
      }
    }
    A_ = laid_out(weights, A_bar, N_, N_, hidden_);
    B_ = laid_out(weights, B_bar, 1, N_, hidden_);
    C_ = laid_out(weights, C_bar, 1, N_, hidden_);
  }

  std::int64_t hidden_, N_;
  bool diagonal_;
  ConstTensor A_, B_, C_, D_;
  Linear output_linear_;
};

}  // namespace

std::unique_ptr<Mixer> make_s4(const MixerBuild& build) { return std::make_unique<S4>(build); }

}  // namespace statescope

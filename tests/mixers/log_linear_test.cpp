// Log-linear Mamba-2 against sums over the tokens in double precision (spec §3.9, §17.14).
#include <cmath>

#include "tests/mixers/mixer_rig.h"

namespace statescope::test::log_linear_mixer_test {
namespace {

/// Layer 0 of a model, from its weights: no state, no level is kept, each token sums over those that its levels hold.
class LogLinearLayer {
 public:
  explicit LogLinearLayer(Editable& model) : model_(model), config_(model.config()) {}

  /// y [T, D] of x [T, D]; the norm is over `norm_groups` groups of channels.
  std::vector<float> outputs(std::span<const float> x, std::size_t norm_groups) {
    const std::size_t T = x.size() / D;
    std::vector<Row> parts, xbc, dt;
    for (std::size_t t = 0; t < T; ++t) parts.push_back(product("in_proj.weight", {x.begin() + at(t * D), x.begin() + at((t + 1) * D)}));
    for (std::size_t t = 0; t < T; ++t) {
      xbc.push_back(convolved(parts, t));
      dt.emplace_back();
      for (std::size_t h = 0; h < H; ++h) dt.back().push_back(softplus(parts[t][d_in + conv_dim + h] + weight("dt_bias")[h]));
    }
    std::vector<float> all;
    for (std::size_t t = 0; t < T; ++t) {
      Row y = read(t, parts[t], xbc, dt);
      for (const double out : product("out_proj.weight", gated(y, parts[t], norm_groups))) all.push_back(static_cast<float>(out));
    }
    return all;
  }

 private:
  using Row = std::vector<double>;
  static std::ptrdiff_t at(std::size_t i) { return static_cast<std::ptrdiff_t>(i); }
  static double silu(double x) { return x / (1 + std::exp(-x)); }
  static double softplus(double x) { return std::log1p(std::exp(x)); }
  std::span<const float> weight(const std::string& name) { return model_.floats("backbone.layers.0.mixer." + name); }
  Row product(const std::string& name, const Row& x) {
    const std::span<const float> W = weight(name);
    Row y(W.size() / x.size());
    for (std::size_t i = 0; i < W.size(); ++i) y[i / x.size()] += double{W[i]} * x[i % x.size()];
    return y;
  }

  /// silu of the four last x | B | C, channel by channel
  Row convolved(const std::vector<Row>& parts, std::size_t t) {
    Row row;
    for (std::size_t c = 0; c < conv_dim; ++c) {
      double sum = weight("conv1d.bias")[c];
      for (std::size_t back = 0; back < 4 && back <= t; ++back)
        sum += double{weight("conv1d.weight")[4 * c + 3 - back]} * parts[t - back][d_in + c];
      row.push_back(silu(sum));
    }
    return row;
  }

  /// Σ_ℓ λ_ℓ Σ_{s in level ℓ} (C_t·B_s) exp(−exp(A_log) Σ_{j=s+1..t} dt_j) dt_s x_s + D x_t
  Row read(std::size_t t, const Row& parts, const std::vector<Row>& xbc, const std::vector<Row>& dt) {
    Row y(d_in);
    for (std::size_t h = 0; h < H; ++h) {
      const std::size_t of_group = h / (H / G) * N, B = d_in + of_group, C = d_in + G * N + of_group;
      const auto add = [&](std::size_t level, std::size_t s) {
        const double raw = parts[d_in + conv_dim + H + h * levels + level];
        double inner = 0, passed = 0;
        for (std::size_t n = 0; n < N; ++n) inner += xbc[t][C + n] * xbc[s][B + n];
        for (std::size_t j = s + 1; j <= t; ++j) passed += dt[j][h];
        const double factor =
            softplus(weight("L")[h * levels + level] * raw) * inner * dt[s][h] * std::exp(-std::exp(double{weight("A_log")[h]}) * passed);
        for (std::size_t p = 0; p < P; ++p) y[h * P + p] += factor * xbc[s][h * P + p];
      };
      add(0, t);
      for (std::size_t level = 1; level < levels; ++level) {
        const std::size_t width = std::size_t{1} << (level - 1);
        if ((t & width) == 0) continue;
        const std::size_t end = t - t % width;
        for (std::size_t s = end - width; s < end; ++s) add(level, s);
      }
      for (std::size_t p = 0; p < P; ++p) y[h * P + p] += double{weight("D")[channels_have_D ? h * P + p : h]} * xbc[t][h * P + p];
    }
    return y;
  }

  Row gated(Row y, const Row& z, std::size_t norm_groups) {
    const auto gate = [&] {
      for (std::size_t i = 0; i < d_in; ++i) y[i] *= silu(z[i]);
    };
    if (!before_gate) gate();
    const std::size_t each = d_in / norm_groups;
    for (std::size_t first = 0; normed && first < d_in; first += each) {
      double squares = 0;
      for (std::size_t i = first; i < first + each; ++i) squares += y[i] * y[i] / static_cast<double>(each);
      for (std::size_t i = first; i < first + each; ++i) y[i] *= weight("norm.weight")[i] / std::sqrt(squares + 1e-5);
    }
    if (before_gate) gate();
    return y;
  }

  std::size_t number(const char* key, std::size_t fallback) const { return config_.value(key, fallback); }

  Editable& model_;
  json config_;
  std::size_t D = number("hidden_size", 0), d_in = D * number("expand", 2), P = number("head_dim", 64), H = d_in / P,
              N = number("state_size", 128), G = number("n_groups", 1), conv_dim = d_in + 2 * G * N, levels = 15;
  bool channels_have_D = config_.value("D_has_hdim", false), normed = config_.value("rmsnorm", true),
       before_gate = config_.value("norm_before_gate", false);
};

}  // namespace

TEST_CASE("log-linear Mamba-2: groups, its norm and D by their keys, against sums in double precision") {
  const json two{{"expand", 2}, {"n_groups", 2}};
  for (const json& changes : {json::object(), two, with(two, {{"norm_before_gate", true}}), with(two, {{"rmsnorm", false}}),
                              with(two, {{"rmsnorm", false}, {"norm_before_gate", true}}), with(two, {{"D_has_hdim", true}})}) {
    INFO(changes.dump());
    Editable model(log_linear_config(changes));
    MixerRig rig(model);
    const std::vector<float> x = rig.some_input(37);
    const std::size_t groups = changes.value("n_groups", std::size_t{1});
    const std::vector<float> expected = LogLinearLayer(model).outputs(x, groups);
    for (const Way& way : {Way{{37, 64}}, Way{{5, 64}, {32, 7}}, steps(37)}) CHECK(difference(rig.read(x, way).y, expected) < 1e-5);
    if (groups > 1 && changes.value("rmsnorm", true)) CHECK(difference(LogLinearLayer(model).outputs(x, 1), expected) > 1e-2);
  }
}

}  // namespace statescope::test::log_linear_mixer_test

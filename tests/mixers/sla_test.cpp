// Softmax linear attention on RetNet, GLA and Gated DeltaNet (spec §6): the gates by hand, and what each switch does.
#include <functional>

#include "tests/mixers/mixer_rig.h"

namespace statescope::test::sla_test {
namespace {

constexpr std::int64_t kTokens = 30;

json gla_sla(const json& changes) { return small_config("gla", with(sla(changes), {{"expand_k", 1.0}})); }

/// W x in double: W [out, in].
std::vector<double> times(std::span<const float> W, std::span<const double> x) {
  std::vector<double> y(W.size() / x.size());
  for (std::size_t i = 0; i < W.size(); ++i) y[i / x.size()] += W[i] * x[i % x.size()];
  return y;
}

/// G^Q of one token by the equation: logits from x, from all heads of q, or per head (SLA eq. 4).
std::vector<double> expected_gate(Editable& model, const std::string& input, std::span<const double> x, bool relu, double temperature) {
  std::vector<double> q = times(model.floats("model.layers.0.attn.q_proj.weight"), x);
  if (relu) std::transform(q.begin(), q.end(), q.begin(), [](double value) { return std::max(value, 0.0); });
  const std::span<const float> w = model.floats("model.layers.0.attn.sla_q_gate.weight");
  std::vector<double> logits;
  for (std::size_t h = 0; h < 4; ++h) {
    const std::size_t d = w.size() / 4;
    const std::span<const double> seen = input == "x"          ? x
                                         : input == "q_concat" ? std::span<const double>(q)
                                                               : std::span<const double>(q).subspan(h * d, d);
    logits.push_back(times(w.subspan(h * d, d), seen)[0]);
  }
  double sum = 0;
  for (double& logit : logits) sum += logit = std::exp(temperature * logit);
  for (double& logit : logits) logit /= sum;
  return logits;
}

/// y_t in double from the channels of a pass, with q as the memory is read with times `factor` [T, H], and the normalised heads times
/// `scale` [T, H]: the equations of spec §3.3, §3.4, §3.6.
std::vector<std::vector<double>> outputs(Editable& model, const Pass& pass, std::span<const float> x,
                                         const std::function<double(std::int64_t, std::size_t)>& factor,
                                         const std::function<double(std::int64_t, std::size_t)>& scale) {
  const std::string attn = "model.layers.0.attn.";
  const auto H = static_cast<std::size_t>(pass["v"].shape[1]), K = static_cast<std::size_t>(pass["q"].shape[2]);
  const auto V = static_cast<std::size_t>(pass["v"].shape[2]), decays = static_cast<std::size_t>(pass["log_decay"].shape.row_size()) / H;
  const bool delta = pass.channels.contains("beta");
  const std::span<const float> norm = model.floats(attn + (delta ? "o_norm.weight" : "g_norm_swish_gate.weight"));
  std::vector<double> S(H * K * V);
  std::vector<std::vector<double>> all;
  for (std::int64_t t = 0; t < pass["v"].shape[0]; ++t) {
    const std::vector<double> x_t(x.begin() + t * 64, x.begin() + (t + 1) * 64);
    std::vector<double> read, g = times(model.floats(attn + "g_proj.weight"), x_t);
    for (std::size_t h = 0; h < H; ++h) {
      double* state = &S[h * K * V];
      const float *q = &pass["q"].row(t)[h * K], *k = &pass["k"].row(t)[h * K], *v = &pass["v"].row(t)[h * V];
      std::vector<double> u(v, v + V), o(V);
      for (std::size_t i = 0; i < K * V; ++i) state[i] *= std::exp(pass["log_decay"].row(t)[h * decays + (decays > 1 ? i / V : 0)]);
      for (std::size_t i = 0; delta && i < K * V; ++i) u[i % V] -= k[i / V] * state[i];
      for (std::size_t i = 0; i < K * V; ++i) state[i] += k[i / V] * u[i % V] * (delta ? pass["beta"].row(t)[h] : 1.0F);
      for (std::size_t i = 0; i < K * V; ++i) o[i % V] += factor(t, h) * q[i / V] * state[i] / std::sqrt(static_cast<double>(K));
      double squares = 0;
      for (const double value : o) squares += value * value;
      for (std::size_t c = 0; c < V; ++c) {
        const double gate = g[h * V + c];
        read.push_back(scale(t, h) * o[c] / std::sqrt(squares / static_cast<double>(V) + 1e-6) * norm[c] * gate / (1 + std::exp(-gate)));
      }
    }
    all.push_back(times(model.floats(attn + "o_proj.weight"), read));
  }
  return all;
}

Editable without_sla(const Editable& model) {
  Editable base(*model.checkpoint());
  base.set({{"sla", nullptr}});
  return base;
}

/// A family's small config with gates over heads; heads of 16 channels where the config says their size.
json gated_config(const std::string& family, const json& gates = json::object(), const json& changes = json::object()) {
  json config = small_config(family, with(sla(gates), changes));
  if (family == "gated_deltanet") config["head_dim"] = 16;
  return config;
}

}  // namespace

TEST_CASE("SLA: gates over heads from x, from all heads, or per head, at either stage and any temperature") {
  for (const char* input : {"x", "q_concat", "q_per_head"}) {
    for (const char* stage : {"proj", "phi"}) {
      for (double temperature : {1.0, 3.0}) {
        INFO(input << ", " << stage << ", λ = " << temperature);
        Editable model(
            with(gla_sla({{"gate_input", input}, {"gate_stage", stage}, {"temperature", temperature}}), {{"feature_map", "relu"}}));
        MixerRig rig(model);
        const std::vector<float> x = rig.some_input(kTokens);
        const Pass pass = rig.read(x);
        for (std::int64_t t = 0; t < kTokens; ++t) {
          const std::vector<double> x_t(x.begin() + t * 64, x.begin() + (t + 1) * 64);
          const std::vector<double> G = expected_gate(model, input, x_t, std::string(stage) == "phi", temperature);
          for (std::size_t h = 0; h < 4; ++h) CHECK(pass["head_gate_q"].row(t)[h] == Approx(G[h]).epsilon(1e-4));
        }
      }
    }
  }
}

TEST_CASE("SLA: where the config is silent the weight's shape says what the gates see") {
  for (const char* input : {"x", "q_per_head"}) {
    const Editable named(gla_sla({{"gate_input", input}}));
    Editable silent(*named.checkpoint());
    silent.set({{"sla", {{"enabled", true}}}});
    MixerRig a(named), b(silent);
    const std::vector<float> x = a.some_input(kTokens);
    CHECK(changed(a.read(x), b.read(x)).empty());
  }
}

TEST_CASE("SLA: zero gate weights make gates of exactly 1/H, and the base mixer scaled by them (spec §16.8)") {
  for (const char* family : {"retnet", "gla", "gated_deltanet"}) {
    INFO(family);
    const bool delta_rule = std::string(family) == "gated_deltanet";
    Editable model(gated_config(family));
    model.fill("sla_q_gate.weight", 0).fill("sla_k_gate.weight", 0);
    MixerRig rig(model), base(without_sla(model));
    const std::vector<float> x = rig.some_input(kTokens);
    const Pass gated = rig.read(x);
    Pass plain = base.read(x);
    for (const char* gate : {"head_gate_q", "head_gate_k"}) {
      for (float g : gated[gate].floats) CHECK(g == 0.25F);
    }
    // A quarter is exact in binary: what is scaled, is scaled to the bit.
    for (const char* name : {"q", delta_rule ? "v" : "k"}) {
      for (float& value : plain.channels[name].floats) value *= 0.25F;
      CHECK(gated[name].floats == plain[name].floats);
    }
    CHECK(gated[delta_rule ? "k" : "v"].floats == plain[delta_rule ? "k" : "v"].floats);
    std::vector<float> expected = values_of(plain.state.memory[0]);
    for (float& value : expected) value *= 0.25F;
    CHECK(difference(values_of(gated.state.memory[0]), expected) < 1e-6);
  }
}

TEST_CASE("SLA: a read gate after the norm leaves q alone and sets the size of each head") {
  for (const char* family : {"retnet", "gla", "gated_deltanet"}) {
    INFO(family);
    const char* gate = std::string(family) == "gated_deltanet" ? "use_gate" : "use_output_gate";
    Editable model(gated_config(family, {{"read_gate_position", "post_norm"}}, {{gate, false}, {"norm_eps", 1e-14}}));
    model.fill(std::string(family) == "gated_deltanet" ? "o_norm.weight" : "g_norm.weight", 1);
    MixerRig rig(model), base(without_sla(model));
    const std::vector<float> x = rig.some_input(kTokens);
    const Pass pass = rig.read(x);
    CHECK(pass["q"].floats == base.read(x)["q"].floats);
    for (std::int64_t t = 0; t < kTokens; ++t) {
      const std::span<const float> readout = pass["readout"].row(t);
      const std::size_t V = readout.size() / 4;
      for (std::size_t h = 0; h < 4; ++h) {
        double squares = 0;
        for (float value : readout.subspan(h * V, V)) squares += static_cast<double>(value) * value;
        CHECK(std::sqrt(squares / static_cast<double>(V)) == Approx(pass["head_gate_q"].row(t)[h]).epsilon(1e-4));
      }
    }
  }
}

TEST_CASE("SLA: how far the read gate changes the output, by the equations in double precision (spec §6, A13)") {
  for (const char* family : {"retnet", "gla", "gated_deltanet"}) {
    for (const bool post_norm : {false, true}) {
      INFO(family << (post_norm ? ", behind the norm" : ", on q"));
      Editable model(gated_config(family, {{"read_gate_position", post_norm ? "post_norm" : "q"}}));
      MixerRig rig(model);
      const std::vector<float> x = rig.some_input(kTokens);
      const Pass pass = rig.read(x);
      const auto one = [](std::int64_t, std::size_t) { return 1.0; };
      const auto G = [&](std::int64_t t, std::size_t h) -> double { return pass["head_gate_q"].row(t)[h]; };
      const auto inverse = [&](std::int64_t t, std::size_t h) { return 1 / G(t, h); };
      const auto own = post_norm ? outputs(model, pass, x, one, G) : outputs(model, pass, x, one, one);
      const auto with_one = post_norm ? outputs(model, pass, x, one, one) : outputs(model, pass, x, inverse, one);
      for (std::size_t t = 0; t < own.size(); ++t) {
        double change = 0, size = 0;
        for (std::size_t i = 0; i < own[t].size(); ++i) {
          change += std::pow(with_one[t][i] - own[t][i], 2);
          size += std::pow(own[t][i], 2);
        }
        CHECK(pass["read_gate_effective"].row(static_cast<std::int64_t>(t))[0] ==
              Approx(std::sqrt(change / size)).margin(1e-5).epsilon(1e-4));
      }
    }
  }
}

TEST_CASE("SLA: equal gates behind the norm change the output threefold; before it nothing is left of them") {
  for (const char* position : {"q", "post_norm"}) {
    Editable model(small_config("gla", with(sla({{"read_gate_position", position}}), {{"norm_eps", 1e-14}})));
    model.fill("sla_q_gate.weight", 0);
    MixerRig rig(model);
    // G^Q = 1/4: y₁ = 4 y, or, divided by the norm again, y
    const double expected = std::string(position) == "q" ? 0 : 3;
    const Pass pass = rig.read(rig.some_input(kTokens));
    for (const float effect : pass["read_gate_effective"].floats) CHECK(effect == Approx(expected).margin(1e-5));
  }
}

TEST_CASE("mean output gate: over each head's channels (spec §12.10)") {
  Editable model(small_config("gla"));
  MixerRig rig(model);
  const std::vector<float> x = rig.some_input(kTokens);
  const Pass pass = rig.read(x);
  REQUIRE(pass["output_gate"].shape.row_size() == 4);
  for (std::int64_t t = 0; t < kTokens; ++t) {
    const std::vector<double> g =
        times(model.floats("model.layers.0.attn.g_proj.weight"), std::vector<double>(x.begin() + t * 64, x.begin() + (t + 1) * 64));
    for (std::size_t h = 0; h < 4; ++h) {
      double mean = 0;
      for (std::size_t c = h * 16; c < (h + 1) * 16; ++c) mean += g[c] / (1 + std::exp(-g[c])) / 16;
      CHECK(pass["output_gate"].row(t)[h] == Approx(mean).margin(1e-6));
    }
  }
}

TEST_CASE("SLA on Gated DeltaNet: gates before the convolution or after it, with decay or literally without") {
  const Editable model(small_config("gated_deltanet", with(sla(), {{"head_dim", 16}, {"num_v_heads", 8}})));
  Editable literal(*model.checkpoint()), late(*model.checkpoint());
  literal.set(sla({{"gdn_decay", false}}));
  late.set(sla({{"gate_stage", "phi"}}));
  MixerRig a(model), b(literal), c(late);
  const std::vector<float> x = a.some_input(kTokens);
  const Pass base = a.read(x), undecayed = b.read(x);
  CHECK(changed(base, undecayed) == std::set<std::string>{"log_decay", "read_gate_effective", "readout", "state", "y"});
  for (float log_decay : undecayed["log_decay"].floats) CHECK(log_decay == 0);
  CHECK(changed(base, c.read(x)) ==
        std::set<std::string>{"head_gate_k", "head_gate_q", "q", "read_gate_effective", "readout", "state", "v", "y"});
}

}  // namespace statescope::test::sla_test

// Softmax linear attention on RetNet, GLA and Gated DeltaNet (spec §6): the gates by hand, and what each switch does.
#include "tests/mixers/mixer_rig.h"

namespace statescope::test {
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

Editable without_sla(const Editable& model) {
  Editable base(*model.checkpoint());
  base.set({{"sla", nullptr}});
  return base;
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
    Editable model(small_config(family, with(sla(), {{"head_dim", 16}})));
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
    Editable model(small_config(family, with(sla({{"read_gate_position", "post_norm"}}),
                                             {{"head_dim", 16}, {"use_output_gate", false}, {"use_gate", false}, {"norm_eps", 1e-14}})));
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

TEST_CASE("SLA on Gated DeltaNet: gates before the convolution or after it, with decay or literally without") {
  const Editable model(small_config("gated_deltanet", with(sla(), {{"head_dim", 16}, {"num_v_heads", 8}})));
  Editable literal(*model.checkpoint()), late(*model.checkpoint());
  literal.set(sla({{"gdn_decay", false}}));
  late.set(sla({{"gate_stage", "phi"}}));
  MixerRig a(model), b(literal), c(late);
  const std::vector<float> x = a.some_input(kTokens);
  const Pass base = a.read(x), undecayed = b.read(x);
  CHECK(changed(base, undecayed) == std::set<std::string>{"log_decay", "readout", "state", "y"});
  for (float log_decay : undecayed["log_decay"].floats) CHECK(log_decay == 0);
  CHECK(changed(base, c.read(x)) == std::set<std::string>{"head_gate_k", "head_gate_q", "q", "readout", "state", "v", "y"});
}

}  // namespace statescope::test

// Decay, head gates and the delta rule of a run, against their definitions written out in double precision, in every family.
#include <cmath>
#include <limits>
#include <set>

#include "engine/answers/answers.h"
#include "engine/answers/own_values.h"
#include "engine/error.h"
#include "tests/catch.h"
#include "tests/engine/analysis/evidence_of.h"

namespace statescope::test::answers_gates_test {
namespace {

constexpr std::int64_t kTokens = 37;

/// Channels of log α that a head has: of a selective scan its states.
std::int64_t decay_width(const MemoryTrace& trace) { return trace.of_cells() ? trace.K : trace.decay_width; }

/// log α of a channel at every token of the run: 0 where the token does not visit the slot; of a selective scan the mean of a row.
std::vector<double> log_alpha(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t channel) {
  const SlotVisits& visits = trace.slots[static_cast<std::size_t>(slot)];
  std::vector<double> result(kTokens);
  for (std::int64_t i = 0; i < visits.count(); ++i) {
    double& log_decay = result[static_cast<std::size_t>(visits.token[static_cast<std::size_t>(i)])];
    const std::int64_t at = (i * trace.H + head) * trace.decay_width + channel;
    if (!trace.of_cells()) log_decay += visits.log_decay[static_cast<std::size_t>(at)];
    for (std::int64_t c = 0; trace.of_cells() && c < trace.V; ++c)
      log_decay += trace.log_decay_of_cell(visits, i, head, channel, c) / static_cast<double>(trace.V);
  }
  return result;
}

/// Of one channel, from Δ_{t,s} as the product of all α after s.
struct Measured {
  double half_life = 0, width = 0;
  std::int64_t censored = 0;
};
Measured measured(const std::vector<double>& log_alpha) {
  double sum = 0;
  Measured result;
  for (std::int64_t t = 0; t < kTokens; ++t) {
    sum += log_alpha[static_cast<std::size_t>(t)];
    double left = 1;
    std::int64_t s = t;
    for (; s > 0; --s) {
      left *= std::exp(log_alpha[static_cast<std::size_t>(s)]);
      if (left < 0.001) break;
    }
    result.width += static_cast<double>(t - s) / kTokens;
    result.censored += s == 0;
  }
  result.half_life = sum == 0 ? std::numeric_limits<double>::infinity() : std::log(2.0) * kTokens / -sum;
  return result;
}

void check_decay(Evidence& evidence, std::int64_t layer, const MemoryTrace& trace, std::int64_t slot, std::int64_t head) {
  const Decay decay = answer(DecayQuestion{layer, slot, head, 5, 30}, evidence);
  const bool heads = decay.axis == Decay::Axis::heads;
  REQUIRE(decay.channels == (decay_width(trace) == 1 ? trace.H : decay_width(trace)));
  CHECK(decay.measured == kTokens);
  REQUIRE(static_cast<std::int64_t>(decay.log_sum.size()) == std::ssize(decay.token) * decay.channels);
  for (const std::int32_t token : decay.token) CHECK((token >= 5 && token < 30));
  for (std::int64_t c = 0; c < decay.channels; ++c) {
    const std::vector<double> alpha = heads ? log_alpha(trace, slot, c, 0) : log_alpha(trace, slot, head, c);
    const Measured expected = measured(alpha);
    const auto i = static_cast<std::size_t>(c);
    if (std::isinf(expected.half_life)) {
      CHECK(std::isinf(decay.half_life[i]));
    } else {
      CHECK(decay.half_life[i] == Approx(expected.half_life));
    }
    CHECK(decay.width[i] == Approx(expected.width));
    CHECK(decay.censored[i] == expected.censored);
    for (std::size_t t = 0; t < decay.token.size(); t += 7) {
      for (std::size_t s = 0; s <= t; s += 3) {
        double left = 1;  // Δ_{t,s} = Π_{j = s+1 … t} α_j
        for (std::int32_t j = decay.token[s] + 1; j <= decay.token[t]; ++j) left *= std::exp(alpha[static_cast<std::size_t>(j)]);
        const auto at = [&](std::size_t visit) { return decay.log_sum[visit * static_cast<std::size_t>(decay.channels) + i]; };
        CHECK(std::exp(at(t) - at(s)) == Approx(left));
      }
    }
  }
}

}  // namespace

TEST_CASE("answers: decay of every slot is what its definition says, in every family") {
  std::set<Decay::Axis> seen;
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    SmallEvidence run(small.config, kTokens);
    for (std::int64_t layer = 0; layer < run.model->layers(); ++layer) {
      const std::vector<MemoryTrace>& traces = run.evidence.traces(layer);
      if (traces.empty() && run.evidence.layer(layer).has_state()) continue;  // not by visits
      if (traces.empty() || decay_width(traces[0]) == 0) {
        const Decay decay = answer(DecayQuestion{layer, 0, 0, 0, kTokens}, run.evidence);
        CHECK(decay.axis == Decay::Axis::none);
        CHECK(decay.token.empty());
        continue;
      }
      for (std::int64_t slot = 0; slot < std::ssize(traces[0].slots); slot += 2)
        check_decay(run.evidence, layer, traces[0], slot, traces[0].H - 1);
      const Decay decay = answer(DecayQuestion{layer, 0, 0, 0, kTokens}, run.evidence);
      seen.insert(decay.axis);
      if (decay.axis == Decay::Axis::rows) CHECK(decay.channels == run.evidence.layer(layer).rows);  // GSA: of the state that is shown
    }
  }
  CHECK(seen.contains(Decay::Axis::heads));
  CHECK(seen.contains(Decay::Axis::rows));
  CHECK(!seen.contains(Decay::Axis::columns));
}

TEST_CASE("answers: head gates are the softmax that the layer used; λ = 1 changes nothing") {
  int layers = 0;
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    SmallEvidence run(small.config, kTokens);
    for (std::int64_t layer = 0; layer < run.model->layers(); ++layer) {
      const HeadContest contest = answer(HeadGatesQuestion{layer}, run.evidence);
      const bool has_gates = small.name.find("sla") != std::string::npos;
      CHECK((contest.heads > 0) == has_gates);
      if (!has_gates) {
        CHECK(answer(SharpenedGatesQuestion{layer, 0, kTokens, 2}, run.evidence).flow.empty());
        continue;
      }
      ++layers;
      const auto H = static_cast<std::size_t>(contest.heads);
      REQUIRE(contest.gate_q.size() == H * kTokens);
      const SharpenedGates same = answer(SharpenedGatesQuestion{layer, 3, 20, 1}, run.evidence);
      const SharpenedGates sharp = answer(SharpenedGatesQuestion{layer, 3, 20, 4}, run.evidence);
      for (std::size_t t = 0; t < kTokens; ++t) {
        double sum = 0, entropy = 0, flow = 0;
        for (std::size_t h = 0; h < H; ++h) {
          const double q = contest.gate_q[t * H + h];
          sum += q;
          entropy -= q * std::log(q) / std::log(static_cast<double>(H));
          flow += q * contest.gate_k[t * H + h];
          CHECK(contest.gate_q[t * H + static_cast<std::size_t>(contest.winner_q[t])] >= static_cast<float>(q));
        }
        CHECK(sum == Approx(1));
        CHECK(contest.entropy_q[t] == Approx(entropy));
        CHECK(contest.flow[t] == Approx(flow));
        if (t < 3 || t >= 20) continue;
        const std::size_t i = t - 3;
        double power = 0;  // Σ_h G_h⁴
        for (std::size_t h = 0; h < H; ++h) power += std::pow(double{contest.gate_k[t * H + h]}, 4);
        for (std::size_t h = 0; h < H; ++h) {
          CHECK(same.gate_q[i * H + h] == Approx(contest.gate_q[t * H + h]));
          CHECK(sharp.gate_k[i * H + h] == Approx(std::pow(double{contest.gate_k[t * H + h]}, 4) / power));
        }
        CHECK(same.flow[i * 17 + i] == Approx(contest.flow[t]));
        CHECK(sharp.flow[i * 17 + i] == Approx(same.curve_flow[i * same.lambda.size() + 4]));
        CHECK(sharp.entropy_q[i] <= same.entropy_q[i] + 1e-6F);
      }
    }
  }
  CHECK(layers >= 10);
}

// S_t = diag(w) S_{t−1} − (κ̂ ⊙ a)ᵀ (κ̂ S_{t−1}) + kᵀ v     (spec §17.10)
TEST_CASE("answers: what RWKV-7 reads, takes away and writes, from its channels by hand") {
  int layers = 0;
  for (const SmallModel& small : small_models()) {
    SmallEvidence run(small.config, kTokens);
    for (std::int64_t layer = 0; layer < run.model->layers(); ++layer) {
      const ChannelRows* erase_key = run.evidence.channel(layer, "erase_key");
      if (!erase_key) continue;
      INFO(small.name << ", layer " << layer);
      ++layers;
      const std::int64_t H = erase_key->shape[0], K = erase_key->shape[1], head = H - 1;
      const std::int64_t V = run.evidence.channel(layer, "v")->shape[1];
      const DeltaRule rule = answer(DeltaRuleQuestion{layer, 0, head}, run.evidence);
      REQUIRE(rule.two_keys);
      REQUIRE(std::ssize(rule.token) == kTokens);
      std::vector<double> S(static_cast<std::size_t>(K * V));
      for (std::int64_t t = 0; t < kTokens; ++t) {
        const auto of = [&](const char* name, std::int64_t width) {
          return run.evidence.channel(layer, name)->values.data() + (t * H + head) * width;
        };
        const float *p = of("erase_key", K), *a = of("erase_rate", K), *k = of("k", K), *log_w = of("log_decay", K), *v = of("v", V);
        std::vector<double> read(static_cast<std::size_t>(V)), before = S;
        double taken = 0, kept = 0, put = 0;
        for (std::int64_t r = 0; r < K; ++r) {
          taken += double{p[r]} * p[r] * a[r];
          kept += double{p[r]} * p[r] * std::exp(double{log_w[r]});
          put += double{p[r]} * k[r];
          for (std::int64_t c = 0; c < V; ++c) read[static_cast<std::size_t>(c)] += p[r] * S[static_cast<std::size_t>(r * V + c)];
        }
        double erased = 0, written = 0, both = 0, prediction = 0, value = 0, error = 0, inner = 0;
        for (std::int64_t c = 0; c < V; ++c) {
          const double pi = read[static_cast<std::size_t>(c)];
          prediction += pi * pi;
          value += double{v[c]} * v[c];
          error += (v[c] - pi) * (v[c] - pi);
          inner += v[c] * pi;
          for (std::int64_t r = 0; r < K; ++r) {
            const double out = double{p[r]} * a[r] * pi, in = double{k[r]} * v[c];
            erased += out * out;
            written += in * in;
            both += (in - out) * (in - out);
            S[static_cast<std::size_t>(r * V + c)] = std::exp(double{log_w[r]}) * before[static_cast<std::size_t>(r * V + c)] - out + in;
          }
        }
        const auto at = static_cast<std::size_t>(t);
        CHECK(rule.token[at] == t);
        CHECK(rule.prediction[at] == Approx(std::sqrt(prediction)).epsilon(1e-4).margin(1e-6));
        CHECK(rule.value[at] == Approx(std::sqrt(value)).epsilon(1e-4).margin(1e-6));
        CHECK(rule.error[at] == Approx(std::sqrt(error)).epsilon(1e-4).margin(1e-6));
        CHECK(rule.erase[at] == Approx(std::sqrt(erased)).epsilon(1e-4).margin(1e-6));
        CHECK(rule.write[at] == Approx(std::sqrt(written)).epsilon(1e-4).margin(1e-6));
        CHECK(rule.update[at] == Approx(std::sqrt(both)).epsilon(1e-3).margin(1e-6));
        if (prediction > 1e-12) CHECK(rule.cosine[at] == Approx(inner / std::sqrt(prediction * value)).epsilon(1e-3).margin(1e-4));
        CHECK(rule.beta[at] == Approx(taken).epsilon(1e-4));
        CHECK(rule.mended[at] == rule.beta[at]);
        CHECK(rule.put[at] == Approx(put).epsilon(1e-3).margin(1e-5));
        CHECK(rule.along_key[at] == Approx(kept - taken).epsilon(1e-3).margin(1e-5));
      }
    }
  }
  CHECK(layers >= 4);
}

TEST_CASE("answers: the delta rule at every visit, from a state carried along in double precision") {
  int memories = 0, several = 0;
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    SmallEvidence run(small.config, kTokens);
    for (std::int64_t layer = 0; layer < run.model->layers(); ++layer) {
      const std::vector<MemoryTrace>& traces = run.evidence.traces(layer);
      if (!traces.empty() && traces[0].rule == MemoryRule::two_keys) continue;  // below
      if (traces.empty() || traces[0].rule != MemoryRule::delta) {
        CHECK(answer(DeltaRuleQuestion{.layer = layer}, run.evidence).token.empty());
        continue;
      }
      const MemoryTrace& trace = traces[0];
      ++memories;
      several += trace.steps > 1;
      const std::int64_t head = trace.H - 1, slot = std::ssize(trace.slots) - 1, K = trace.K, V = trace.V;
      const SlotVisits& visits = trace.slots[static_cast<std::size_t>(slot)];
      const DeltaRule rule = answer(DeltaRuleQuestion{layer, slot, head}, run.evidence);
      REQUIRE(rule.token == visits.token);
      CHECK(rule.steps == trace.steps);
      CHECK((!rule.two_keys && rule.put.empty()));
      const std::vector<float> ratios =
          undecayed_ratio(layer, head, trace, run.evidence);  // Comba's trace has α/c of v and of what is read
      std::vector<double> S(static_cast<std::size_t>(K * V));
      for (std::int64_t i = 0; i < visits.count(); ++i) {
        const std::int64_t row = i * trace.H + head;
        const float *k = visits.k.data() + row * K, *v = visits.v.data() + row * V;
        const double beta = visits.beta[static_cast<std::size_t>(row)];
        double k2 = 0, along = 0, erased = 0, error = 0;
        for (std::int64_t r = 0; r < K; ++r) k2 += double{k[r]} * k[r];
        for (std::int64_t r = 0; r < K; ++r) {
          const std::int64_t of_row = row * trace.decay_width + (trace.decay_width == 1 ? 0 : r);
          const double a = trace.decay_width == 0 ? 1 : std::exp(double{visits.log_decay[static_cast<std::size_t>(of_row)]});
          along += a * k[r] * k[r] / k2;
          for (std::int64_t c = 0; c < V; ++c) S[static_cast<std::size_t>(r * V + c)] *= a;
        }
        std::vector<double> prediction(static_cast<std::size_t>(V));
        for (std::int64_t c = 0; c < V; ++c) {
          double& p = prediction[static_cast<std::size_t>(c)];
          for (std::int64_t r = 0; r < K; ++r) p += k[r] * S[static_cast<std::size_t>(r * V + c)];
          erased += p * p;
          error += std::pow(v[c] - p, 2);
        }
        for (std::int64_t r = 0; r < K; ++r) {
          for (std::int64_t c = 0; c < V; ++c)
            S[static_cast<std::size_t>(r * V + c)] += beta * k[r] * (v[c] - prediction[static_cast<std::size_t>(c)]);
        }
        const auto at = static_cast<std::size_t>(i);
        const double ratio = ratios.empty() ? 1 : ratios[static_cast<std::size_t>(visits.token[at])];
        CHECK(rule.prediction[at] * ratio == Approx(std::sqrt(erased)).margin(1e-6));
        CHECK(rule.error[at] * ratio == Approx(std::sqrt(error)).margin(1e-6));
        CHECK(rule.erase[at] == Approx(beta * std::sqrt(k2 * erased)).margin(1e-6));
        CHECK(rule.update[at] == Approx(beta * std::sqrt(k2 * error)).margin(1e-6));
        CHECK(rule.mended[at] == Approx(beta * ratio * k2).margin(1e-6));
        if (k2 > 0) CHECK(rule.alpha[at] == Approx(along));
        CHECK(rule.along_key[at] == Approx(rule.alpha[at] * (1 - beta * k2)).margin(1e-6));
      }
    }
  }
  CHECK(memories >= 8);
  CHECK(several >= 2);
}

TEST_CASE("answers: what is not there is refused in a line, and work can be cancelled") {
  SmallEvidence run(small_config("gated_deltanet", {{"head_dim", 16}}), kTokens);
  CHECK_THROWS_AS(answer(DecayQuestion{7, 0, 0, 0, 5}, run.evidence), Error);
  CHECK_THROWS_AS(answer(DecayQuestion{0, 9, 0, 0, 5}, run.evidence), Error);
  CHECK_THROWS_AS(answer(DecayQuestion{0, 0, 0, 0, 513}, run.evidence), Error);
  CHECK_THROWS_AS(answer(DeltaRuleQuestion{0, 0, 99}, run.evidence), Error);
  run.evidence.set_progress([](double) { return false; });
  CHECK_THROWS_AS(answer(DeltaRuleQuestion{}, run.evidence), Error);
}

}  // namespace statescope::test::answers_gates_test

// What can be asked of a layer by name, in every family: that all of it has a source, and where tokens go and how long it lasts, against
// the definitions in double precision.
#include <set>

#include "engine/error.h"
#include "tests/engine/analysis/hippo.h"
#include "tests/engine/answers/observables_asked.h"

namespace statescope::test::observables_of_runs {

TEST_CASE("observables by name: each has an equation with its source, a unit and says how exact it is; each is found in some family") {
  std::set<std::string> known, found;
  for (const ObservableGroup& group : observable_groups()) {
    for (const ObservableRow& row : group.rows) {
      INFO(row.name);
      CHECK(known.insert(std::string(row.name)).second);
      CHECK((!row.unit.empty() && !row.equation.empty() && !row.accuracy.text().empty()));
    }
  }
  std::set<std::string> mixers;
  const auto look = [&](Evidence& evidence, const Asked& asked, std::int64_t l) {
    mixers.insert(evidence.layer(l).mixer);
    for (const Observables::Quantity& quantity : asked.all().quantities) {
      INFO(quantity.name);
      const std::int64_t each = std::accumulate(quantity.shape.begin(), quantity.shape.end(), std::int64_t{1}, std::multiplies{});
      CHECK(std::ssize(quantity.values) == kTokens * each);
      CHECK(std::ssize(quantity.shape) == std::ranges::count(quantity.axes, ',') + (quantity.axes.empty() ? 0 : 1));
      if (std::ranges::any_of(quantity.values, [](float value) { return !std::isnan(value); })) found.insert(quantity.name);
    }
  };
  in_every_layer(look);
  SmallEvidence hippo(hippo_model().checkpoint(), kTokens);
  look(hippo.evidence, Asked(hippo.evidence, 1, 0, kTokens), 1);
  CHECK(found == known);
  for (const MixerRow& row : mixer_table()) CHECK(mixers.contains(std::string(row.name)));
}

TEST_CASE("observables by name: a token has the same numbers alone and among others; what was not asked for is left out") {
  for (const json& config : {sse_config("gdn", {{"num_writer", 2}, {"num_reader", 3}}), small_config("mom", {{"head_dim", 16}}),
                             small_config("gla", sla()), small_config("gsa", {{"num_slots", 12}})}) {
    SmallEvidence run(config, kTokens);
    const Asked all(run.evidence, 1, 0, kTokens);
    for (const std::int64_t token : {std::int64_t{0}, std::int64_t{19}, kTokens - 1}) {
      const Asked one(run.evidence, 1, token, token + 1);
      REQUIRE(one.all().quantities.size() == all.all().quantities.size());
      for (const Observables::Quantity& quantity : one.all().quantities) {
        INFO(quantity.name << " at " << token);
        CHECK(std::ranges::equal(quantity.values, all.at(quantity.name, token), [](float a, float b) { return same(a, b, 1e-6); }));
      }
    }
    const Observables two = answer(ObservablesQuestion{1, 3, 5, {"state_norm", "residual_norm"}}, run.evidence);
    REQUIRE(two.quantities.size() == 2);
    CHECK((two.quantities[0].name == "state_norm" && two.quantities[1].name == "residual_norm"));
  }
  SmallEvidence gla(small_config("gla"), kTokens);
  CHECK_THROWS_AS(answer(ObservablesQuestion{9, 0, 1, {}}, gla.evidence), Error);
  CHECK_THROWS_AS(answer(ObservablesQuestion{0, 5, 5, {}}, gla.evidence), Error);
  CHECK_THROWS_AS(answer(ObservablesQuestion{0, 0, kTokens + 1, {}}, gla.evidence), Error);
  CHECK_THROWS_WITH(answer(ObservablesQuestion{0, 0, 1, {}, kTokens}, gla.evidence), "there is no token 33 (tokens are 0 to 32)");
  CHECK_THROWS_WITH(answer(ObservablesQuestion{0, 0, 1, {"loudness"}}, gla.evidence),
                    Catch::Matchers::StartsWith("there is no quantity \"loudness\"; there are partition_gate, "));
}

TEST_CASE("observables by name: routing and its balance, from e and the chosen partitions of every token") {
  int layers = 0;
  in_every_layer([&](Evidence& evidence, const Asked& asked, std::int64_t l) {
    const ChannelRows *gate = evidence.channel(l, "partition_gate"), *selected = evidence.channel(l, "partition_selected");
    REQUIRE((gate != nullptr) == asked.has("routing_entropy"));
    if (!gate) return;
    ++layers;
    const std::int64_t N = gate->shape.front(), W = evidence.model().layout(l).writers;
    std::vector<double> f(static_cast<std::size_t>(N)), p(f), f_now(f), p_now(f);
    double weight = 0;
    for (std::int64_t t = 0; t < kTokens; ++t) {
      const std::span<const float> e = row_of(*gate, t);
      std::vector<double> sorted(e.begin(), e.end()), written(e.size());
      std::ranges::sort(sorted, std::ranges::greater{});
      double mass = 0, entropy = 0, loss = 0, loss_now = 0;
      for (std::int64_t w = 0; w < W; ++w) {
        const auto n = static_cast<std::size_t>(row_of(*selected, t)[static_cast<std::size_t>(w)]);
        written[n] = 1;
        mass += e[n];
      }
      weight = 0.99 * weight + 1;
      for (std::size_t n = 0; n < e.size(); ++n) {
        entropy -= e[n] > 0 ? e[n] * std::log(double{e[n]}) / std::log(static_cast<double>(N)) : 0;
        f[n] += written[n];
        p[n] += e[n];
        f_now[n] = 0.99 * f_now[n] + written[n];
        p_now[n] = 0.99 * p_now[n] + e[n];
        const double so_far = static_cast<double>(t + 1), even = static_cast<double>(N) / static_cast<double>(W);
        loss += even * f[n] / so_far * p[n] / so_far;
        loss_now += even * f_now[n] / weight * p_now[n] / weight;
        CHECK(asked.number("partition_gate", t, n) == e[n]);
        CHECK(same(asked.number("selected_weights", t, n), written[n] * e[n] / mass));
        CHECK(same(asked.number("frequency", t, n), f[n] / so_far));
        CHECK(same(asked.number("probability", t, n), p[n] / so_far));
        CHECK(same(asked.number("load", t, n), f[n] / so_far * even));
        CHECK(same(asked.number("frequency_now", t, n), f_now[n] / weight));
        CHECK(same(asked.number("probability_now", t, n), p_now[n] / weight));
      }
      CHECK(same(asked.number("selected_mass", t), mass));
      CHECK(same(asked.number("routing_entropy", t), entropy));
      CHECK(same(asked.number("routing_margin", t),
                 W < N ? sorted[static_cast<std::size_t>(W - 1)] - sorted[static_cast<std::size_t>(W)] : NAN));
      CHECK(same(asked.number("balance_loss", t), loss));
      CHECK(same(asked.number("balance_loss_now", t), loss_now));
      CHECK(asked.has("mom_loss") == (evidence.layer(l).mixer == "mom"));
    }
  });
  CHECK(layers > 20);
}

TEST_CASE("observables by name: MoM's loss is over the tokens of all its layers") {
  SmallEvidence run(small_config("mom", {{"head_dim", 16}}), kTokens);
  const Asked first(run.evidence, 0, 0, kTokens), second(run.evidence, 1, 0, kTokens);
  for (const std::int64_t t : {std::int64_t{0}, kTokens - 1}) {
    double loss = 0;
    const std::size_t N = first.at("frequency", t).size();
    for (std::size_t n = 0; n < N; ++n)
      loss += static_cast<double>(N) * (first.number("frequency", t, n) + second.number("frequency", t, n)) / 2 *
              (first.number("probability", t, n) + second.number("probability", t, n)) / 2;
    CHECK(same(first.number("mom_loss", t), loss));
    CHECK(first.number("mom_loss", t) == second.number("mom_loss", t));
  }
}

TEST_CASE("observables by name: half-life and receptive field follow from the decay of every token, in every family") {
  int layers = 0;
  in_every_layer([&](Evidence&, const Asked& asked, std::int64_t) {
    if (!asked.has("decay")) return;
    ++layers;
    const std::vector<std::int64_t>& shape = asked["decay"].shape;
    const auto channels = static_cast<std::size_t>(shape[0] * shape[1] * shape[2]);
    for (const std::int64_t t : {std::int64_t{0}, std::int64_t{5}, kTokens - 1}) {
      for (std::size_t c = 0; c < channels; c += 7) {
        double log_sum = 0;
        for (std::int64_t j = 0; j <= t; ++j) log_sum += std::log(asked.number("decay", j, c));
        CHECK(std::isnan(asked.number("decay_since", t, c)) == (t < 3));
        double since = 1;  // from token 3 on
        for (std::int64_t j = 4; j <= t; ++j) since *= asked.number("decay", j, c);
        if (t >= 3) CHECK(same(asked.number("decay_since", t, c), since));
        const double half = std::log(2.0) / std::abs(log_sum / static_cast<double>(t + 1));
        CHECK(same(asked.number("half_life", t, c), half, half > 1e5 ? 0.2 : 2e-3));  // α is kept in float32
        double widths = 0;
        for (std::int64_t u = 0; u <= t; ++u) {  // fewer than 128 tokens: all of them
          double left = 1;
          std::int64_t s = u;
          while (s > 0 && (left *= asked.number("decay", s, c)) >= 0.001) --s;
          widths += static_cast<double>(u - s);
        }
        CHECK(same(asked.number("receptive_field", t, c), widths / static_cast<double>(t + 1)));
      }
    }
  });
  CHECK(layers > 50);
}

TEST_CASE("observables by name: the summed receptive field, as SSE Def. 4 stands") {
  for (const json& config : {small_config("gla"), small_config("retnet"), sse_config("gla")}) {
    SmallEvidence run(config, kTokens);
    const Asked asked(run.evidence, 0, 0, kTokens);
    const std::vector<std::int64_t>& shape = asked["decay"].shape;
    const std::int64_t each = shape[2], rows = each == 1 ? run.evidence.layer(0).rows : 1;
    for (std::int64_t place = 0; place < shape[0] * shape[1]; ++place) {
      double widths = 0;
      for (std::int64_t u = 0; u < kTokens; ++u) {
        std::vector<double> left(static_cast<std::size_t>(each), 1);
        std::int64_t s = u;
        for (; s > 0; --s) {
          double sum = 0;
          for (std::int64_t c = 0; c < each; ++c)
            sum += left[static_cast<std::size_t>(c)] *= asked.number("decay", s, static_cast<std::size_t>(place * each + c));
          if (static_cast<double>(rows) * sum < 0.001) break;
        }
        widths += static_cast<double>(u - s);
      }
      CHECK(same(asked.number("receptive_field_summed", kTokens - 1, static_cast<std::size_t>(place)), widths / kTokens));
    }
  }
}

TEST_CASE("observables by name: head gates, the delta rule and the output gate are the answers' and the channels'") {
  in_every_layer([&](Evidence& evidence, const Asked& asked, std::int64_t l) {
    const HeadContest contest = answer(HeadGatesQuestion{l}, evidence);
    REQUIRE((contest.heads > 0) == asked.has("head_gate_q"));
    const std::int64_t t = 21;
    const auto at = static_cast<std::size_t>(t);
    if (contest.heads > 0) {
      CHECK(asked.number("gate_entropy_q", t) == contest.entropy_q[at]);
      CHECK(asked.number("gate_winner_k", t) == contest.winner_k[at]);
      CHECK(asked.number("gate_margin_q", t) == contest.margin_q[at]);
      CHECK(asked.number("information_flow", t) == contest.flow[at]);
      CHECK(asked.number("read_gate_effective", t) == contest.read_gate_effective[at]);
      const SharpenedGates sharp = answer(SharpenedGatesQuestion{l, t, t + 1}, evidence);
      CHECK(std::ranges::equal(asked.at("gate_entropy_k_sharpened", t), sharp.curve_k));
      CHECK(std::ranges::equal(asked.at("information_flow_sharpened", t), sharp.curve_flow));
    }
    if (const ChannelRows* gate = evidence.channel(l, "output_gate")) {
      CHECK(std::ranges::equal(asked.at("output_gate", t), row_of(*gate, t)));
    } else {
      CHECK_FALSE(asked.has("output_gate"));
    }
    const MemoryTrace* trace = evidence.trace(l);
    REQUIRE(asked.has("erased") == (trace && trace->rule != MemoryRule::outer_product && trace->steps == 1));
    if (!asked.has("erased")) return;
    const DeltaRule rule = answer(DeltaRuleQuestion{l, 0, 1}, evidence);
    const auto visit = std::ranges::find(rule.token, t);
    if (visit == rule.token.end()) return;
    const auto j = static_cast<std::size_t>(visit - rule.token.begin());
    CHECK(asked.number("write_strength", t, 1) == rule.beta[j]);
    CHECK(asked.number("prediction", t, 1) == rule.prediction[j]);
    CHECK(asked.number("prediction_error", t, 1) == rule.error[j]);
    CHECK(same(asked.number("prediction_error_relative", t, 1), rule.error[j] / rule.value[j]));
    CHECK(asked.number("prediction_cosine", t, 1) == rule.cosine[j]);
    CHECK(asked.number("erased", t, 1) == rule.erase[j]);
    CHECK(asked.number("written", t, 1) == rule.write[j]);
    CHECK(asked.number("net_update", t, 1) == rule.update[j]);
    CHECK(asked.number("transition_eigenvalue", t, 1) == rule.along_key[j]);
  });
}

TEST_CASE("observables by name: what RWKV-7 erases and writes with its two keys, from its channels in double precision") {
  constexpr std::int64_t H = 4, K = 16;
  SmallEvidence run(rwkv_config("rwkv7"), kTokens);
  for (const std::int64_t l : {0, 2}) {
    const Asked asked(run.evidence, l, 0, kTokens);
    const auto row = [&](const char* name, std::int64_t t, std::int64_t h) {
      return row_of(*run.evidence.channel(l, name), t).subspan(static_cast<std::size_t>(h * K), static_cast<std::size_t>(K));
    };
    for (std::int64_t h = 0; h < H; ++h) {
      std::vector<double> S(static_cast<std::size_t>(K * K));
      for (std::int64_t t = 0; t < kTokens; ++t) {
        INFO("layer " << l << ", head " << h << ", token " << t);
        // S ← diag(w) S − (κ ⊙ a)ᵀ π + kᵀ v,   π = κ S
        const std::span<const float> k = row("k", t, h), v = row("v", t, h), log_w = row("log_decay", t, h), p = row("erase_key", t, h),
                                     a = row("erase_rate", t, h);
        const std::vector<double> pi = read(p.data(), std::vector<float>(S.begin(), S.end()).data(), K, K);
        double taken = 0, put = 0, both = 0, part = 0, decay = 0, square = 0, error = 0;
        for (std::size_t r = 0; r < K; ++r) {
          part += double{p[r]} * p[r] * a[r];
          decay += double{p[r]} * p[r] * std::exp(double{log_w[r]});
          square += double{p[r]} * p[r];
          error += (v[r] - pi[r]) * (v[r] - pi[r]);
          for (std::size_t c = 0; c < K; ++c) {
            const double erased = double{p[r]} * a[r] * pi[c], written = double{k[r]} * v[c];
            taken += erased * erased;
            put += written * written;
            both += (written - erased) * (written - erased);
            S[r * K + c] = std::exp(double{log_w[r]}) * S[r * K + c] - erased + written;
          }
        }
        const auto at = static_cast<std::size_t>(h);
        CHECK(same(asked.number("write_strength", t, at), part));
        CHECK(same(asked.number("prediction", t, at), norm_of(pi.data(), K)));
        CHECK(same(asked.number("prediction_error", t, at), std::sqrt(error)));
        CHECK(same(asked.number("erased", t, at), std::sqrt(taken)));
        CHECK(same(asked.number("written", t, at), std::sqrt(put)));
        CHECK(same(asked.number("net_update", t, at), std::sqrt(both)));
        CHECK(same(asked.number("transition_eigenvalue", t, at), decay / square - part));
      }
    }
  }
}

}  // namespace statescope::test::observables_of_runs

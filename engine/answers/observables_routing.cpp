// Routing, its balance and the competition of heads (spec §11, §12.1, §12.6, §12.7), token by token.
#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/analysis/head_gate_analysis.h"
#include "engine/analysis/routing_analysis.h"
#include "engine/answers/answers.h"
#include "engine/answers/observables_groups.h"
#include "engine/error.h"

namespace statescope {
namespace {

/// The partitions that tokens 0 … to − 1 were written to, largest e first.
struct WrittenTo {
  std::shared_ptr<const Routing> routing;     // null: the layer does not route
  std::vector<std::vector<std::int32_t>> at;  // [to]

  WrittenTo(std::int64_t layer, std::int64_t to, Evidence& evidence) : routing(evidence.routing(layer)) {
    if (!routing) return;
    std::int64_t from = 0;
    for (const Stretch& stretch : evidence.course(layer)) {
      for (; from < std::min(stretch.to, to); ++from) add(from, writers(stretch.rules, evidence.model().layout(layer)));
    }
    while (std::ssize(at) < to) add(std::ssize(at), evidence.model().layout(layer).writers);
  }

  std::int64_t partitions() const { return routing->partitions; }
  std::span<const float> gate(std::int64_t from, std::int64_t to) const {
    return std::span(routing->gate)
        .subspan(static_cast<std::size_t>(from * partitions()), static_cast<std::size_t>((to - from) * partitions()));
  }
  RoutedTokens token(std::int64_t t) const {
    const std::vector<std::int32_t>& chosen = at[static_cast<std::size_t>(t)];
    return {gate(t, t + 1), chosen, partitions(), std::ssize(chosen), std::ssize(chosen)};
  }
  /// Tokens 0 … to − 1 in one list. Throws Error where not all go to the same number of partitions.
  std::vector<std::int32_t> together(std::int64_t to) const {
    std::vector<std::int32_t> all;
    for (std::int64_t t = 0; t < to; ++t) {
      const std::vector<std::int32_t>& chosen = at[static_cast<std::size_t>(t)];
      if (chosen.size() != at.front().size())
        throw Error("an intervention has changed how many partitions a token is written to: there is no balance over both");
      all.insert(all.end(), chosen.begin(), chosen.end());
    }
    return all;
  }

 private:
  static std::int64_t writers(const Rules& rules, const MixerLayout& layout) {
    if (!rules.route.empty()) return std::ssize(rules.route);
    return rules.writers > 0 ? rules.writers : layout.writers;
  }
  /// Of those that the token was routed to, to write or to read, the `count` of largest e.
  void add(std::int64_t t, std::int64_t count) {
    std::vector<std::int32_t> chosen;
    for (std::int32_t n = 0; n < partitions(); ++n) {
      if (routing->selected_at(t, n)) chosen.push_back(n);
    }
    std::ranges::stable_sort(chosen, std::ranges::greater{}, [&](std::int32_t n) { return routing->gate_at(t, n); });
    chosen.resize(std::min(chosen.size(), static_cast<std::size_t>(count)));
    at.push_back(std::move(chosen));
  }
};

}  // namespace

ObservedGroup observe_routing(const LayerSpan& span, Evidence& evidence) {
  const WrittenTo written(span.layer, span.to, evidence);
  if (!written.routing) return {};
  const std::int64_t N = written.partitions();
  Observed gate(span, {N}), mass(span, {}), entropy(span, {}), margin(span, {}), weights(span, {N});
  for (std::int64_t t = span.from; t < span.to; ++t) {
    const RoutedTokens one = written.token(t);
    const TokenRouting routed = token_routing(one).front();
    const std::vector<float> shares = renormalised_weights(one);
    for (std::int64_t n = 0; n < N; ++n) {
      gate.at(t, n) = one.gate[static_cast<std::size_t>(n)];
      weights.at(t, n) = 0;
    }
    for (std::size_t w = 0; w < shares.size(); ++w) weights.at(t, one.selected[w]) = shares[w];
    mass.at(t) = static_cast<float>(routed.selected_mass);
    entropy.at(t) = static_cast<float>(routed.entropy);
    margin.at(t) = static_cast<float>(routed.margin);
  }
  return {gate, mass, entropy, margin, weights};
}

ObservedGroup observe_balance(const LayerSpan& span, Evidence& evidence) {
  const WrittenTo written(span.layer, span.to, evidence);
  if (!written.routing) return {};
  const std::int64_t N = written.partitions(), W = written.token(0).width;
  const std::vector<std::int32_t> selected = written.together(span.to);
  const RoutedTokens routed{written.gate(0, span.to), selected, N, W, W};
  // The mean of all tokens so far is one that forgets nothing.
  const RunningBalance whole = running_balance(routed, 1), running = running_balance(routed);
  Observed f(span, {N}), p(span, {N}), load(span, {N}), variation(span, {}), loss(span, {}), f_now(span, {N}), p_now(span, {N}),
      loss_now(span, {});
  for (std::int64_t t = span.from; t < span.to; ++t) {
    const auto row = [&](const std::vector<float>& rows) {
      return std::span(rows).subspan(static_cast<std::size_t>(t * N), static_cast<std::size_t>(N));
    };
    const std::vector<double> frequency(row(whole.frequency).begin(), row(whole.frequency).end());
    for (std::int64_t n = 0; n < N; ++n)
      load.at(t, n) = static_cast<float>(frequency[static_cast<std::size_t>(n)] * static_cast<double>(N) / static_cast<double>(W));
    variation.at(t) = static_cast<float>(coefficient_of_variation(frequency));
    std::ranges::copy(row(whole.frequency), &f.at(t, 0));
    std::ranges::copy(row(whole.probability), &p.at(t, 0));
    std::ranges::copy(row(running.frequency), &f_now.at(t, 0));
    std::ranges::copy(row(running.probability), &p_now.at(t, 0));
    loss.at(t) = static_cast<float>(whole.loss[static_cast<std::size_t>(t)]);
    loss_now.at(t) = static_cast<float>(running.loss[static_cast<std::size_t>(t)]);
  }
  return {f, p, load, variation, loss, f_now, p_now, loss_now};
}

/// Over all of the model's layers of this kind, whatever the span's.
ObservedGroup observe_mom_loss(const LayerSpan& span, Evidence& evidence) {
  if (evidence.layer(span.layer).mixer != "mom") return {};
  std::vector<WrittenTo> layers;
  for (std::int64_t l = 0; l < evidence.model().layers(); ++l) {
    if (evidence.layer(l).mixer == "mom") layers.emplace_back(l, span.to, evidence);
  }
  Observed loss(span, {});
  for (std::int64_t t = span.from; t < span.to; ++t) {
    std::vector<float> gate;
    std::vector<std::int32_t> selected;
    for (const WrittenTo& layer : layers) {
      const std::span<const float> rows = layer.gate(0, t + 1);
      gate.insert(gate.end(), rows.begin(), rows.end());
      const std::vector<std::int32_t> chosen = layer.together(t + 1);
      selected.insert(selected.end(), chosen.begin(), chosen.end());
    }
    const std::int64_t W = layers.front().token(0).width;
    loss.at(t) = static_cast<float>(mom_loss({gate, selected, layers.front().partitions(), W, W}));
    evidence.tell(static_cast<double>(t + 1 - span.from) / static_cast<double>(span.count()));
  }
  return {loss};
}

ObservedGroup observe_head_gates(const LayerSpan& span, Evidence& evidence) {
  const ChannelRows *rows_q = evidence.channel(span.layer, "head_gate_q"), *rows_k = evidence.channel(span.layer, "head_gate_k");
  if (!rows_q || !rows_k) return {};
  const std::int64_t H = rows_q->shape.front(), lambdas = std::ssize(kSharpness);
  Observed gate_q(span, {H}), gate_k(span, {H}), entropy_q(span, {}), entropy_k(span, {}), winner_q(span, {}), winner_k(span, {}),
      margin_q(span, {}), margin_k(span, {}), flow(span, {}), curve_q(span, {lambdas}), curve_k(span, {lambdas}),
      curve_flow(span, {lambdas}), effective(span, {});
  const ChannelRows* read_gate = evidence.channel(span.layer, "read_gate_effective");
  for (std::int64_t t = span.from; t < span.to; ++t) {
    const auto row = [&](const ChannelRows& rows) {
      return std::span(rows.values).subspan(static_cast<std::size_t>(t * H), static_cast<std::size_t>(H));
    };
    const std::span<const float> q = row(*rows_q), k = row(*rows_k);
    const HeadGate of_q = head_gates(q, H).front(), of_k = head_gates(k, H).front();
    std::ranges::copy(q, &gate_q.at(t, 0));
    std::ranges::copy(k, &gate_k.at(t, 0));
    entropy_q.at(t) = static_cast<float>(of_q.entropy);
    entropy_k.at(t) = static_cast<float>(of_k.entropy);
    winner_q.at(t) = static_cast<float>(of_q.winner);
    winner_k.at(t) = static_cast<float>(of_k.winner);
    margin_q.at(t) = static_cast<float>(of_q.margin);
    margin_k.at(t) = static_cast<float>(of_k.margin);
    flow.at(t) = own_information_flow(q, k, H).front();
    const SharpnessCurve q_curve = entropy_curve(q), k_curve = entropy_curve(k), of_flow = flow_curve(q, k);
    for (std::int64_t i = 0; i < lambdas; ++i) {
      curve_q.at(t, i) = static_cast<float>(q_curve[static_cast<std::size_t>(i)]);
      curve_k.at(t, i) = static_cast<float>(k_curve[static_cast<std::size_t>(i)]);
      curve_flow.at(t, i) = static_cast<float>(of_flow[static_cast<std::size_t>(i)]);
    }
    if (read_gate) effective.at(t) = read_gate->values[static_cast<std::size_t>(t)];
  }
  return {gate_q, gate_k, entropy_q, entropy_k, winner_q, winner_k, margin_q, margin_k, flow, curve_q, curve_k, curve_flow, effective};
}

ObservedGroup observe_choices(const LayerSpan& span, Evidence& evidence) {
  std::vector<Choices> all{answer(ChoicesQuestion{span.layer, 0, span.from, span.to}, evidence)};
  const std::int64_t heads = all.front().heads;
  if (heads == 0) return {};
  for (std::int64_t head = 1; head < heads; ++head) all.push_back(answer(ChoicesQuestion{span.layer, head, span.from, span.to}, evidence));
  const auto chosen_by = [&](const Choices& choices, std::int64_t t) {
    const auto at = static_cast<std::size_t>(t - span.from);
    return std::pair(choices.begin[at], choices.begin[at + 1]);
  };
  std::int64_t most = 0;
  for (const Choices& choices : all) {
    for (std::int64_t t = span.from; t < span.to; ++t) most = std::max(most, chosen_by(choices, t).second - chosen_by(choices, t).first);
  }
  Observed chosen(span, {heads, most}), score(span, {heads, most}), share(span, {heads});
  for (std::int64_t head = 0; head < heads; ++head) {
    const Choices& choices = all[static_cast<std::size_t>(head)];
    for (std::int64_t t = span.from; t < span.to; ++t) {
      const auto [from, to] = chosen_by(choices, t);
      for (std::int64_t j = from; j < to; ++j) {
        chosen.at(t, head, j - from) = static_cast<float>(choices.chosen[static_cast<std::size_t>(j)]);
        if (!choices.score.empty()) score.at(t, head, j - from) = choices.score[static_cast<std::size_t>(j)];
      }
      share.at(t, head) = static_cast<float>(to - from) / static_cast<float>(t / choices.size + 1);
    }
  }
  return {chosen, score, share};
}

ObservedGroup observe_branch_gates(const LayerSpan& span, Evidence& evidence) {
  const ChannelRows* gates = evidence.channel(span.layer, "nsa_gates");
  if (!gates) return {};
  Observed all(span, gates->shape);
  const std::int64_t each = gates->shape[0] * gates->shape[1];
  std::copy_n(gates->values.begin() + span.from * each, span.count() * each, all.values.begin());
  return {all};
}

}  // namespace statescope

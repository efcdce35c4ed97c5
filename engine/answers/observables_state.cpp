// How alike a layer's states are, how many directions they fill, how large they are (spec §12.5, §12.10), token by token.
#include <algorithm>

#include "engine/analysis/parts.h"
#include "engine/analysis/similarity_analysis.h"
#include "engine/analysis/write_analysis.h"
#include "engine/answers/observables_groups.h"

namespace statescope {
namespace {

constexpr std::int64_t kQueries = 128;  // of a slot and head, that its reads are compared over (spec §12.5)

/// q of the last visits of a slot up to a token that did read: [n ≤ kQueries, K]
std::vector<float> last_queries(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t token) {
  const SlotVisits& visits = trace.slots[static_cast<std::size_t>(slot)];
  std::vector<float> queries;
  for (std::int64_t j = visits.until(token) - 1; j >= 0 && std::ssize(queries) < kQueries * trace.K; --j) {
    const auto q = visits.q.begin() + (j * trace.H + head) * trace.K;
    if (std::any_of(q, q + trace.K, [](float x) { return x != 0; })) queries.insert(queries.end(), q, q + trace.K);
  }
  return queries;
}

}  // namespace

ObservedGroup observe_similarity(const LayerSpan& span, Evidence& evidence) {
  const LayerInfo& layer = evidence.layer(span.layer);
  if (!layer.has_state()) return {};
  const std::int64_t P = layer.slots(), H = layer.heads;
  Observed mean(span, {H}), within(span, {H}), between(span, {H}), least(span, {H}), zero(span, {H}), entropy(span, {H}), rank(span, {H}),
      rank_of_squares(span, {H}), statistic(span, {H}), entropy_each(span, {P, H}), rank_each(span, {P, H});
  for (std::int64_t t = span.from; t < span.to; ++t) {
    const LayerState state = evidence.state(span.layer, t);
    const std::vector<StateSimilarity> heads =
        state_similarity(evidence.backend(), evidence.workspace(), state.values, P, H, state.rows, state.columns);
    for (std::int64_t h = 0; h < H; ++h) {
      const StateSimilarity& head = heads[static_cast<std::size_t>(h)];
      mean.at(t, h) = static_cast<float>(head.rows.mean_abs);
      within.at(t, h) = static_cast<float>(head.rows.within);
      between.at(t, h) = static_cast<float>(head.rows.between);
      least.at(t, h) = static_cast<float>(head.rows.min_cosine);
      zero.at(t, h) = static_cast<float>(head.rows.zero_rows);
      entropy.at(t, h) = static_cast<float>(head.stacked.entropy);
      rank.at(t, h) = static_cast<float>(head.stacked.rank);
      rank_of_squares.at(t, h) = static_cast<float>(head.stacked.rank_of_squares);
      statistic.at(t, h) = static_cast<float>(head.statistic);
      for (std::int64_t n = 0; n < P; ++n) {
        entropy_each.at(t, n, h) = static_cast<float>(head.partitions[static_cast<std::size_t>(n)].entropy);
        rank_each.at(t, n, h) = static_cast<float>(head.partitions[static_cast<std::size_t>(n)].rank);
      }
    }
    evidence.tell(static_cast<double>(t + 1 - span.from) / static_cast<double>(span.count()));
  }
  return {mean, within, between, least, zero, entropy, rank, rank_of_squares, statistic, entropy_each, rank_each};
}

ObservedGroup observe_distinguishability(const LayerSpan& span, Evidence& evidence) {
  const MemoryTrace* trace = evidence.trace(span.layer);
  if (!trace) return {};
  const std::int64_t slots = std::ssize(trace->slots), H = trace->H, cells = trace->K * trace->V;
  Observed least(span, {slots, H}), mean(span, {slots, H});
  for (std::int64_t t = span.from; t < span.to; ++t) {
    const LayerState state = evidence.state(span.layer, t);
    for (std::int64_t slot = 0; slot < slots; ++slot) {
      for (std::int64_t head = 0; head < H; ++head) {
        const std::span S(state.matrix(slot, head), static_cast<std::size_t>(cells));
        const ReadSimilarity reads = read_similarity(last_queries(*trace, slot, head, t), S, trace->K, trace->V);
        least.at(t, slot, head) = static_cast<float>(reads.min_cosine);
        mean.at(t, slot, head) = static_cast<float>(reads.mean_cosine);
      }
    }
    evidence.tell(static_cast<double>(t + 1 - span.from) / static_cast<double>(span.count()));
  }
  return {least, mean};
}

ObservedGroup observe_norms(const LayerSpan& span, Evidence& evidence) {
  const LayerInfo& layer = evidence.layer(span.layer);
  if (!layer.has_state()) return {};
  const std::int64_t slots = layer.slots(), H = layer.heads, K = layer.rows;
  Observed norms(span, {slots, H}), updates(span, {slots, H}), rows(span, {slots, H, K});
  for (std::int64_t t = span.from; t < span.to; ++t) {
    const auto [before, after] = evidence.states_around(span.layer, t);
    const auto put = [&](Observed& observed, const std::vector<double>& values) {
      std::ranges::transform(values, observed.values.begin() + (t - span.from) * std::ssize(values),
                             [](double value) { return static_cast<float>(value); });
    };
    put(norms, frobenius_norms(after.values, K, after.columns));
    put(updates, update_norms(after.values, before.values, K, after.columns));
    put(rows, row_norms(after.values, K, after.columns));
  }
  return {norms, updates, rows};
}

ObservedGroup observe_output_gate(const LayerSpan& span, Evidence& evidence) {
  const ChannelRows* rows = evidence.channel(span.layer, "output_gate");
  if (!rows) return {};
  Observed gate(span, rows->shape);
  const std::int64_t each = rows->shape.front();
  std::copy(rows->values.begin() + span.from * each, rows->values.begin() + span.to * each, gate.values.begin());
  return {gate};
}

ObservedGroup observe_residual(const LayerSpan& span, Evidence& evidence) {
  const std::vector<float> x = evidence.residual(span.layer, span.from, span.to);
  const auto D = static_cast<std::size_t>(evidence.model().hidden());
  Observed norms(span, {});
  for (std::int64_t t = span.from; t < span.to; ++t)
    norms.at(t) = static_cast<float>(norm(std::span(x).subspan(static_cast<std::size_t>(t - span.from) * D, D)));
  return {norms};
}

}  // namespace statescope

// What tokens write, forget, correct and read (spec §12.2–12.4, §12.6, §12.9, §12.10), token by token.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "engine/analysis/decay_analysis.h"
#include "engine/analysis/memory_reading.h"
#include "engine/analysis/routing_analysis.h"
#include "engine/analysis/slot_weights.h"
#include "engine/analysis/write_analysis.h"
#include "engine/answers/decays.h"
#include "engine/answers/levels.h"
#include "engine/answers/observables_groups.h"
#include "engine/answers/own_values.h"

namespace statescope {
namespace {

/// Of one slot the visits that the tokens of a span paid, without interventions: each(visit, token).
template <class Each>
void for_visits(const SlotVisits& visits, const LayerSpan& span, const Each& each) {
  for (std::int64_t j = visits.until(span.from - 1); j < visits.until(span.to - 1); ++j) {
    if (!visits.is_edit(j)) each(j, std::int64_t{visits.token[static_cast<std::size_t>(j)]});
  }
}

/// Every slot and head in turn: each(slot, head), told as the work that it is.
template <class Each>
void for_places(const MemoryTrace& trace, const Evidence& evidence, const Each& each) {
  const std::int64_t slots = std::ssize(trace.slots);
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    for (std::int64_t head = 0; head < trace.H; ++head) {
      each(slot, head);
      evidence.tell(static_cast<double>(slot * trace.H + head + 1) / static_cast<double>(slots * trace.H));
    }
  }
}

/// ‖v‖ of visits [first, last), under the delta rule ‖v − π‖: what a row's ω multiplies.
std::vector<float> written_norms(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t first, std::int64_t last) {
  std::vector<float> norms;
  if (trace.rule == MemoryRule::delta) {
    const std::vector<DeltaStep> steps = delta_steps(trace, slot, head);
    for (std::int64_t j = first; j < last; ++j) norms.push_back(static_cast<float>(steps[static_cast<std::size_t>(j)].error));
    return norms;
  }
  std::vector<float> values;
  for (std::int64_t j = first; j < last; ++j) {
    const auto v = trace.slots[static_cast<std::size_t>(slot)].v.begin() + (j * trace.H + head) * trace.V;
    values.insert(values.end(), v, v + trace.V);
  }
  for (const double norm : frobenius_norms(values, 1, trace.V)) norms.push_back(static_cast<float>(norm));
  return norms;
}

bool is_zero(std::span<const float> x) {
  return std::ranges::all_of(x, [](float value) { return value == 0; });
}

/// The tokens that write to a slot, ascending: some ω of theirs is not 0. An intervention that writes a state anew counts.
std::vector<std::int32_t> writers_of(const MemoryTrace& trace, std::int64_t slot) {
  const SlotVisits& visits = trace.slots[static_cast<std::size_t>(slot)];
  std::vector<std::int32_t> tokens;
  for (std::int64_t j = 0; j < visits.count(); ++j) {
    const std::span k =
        std::span(visits.k).subspan(static_cast<std::size_t>(j * trace.H * trace.K), static_cast<std::size_t>(trace.H * trace.K));
    if (!is_zero(k)) tokens.push_back(visits.token[static_cast<std::size_t>(j)]);
  }
  return tokens;
}

/// How many rows a token chooses: row-sparse keys their topk, others the largest.
std::int64_t chosen_rows(std::int64_t layer, const Evidence& evidence) {
  const Config& config = evidence.model().plan().layers[static_cast<std::size_t>(layer)].config;
  return config.has("row_sparse") ? config.object("row_sparse").integer("topk") : 1;
}

/// Of all channels of all heads, by the tokens before `to`. A head that never decays has one channel, of α = 1, which no token changes.
SlotDecay decay_until(const MemoryTrace& trace, const GateDecays& gates, std::int64_t to) {
  const std::int64_t channels = trace.H * std::max<std::int64_t>(gates.width, 1);
  const auto count = gates.width == 0 ? 0 : std::ranges::lower_bound(gates.token, to) - gates.token.begin();
  return {.log_decay = std::span(gates.log_decay).first(static_cast<std::size_t>(count * channels)),
          .written = std::span(gates.token).first(static_cast<std::size_t>(count)),
          .stride = channels,
          .channels = channels,
          .tokens = to};
}

/// Δ_{t,s} of a slot's channels from the span's s on.
void add_decay_since(Observed& since, std::int64_t slot, const MemoryTrace& trace, const GateDecays& gates, const LayerSpan& span) {
  const std::int64_t each = std::max<std::int64_t>(gates.width, 1);
  const SlotDecay decay = decay_until(trace, gates, span.to);
  for (std::int64_t i = 0; i < decay.channels && span.since < span.to; ++i) {
    const CumulativeDecay left(decay, i);
    for (std::int64_t t = std::max(span.from, span.since); t < span.to; ++t)
      since.at(t, slot, i / each, i % each) = static_cast<float>(left(t, span.since));
  }
}

}  // namespace

ObservedGroup observe_writes(const LayerSpan& span, Evidence& evidence) {
  std::optional<MemoryTrace> levels;
  if (has_levels(evidence.layer(span.layer))) levels = writes_of_levels(span.layer, evidence);
  const MemoryTrace* trace = levels ? &*levels : evidence.trace(span.layer);
  if (!trace || trace->steps > 1) return {};  // one number a token is what these are
  const std::int64_t slots = std::ssize(trace->slots), H = trace->H, K = trace->K;
  Observed weight(span, {slots, H, K}), magnitude(span, {slots, H, K}), ratio(span, {slots, H}), participation(span, {slots, H}),
      occupied(span, {H});
  std::vector<std::vector<WriteSpread>> written(static_cast<std::size_t>(span.count() * H));  // of each token and head
  for_places(*trace, evidence, [&](std::int64_t slot, std::int64_t head) {
    const SlotVisits& visits = trace->slots[static_cast<std::size_t>(slot)];
    const std::int64_t first = visits.until(span.from - 1), last = visits.until(span.to - 1);
    const std::vector<float> omega = write_weights(*trace, slot, head, first, last);
    const std::vector<float> size = row_write_magnitude(omega, written_norms(*trace, slot, head, first, last), K, 1);
    const std::vector<WriteSpread> spread = write_spread(omega, K);
    for_visits(visits, span, [&](std::int64_t j, std::int64_t t) {
      for (std::int64_t r = 0; r < K; ++r) {
        weight.at(t, slot, head, r) = omega[static_cast<std::size_t>((j - first) * K + r)];
        magnitude.at(t, slot, head, r) = size[static_cast<std::size_t>((j - first) * K + r)];
      }
      const WriteSpread& one = spread[static_cast<std::size_t>(j - first)];
      ratio.at(t, slot, head) = static_cast<float>(one.ratio);
      participation.at(t, slot, head) = static_cast<float>(one.participation);
      written[static_cast<std::size_t>((t - span.from) * H + head)].push_back(one);
    });
  });
  for (std::int64_t t = span.from; t < span.to; ++t) {
    for (std::int64_t head = 0; head < H; ++head)
      occupied.at(t, head) = static_cast<float>(occupancy(written[static_cast<std::size_t>((t - span.from) * H + head)], slots));
  }
  return {weight, magnitude, ratio, participation, occupied};
}

ObservedGroup observe_chosen_rows(const LayerSpan& span, Evidence& evidence) {
  const MemoryTrace* trace = evidence.trace(span.layer);
  if (!trace || trace->rule != MemoryRule::outer_product) return {};
  const std::int64_t slots = std::ssize(trace->slots), H = trace->H, K = trace->K, topk = chosen_rows(span.layer, evidence);
  Observed frequency(span, {slots, H, K}), variation(span, {slots, H}), loss(span, {slots, H});
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    const SlotVisits& visits = trace->slots[static_cast<std::size_t>(slot)];
    std::vector<float> keys;  // [n, H, K] of the tokens so far that wrote here
    std::int64_t next = 0;
    for (std::int64_t t = span.from; t < span.to; ++t) {
      for (; next < visits.until(t); ++next) {
        const std::span k = std::span(visits.k).subspan(static_cast<std::size_t>(next * H * K), static_cast<std::size_t>(H * K));
        if (std::ranges::any_of(k, [](float value) { return value < 0; })) return {};  // keys of both signs choose no rows
        if (!visits.is_edit(next) && !is_zero(k)) keys.insert(keys.end(), k.begin(), k.end());
      }
      if (keys.empty()) continue;
      const RowBalance rows = row_balance(keys, H, K, topk);
      for (std::int64_t head = 0; head < H; ++head) {
        for (std::int64_t r = 0; r < K; ++r)
          frequency.at(t, slot, head, r) = static_cast<float>(rows.frequency[static_cast<std::size_t>(head * K + r)]);
        variation.at(t, slot, head) = static_cast<float>(rows.variation[static_cast<std::size_t>(head)]);
        loss.at(t, slot, head) = static_cast<float>(rows.loss[static_cast<std::size_t>(head)]);
      }
      evidence.tell(static_cast<double>(t + 1 - span.from) / static_cast<double>(span.count()));
    }
  }
  return {frequency, variation, loss};
}

ObservedGroup observe_decay(const LayerSpan& span, Evidence& evidence) {
  const Decays decays(span.layer, evidence);
  if (!decays.trace()) return {};
  const MemoryTrace& trace = *decays.trace();
  const std::int64_t slots = std::ssize(trace.slots), H = trace.H, each = std::max<std::int64_t>(GateDecays(trace, 0).width, 1);
  Observed alpha(span, {slots, H, each}), since(span, {slots, H, each}), half(span, {slots, H, each}), width(span, {slots, H, each}),
      summed(span, {slots, H});
  const double rows = each == 1 ? static_cast<double>(trace.K) : 1;  // that decay as one
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    const GateDecays gates(trace, slot);
    add_decay_since(since, slot, trace, gates, span);
    for (std::int64_t t = span.from; t < span.to; ++t) {
      const SlotDecay so_far = decay_until(trace, gates, t + 1);
      const std::int64_t count = std::ssize(so_far.written);
      const bool came = count > 0 && so_far.written.back() == t;
      const std::vector<double> halves = half_life(so_far);
      const ReceptiveField field = receptive_field(so_far), of_heads = receptive_field_summed(so_far, each, kReceptiveThreshold / rows);
      for (std::int64_t i = 0; i < H * each; ++i) {
        const auto at = static_cast<std::size_t>(i);
        alpha.at(t, slot, i / each, i % each) = came ? std::exp(gates.log_decay[static_cast<std::size_t>((count - 1) * H * each + i)]) : 1;
        half.at(t, slot, i / each, i % each) = static_cast<float>(halves[at]);
        width.at(t, slot, i / each, i % each) = static_cast<float>(field.width[at]);
      }
      for (std::int64_t head = 0; head < H; ++head)
        summed.at(t, slot, head) = static_cast<float>(of_heads.width[static_cast<std::size_t>(head)]);
      evidence.tell(static_cast<double>(slot * span.count() + t + 1 - span.from) / static_cast<double>(slots * span.count()));
    }
  }
  return {alpha, since, half, width, summed};
}

ObservedGroup observe_delta_rule(const LayerSpan& span, Evidence& evidence) {
  const MemoryTrace* trace = evidence.trace(span.layer);
  if (!trace || trace->rule == MemoryRule::outer_product || trace->steps > 1) return {};
  const std::vector<std::int64_t> shape{std::ssize(trace->slots), trace->H};
  Observed beta(span, shape), prediction(span, shape), error(span, shape), relative(span, shape), cosine(span, shape), erase(span, shape),
      write(span, shape), update(span, shape), eigenvalue(span, shape);
  for_places(*trace, evidence, [&](std::int64_t slot, std::int64_t head) {
    const std::vector<DeltaStep> steps = delta_steps(*trace, slot, head);
    const std::vector<float> ratio = undecayed_ratio(span.layer, head, *trace, evidence);
    for_visits(trace->slots[static_cast<std::size_t>(slot)], span, [&](std::int64_t j, std::int64_t t) {
      const DeltaStep& kept = steps[static_cast<std::size_t>(j)];
      const DeltaStep step = ratio.empty() ? kept : undecayed(kept, ratio[static_cast<std::size_t>(t)]);
      beta.at(t, slot, head) = static_cast<float>(step.beta);
      prediction.at(t, slot, head) = static_cast<float>(step.prediction);
      error.at(t, slot, head) = static_cast<float>(step.error);
      relative.at(t, slot, head) = static_cast<float>(step.error / step.value);
      cosine.at(t, slot, head) = static_cast<float>(step.cosine);
      erase.at(t, slot, head) = static_cast<float>(step.erase);
      write.at(t, slot, head) = static_cast<float>(step.write);
      update.at(t, slot, head) = static_cast<float>(step.update);
      eigenvalue.at(t, slot, head) = static_cast<float>(step.along_key);
    });
  });
  return {beta, prediction, error, relative, cosine, erase, write, update, eigenvalue};
}

ObservedGroup observe_ages(const LayerSpan& span, Evidence& evidence) {
  const MemoryTrace* trace = evidence.trace(span.layer);
  if (!trace) return {};
  const std::int64_t slots = std::ssize(trace->slots), H = trace->H, K = trace->K;
  Observed of_slot(span, {slots}), of_row(span, {slots, H, K});
  const auto number = [](std::int64_t age) {
    return age == kNeverWritten ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(age);
  };
  for_places(*trace, evidence, [&](std::int64_t slot, std::int64_t head) {
    const SlotVisits& visits = trace->slots[static_cast<std::size_t>(slot)];
    const std::vector<float> omega = write_weights(*trace, slot, head, 0, visits.count());
    const std::vector<std::int32_t> writers = writers_of(*trace, slot);
    for (std::int64_t t = span.from; t < span.to; ++t) {
      of_slot.at(t, slot) = number(age_of_last_write(writers, t));
      const std::vector<std::int64_t> ages = row_ages(omega, visits.token, K, t);
      for (std::int64_t r = 0; r < K; ++r) of_row.at(t, slot, head, r) = number(ages[static_cast<std::size_t>(r)]);
    }
  });
  return {of_slot, of_row};
}

ObservedGroup observe_readout(const LayerSpan& span, Evidence& evidence) {
  const MemoryTrace* trace = evidence.trace(span.layer);
  if (!trace) return {};
  const std::int64_t slots = std::ssize(trace->slots), H = trace->H, V = trace->V;
  Observed share(span, {slots, H});
  const SlotWeights weights(evidence, span.layer);
  for (std::int64_t t = span.from; t < span.to; ++t) {
    for (std::int64_t head = 0; head < H; ++head) {
      std::vector<float> reads(static_cast<std::size_t>(slots * V));
      for (std::int64_t slot = 0; slot < slots; ++slot) {
        const SlotVisits& visits = trace->slots[static_cast<std::size_t>(slot)];
        const std::int64_t j = visits.reading(t);
        if (j < 0) continue;
        const auto o = visits.o.begin() + (j * H + head) * V;
        const double weight = weights.of(t, slot);
        std::transform(o, o + V, reads.begin() + slot * V, [=](float x) { return static_cast<float>(weight * x); });
      }
      const std::vector<double> shares = readout_shares(reads, V);
      for (std::int64_t slot = 0; slot < slots; ++slot)
        share.at(t, slot, head) = static_cast<float>(shares[static_cast<std::size_t>(slot)]);
    }
  }
  return {share};
}

}  // namespace statescope

// Decay, the competition of heads, the delta rule: what forgets, who may write, what is corrected.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/analysis/decay_analysis.h"
#include "engine/analysis/head_gate_analysis.h"
#include "engine/analysis/memory_reading.h"
#include "engine/analysis/parts.h"
#include "engine/answers/answers.h"
#include "engine/answers/decays.h"
#include "engine/answers/own_values.h"
#include "engine/error.h"

namespace statescope {
namespace {

std::vector<float> narrowed(const std::vector<double>& values) { return {values.begin(), values.end()}; }

/// [from, to) of the run, never more than 512 tokens.
struct Window {
  std::int64_t from = 0, to = 0;
};
Window window_of(std::int64_t from, std::int64_t to, const Evidence& evidence) {
  if (to - from > 512) throw Error("more than 512 tokens at once");
  from = std::clamp<std::int64_t>(from, 0, evidence.tokens());
  return {from, std::clamp(to, from, evidence.tokens())};
}

Decay::Axis axis_of(const MemoryTrace& trace) {
  if (trace.of_cells()) return Decay::Axis::rows;
  if (trace.decay_width == 0) return Decay::Axis::none;
  if (trace.decay_width == 1) return Decay::Axis::heads;
  return trace.decay_axis == DecayAxis::columns ? Decay::Axis::columns : Decay::Axis::rows;
}

const SlotVisits& slot_of(const MemoryTrace& trace, std::int64_t slot, std::int64_t head) {
  check_index("slot", slot, std::ssize(trace.slots));
  check_index("head", head, trace.H);
  return trace.slots[static_cast<std::size_t>(slot)];
}

/// log α of the visits in the window, and their sums from its beginning.
void fill_window(Decay& decay, const SlotDecay& slot, Window window) {
  std::vector<double> sum(static_cast<std::size_t>(slot.channels));
  const auto place_of = [&](std::int64_t token) { return std::ranges::lower_bound(slot.written, token) - slot.written.begin(); };
  for (std::int64_t i = place_of(window.from); i < place_of(window.to); ++i) {
    decay.token.push_back(slot.written[static_cast<std::size_t>(i)]);
    for (std::int64_t c = 0; c < slot.channels; ++c) {
      const float log_alpha = slot.log_decay[static_cast<std::size_t>(i * slot.stride + slot.first + c)];
      // A sum of −∞ would leave no differences; one α of 0 forgets everything all the same.
      double& all = sum[static_cast<std::size_t>(c)];
      all += log_alpha < kLogZero ? kLogZero : log_alpha;
      decay.log_decay.push_back(log_alpha);
      decay.log_sum.push_back(all);
    }
  }
}

struct GateRows {
  const ChannelRows *q = nullptr, *k = nullptr;
  std::int64_t heads() const { return q ? q->shape.front() : 0; }
};
GateRows gate_rows(std::int64_t layer, Evidence& evidence) {
  return {evidence.channel(layer, "head_gate_q"), evidence.channel(layer, "head_gate_k")};
}

void summarise(std::span<const float> gates, std::int64_t heads, std::vector<float>& entropy, std::vector<std::int32_t>& winner,
               std::vector<float>& margin) {
  for (const HeadGate& gate : head_gates(gates, heads)) {
    entropy.push_back(static_cast<float>(gate.entropy));
    winner.push_back(static_cast<std::int32_t>(gate.winner));
    margin.push_back(static_cast<float>(gate.margin));
  }
}

/// One of the two gates of a window at λ, its entropies, and their curves.
void sharpen(std::span<const float> gates, std::int64_t heads, double lambda, std::vector<float>& sharp, std::vector<float>& entropy,
             std::vector<float>& curve) {
  for (std::size_t at = 0; at < gates.size(); at += static_cast<std::size_t>(heads)) {
    const std::span<const float> gate = gates.subspan(at, static_cast<std::size_t>(heads));
    const std::vector<double> values = sharpened(gate, lambda);
    sharp.insert(sharp.end(), values.begin(), values.end());
    const SharpnessCurve entropies = entropy_curve(gate);
    curve.insert(curve.end(), entropies.begin(), entropies.end());
  }
  for (const HeadGate& gate : head_gates(sharp, heads)) entropy.push_back(static_cast<float>(gate.entropy));
}

}  // namespace

Decay answer(const DecayQuestion& question, Evidence& evidence) {
  const Window window = window_of(question.from, question.to, evidence);
  const LayerInfo& layer = evidence.layer(question.layer);
  const Decays decays(question.layer, evidence);
  Decay decay;
  if (!decays.trace() && layer.has_state())
    throw Error(fmt::format(
        "The coefficients of layer {} do not decay one by one: all of them turn together, alike at every token, as their matrix "
        "says. `statescope observe` has its eigenvalues and their half-lives.",
        question.layer));
  if (!decays.trace()) return decay;
  const MemoryTrace& trace = *decays.trace();
  slot_of(trace, question.slot, question.head);
  decay.axis = axis_of(trace);
  if (decay.axis == Decay::Axis::none) return decay;
  const bool heads = decay.axis == Decay::Axis::heads;
  const GateDecays gates(trace, question.slot);
  const std::int64_t first = heads ? 0 : question.head * gates.width;
  decay.channels = heads ? trace.H : gates.width;
  const SlotDecay slot{gates.log_decay, gates.token, trace.H * gates.width, first, decay.channels, evidence.tokens()};
  fill_window(decay, slot, window);
  evidence.tell(0.3);
  decay.half_life = narrowed(half_life(slot));
  evidence.tell(0.5);
  const ReceptiveField field = receptive_field(slot);
  decay.width = narrowed(field.width);
  decay.censored = field.censored;
  decay.measured = field.measured;
  return decay;
}

HeadContest answer(const HeadGatesQuestion& question, Evidence& evidence) {
  const GateRows rows = gate_rows(question.layer, evidence);
  HeadContest contest;
  contest.heads = rows.heads();
  if (contest.heads == 0) return contest;
  contest.gate_q = rows.q->values;
  contest.gate_k = rows.k->values;
  summarise(contest.gate_q, contest.heads, contest.entropy_q, contest.winner_q, contest.margin_q);
  summarise(contest.gate_k, contest.heads, contest.entropy_k, contest.winner_k, contest.margin_k);
  contest.flow = own_information_flow(contest.gate_q, contest.gate_k, contest.heads);
  if (const ChannelRows* effective = evidence.channel(question.layer, "read_gate_effective"))
    contest.read_gate_effective = effective->values;
  return contest;
}

SharpenedGates answer(const SharpenedGatesQuestion& question, Evidence& evidence) {
  const Window window = window_of(question.from, question.to, evidence);
  const GateRows rows = gate_rows(question.layer, evidence);
  const std::int64_t H = rows.heads();
  SharpenedGates gates;
  if (H == 0) return gates;
  const auto part = [&](const ChannelRows& channel) {
    return std::span(channel.values)
        .subspan(static_cast<std::size_t>(window.from * H), static_cast<std::size_t>((window.to - window.from) * H));
  };
  const std::span<const float> q = part(*rows.q), k = part(*rows.k);
  sharpen(q, H, question.lambda, gates.gate_q, gates.entropy_q, gates.curve_q);
  sharpen(k, H, question.lambda, gates.gate_k, gates.entropy_k, gates.curve_k);
  gates.flow = information_flow(gates.gate_q, gates.gate_k, H);
  gates.lambda.assign(kSharpness.begin(), kSharpness.end());
  for (std::size_t at = 0; at < q.size(); at += static_cast<std::size_t>(H)) {
    const auto each = static_cast<std::size_t>(H);
    const SharpnessCurve flow = flow_curve(q.subspan(at, each), k.subspan(at, each));
    gates.curve_flow.insert(gates.curve_flow.end(), flow.begin(), flow.end());
  }
  return gates;
}

DeltaRule answer(const DeltaRuleQuestion& question, Evidence& evidence) {
  evidence.layer(question.layer);
  const std::vector<MemoryTrace>& traces = evidence.traces(question.layer);
  DeltaRule rule;
  if (traces.empty() || traces.front().rule == MemoryRule::outer_product) return rule;
  rule.two_keys = traces.front().rule == MemoryRule::two_keys;
  rule.steps = traces.front().steps;
  const SlotVisits& visits = slot_of(traces.front(), question.slot, question.head);
  const auto tell = [&](double fraction) { evidence.tell(fraction); };
  const std::vector<DeltaStep> steps = delta_steps(traces.front(), question.slot, question.head, tell);
  const std::vector<float> ratio = undecayed_ratio(question.layer, question.head, traces.front(), evidence);
  for (std::size_t j = 0; j < steps.size(); ++j) {
    if (visits.is_edit(static_cast<std::int64_t>(j))) continue;
    const DeltaStep step = ratio.empty() ? steps[j] : undecayed(steps[j], ratio[static_cast<std::size_t>(steps[j].token)]);
    const auto keep = [](std::vector<float>& values, double value) { values.push_back(static_cast<float>(value)); };
    rule.token.push_back(step.token);
    keep(rule.prediction, step.prediction);
    keep(rule.value, step.value);
    keep(rule.error, step.error);
    keep(rule.erase, step.erase);
    keep(rule.write, step.write);
    keep(rule.update, step.update);
    keep(rule.cosine, step.cosine);
    keep(rule.beta, step.beta);
    keep(rule.alpha, step.alpha);
    keep(rule.mended, step.mended);
    if (rule.two_keys) keep(rule.put, step.put);
    keep(rule.along_key, step.along_key);
  }
  return rule;
}

}  // namespace statescope

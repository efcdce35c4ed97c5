// A layer's and the model's numbers token by token.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "engine/analysis/head_gate_analysis.h"
#include "engine/analysis/parts.h"
#include "engine/analysis/softmax.h"
#include "engine/answers/answers.h"

namespace statescope {
namespace {

constexpr std::int64_t kLogitRows = 64;  // of one product with the head

struct Range {
  std::int64_t from = 0, to = 0;
  std::int64_t count() const { return to - from; }
};
Range inside(std::int64_t from, std::int64_t to, std::int64_t tokens) {
  from = std::clamp<std::int64_t>(from, 0, tokens);
  return {from, std::clamp(to, from, tokens)};
}

/// One slot's states of all heads, brought forward visit by visit.
class SlotReplay {
 public:
  SlotReplay(const MemoryTrace& trace, const SlotVisits& visits, const LayerState& start, std::int64_t slot)
      : trace_(trace), visits_(visits), read_(static_cast<std::size_t>(trace.V)) {
    const float* first = start.matrix(slot, 0);
    state_.assign(first, first + trace.H * trace.K * trace.V);
  }

  /// ‖S‖_F
  double norm() const { return statescope::norm(std::span<const float>(state_)); }
  /// After the visits [first, end) of one token, which are several where it was followed by an intervention: ‖S_t − S_{t−1}‖_F
  double advance(std::int64_t first, std::int64_t end) {
    if (end - first == 1) return visit(first);
    const std::vector<float> before = state_;
    for (std::int64_t i = first; i < end; ++i) visit(i);
    std::vector<float> change(state_.size());
    std::ranges::transform(state_, before, change.begin(), std::minus{});
    return statescope::norm(std::span<const float>(change));
  }

 private:
  const float* row_of(const std::vector<float>& rows, std::int64_t i, std::int64_t h, std::int64_t width) const {
    return rows.data() + (i * trace_.H + h) * width;
  }
  float decay(std::int64_t i, std::int64_t h, std::int64_t row) const {
    if (trace_.decay_width == 0) return 1;
    return std::exp(row_of(visits_.log_decay, i, h, trace_.decay_width)[trace_.decay_width == 1 ? 0 : row]);
  }

  /// ‖change‖
  double visit(std::int64_t i) {
    double squares = 0;
    for (std::int64_t h = 0; h < trace_.H; ++h) squares += trace_.rule == MemoryRule::outer_product ? outer_product(i, h) : delta(i, h);
    return std::sqrt(squares);
  }

  /// S ← diag(α) S + kᵀ v; returns ‖change‖².
  double outer_product(std::int64_t i, std::int64_t h) {
    const std::int64_t K = trace_.K, V = trace_.V;
    const float *k = row_of(visits_.k, i, h, K), *v = row_of(visits_.v, i, h, V);
    double squares = 0;
    for (std::int64_t r = 0; r < K; ++r) {
      float* row = state_.data() + (h * K + r) * V;
      const float alpha = decay(i, h, r);
      float change = 0;
      for (std::int64_t c = 0; c < V; ++c) {
        const float cell = trace_.of_cells() ? alpha * static_cast<float>(std::exp(trace_.log_decay_of_cell(visits_, i, h, r, c))) : alpha;
        const float next = cell * row[c] + k[r] * v[c];
        change += (next - row[c]) * (next - row[c]);
        row[c] = next;
      }
      squares += change;
    }
    return squares;
  }

  /// S̄ = α S;  S ← S̄ + kᵀ β (v − k S̄); with two keys S ← S̄ − eᵀ (p S) + kᵀ v. Returns ‖change‖².
  double delta(std::int64_t i, std::int64_t h) {
    const std::int64_t K = trace_.K, V = trace_.V;
    const float *k = row_of(visits_.k, i, h, K), *v = row_of(visits_.v, i, h, V);
    const bool two_keys = trace_.rule == MemoryRule::two_keys;
    const float* const p = two_keys ? row_of(visits_.erase_key, i, h, K) : nullptr;
    const float* const e = two_keys ? row_of(visits_.erase_along, i, h, K) : nullptr;
    const float beta = two_keys ? 1 : visits_.beta[static_cast<std::size_t>(i * trace_.H + h)];
    std::fill(read_.begin(), read_.end(), 0.0F);
    for (std::int64_t r = 0; r < K; ++r) {
      const float* row = state_.data() + (h * K + r) * V;
      const float weight = two_keys ? p[r] : k[r] * decay(i, h, r);
      for (std::int64_t c = 0; c < V; ++c) read_[static_cast<std::size_t>(c)] += weight * row[c];
    }
    double squares = 0;
    for (std::int64_t r = 0; r < K; ++r) {
      float* row = state_.data() + (h * K + r) * V;
      const float alpha = decay(i, h, r), write = beta * k[r], along = two_keys ? e[r] : write;
      float change = 0;
      for (std::int64_t c = 0; c < V; ++c) {
        const float next = alpha * row[c] + write * v[c] - along * read_[static_cast<std::size_t>(c)];
        change += (next - row[c]) * (next - row[c]);
        row[c] = next;
      }
      squares += change;
    }
    return squares;
  }

  const MemoryTrace& trace_;
  const SlotVisits& visits_;
  std::vector<float> state_;  // [H, K, V]
  std::vector<float> read_;   // [V]: what the delta rule's key reads
};

void add_states(LayerSeries& series, Evidence& evidence, std::int64_t layer, Range range) {
  const MemoryTrace* known = evidence.trace(layer);
  if (!known || range.count() == 0) return;
  const MemoryTrace& trace = *known;
  const LayerState start = evidence.state(layer, range.from - 1);
  series.slots = std::ssize(trace.slots);
  series.state_norm.resize(static_cast<std::size_t>(series.slots * range.count()));
  series.update_norm.resize(series.state_norm.size());
  for (std::int64_t slot = 0; slot < series.slots; ++slot) {
    const SlotVisits& visits = trace.slots[static_cast<std::size_t>(slot)];
    SlotReplay replay(trace, visits, start, slot);
    double norm = replay.norm();
    std::int64_t next = visits.until(range.from - 1);
    for (std::int64_t t = range.from; t < range.to; ++t) {
      const auto at = static_cast<std::size_t>(slot * range.count() + t - range.from);
      if (const std::int64_t end = visits.until(t); next < end) {
        series.update_norm[at] = static_cast<float>(replay.advance(next, end));
        norm = replay.norm();
        next = end;
      }
      series.state_norm[at] = static_cast<float>(norm);
      if (t % 256 == 0)
        evidence.tell((static_cast<double>(slot) + static_cast<double>(t - range.from) / static_cast<double>(range.count())) /
                      static_cast<double>(series.slots));
    }
  }
}

void add_routing(LayerSeries& series, Evidence& evidence, std::int64_t layer, Range range) {
  const std::shared_ptr<const Routing> routing = evidence.routing(layer);
  if (!routing) return;
  for (std::int64_t t = range.from; t < range.to; ++t) {
    const auto row =
        std::span(routing->gate).subspan(static_cast<std::size_t>(t * routing->partitions), static_cast<std::size_t>(routing->partitions));
    series.routing_entropy.push_back(static_cast<float>(normalised_entropy(row)));
  }
}

void add_gates(std::vector<float>& entropies, std::vector<std::int32_t>& winners, const ChannelRows* gates, Range range) {
  if (!gates) return;
  const std::int64_t heads = gates->shape.at(0);
  const auto rows =
      std::span(gates->values).subspan(static_cast<std::size_t>(range.from * heads), static_cast<std::size_t>(range.count() * heads));
  for (const HeadGate& gate : head_gates(rows, heads)) {
    entropies.push_back(static_cast<float>(gate.entropy));
    winners.push_back(static_cast<std::int32_t>(gate.winner));
  }
}

}  // namespace

LayerSeries answer(const LayerSeriesQuestion& question, Evidence& evidence) {
  evidence.layer(question.layer);
  const Range range = inside(question.from, question.to, evidence.tokens());
  LayerSeries series{.from = range.from, .to = range.to};
  const std::vector<float> residual = evidence.residual(question.layer, range.from, range.to);
  const auto D = static_cast<std::size_t>(evidence.model().hidden());
  for (std::size_t t = 0; t * D < residual.size(); ++t)
    series.residual_norm.push_back(static_cast<float>(norm(std::span(residual).subspan(t * D, D))));
  add_states(series, evidence, question.layer, range);
  add_routing(series, evidence, question.layer, range);
  add_gates(series.gate_entropy_q, series.gate_winner_q, evidence.channel(question.layer, "head_gate_q"), range);
  add_gates(series.gate_entropy_k, series.gate_winner_k, evidence.channel(question.layer, "head_gate_k"), range);
  return series;
}

LossSeries answer(const LossSeriesQuestion& question, Evidence& evidence) {
  const Range range = inside(question.from, question.to, evidence.tokens());
  const std::int64_t V = evidence.model().vocab();
  LossSeries series{.from = range.from, .to = range.to, .loss = {}, .entropy = {}};
  if (range.from == 0 && range.count() > 0) series.loss.push_back(std::numeric_limits<float>::quiet_NaN());
  // The prediction of token t is the one after token t − 1.
  for (std::int64_t from = std::max<std::int64_t>(range.from - 1, 0); from < range.to; from += kLogitRows) {
    const std::int64_t to = std::min(from + kLogitRows, range.to);
    const std::vector<float> logits = evidence.logits(from, to);
    for (std::int64_t t = from; t < to; ++t) {
      const auto row = std::span(logits).subspan(static_cast<std::size_t>((t - from) * V), static_cast<std::size_t>(V));
      const Softmax softmax(row);
      if (t + 1 < range.to)
        series.loss.push_back(
            static_cast<float>(-std::log(softmax.probability(evidence.info().tokens[static_cast<std::size_t>(t + 1)].id))));
      if (t >= range.from) series.entropy.push_back(static_cast<float>(softmax.entropy()));
    }
    evidence.tell(static_cast<double>(to - range.from) / static_cast<double>(std::max<std::int64_t>(range.count(), 1)));
  }
  return series;
}

}  // namespace statescope

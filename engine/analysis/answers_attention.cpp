// What a token reads from which token (spec §12.8).
#include <fmt/format.h>

#include "engine/analysis/answers.h"
#include "engine/analysis/attention_map.h"
#include "engine/error.h"

namespace statescope {
namespace {

Done telling(const Evidence& evidence) {
  return [&evidence](double done) { evidence.tell(done); };
}

AttentionRows softmax_attention(const AttentionQuestion& question, Evidence& evidence, std::int64_t& heads) {
  const ChannelRows *q = evidence.channel(question.layer, "q"), *k = evidence.channel(question.layer, "k");
  if (!q || !k) throw Error("this layer does not tell its queries and keys");
  const Config& config = evidence.model().plan().layers[static_cast<std::size_t>(question.layer)].config;
  heads = q->shape[0];
  SoftmaxOperands operands{.q = q->values, .k = k->values, .heads = heads, .kv_heads = k->shape[0], .d = q->shape[1]};
  operands.window = config.has("window_size") ? config.integer("window_size") : 0;
  if (config.integer("moba_topk", 0, 0, 4096) > 1)
    operands.blocks = {config.integer("moba_chunk_size", 0, 0), config.integer("moba_topk"), evidence.info().prompt_length};
  return softmax_weights(operands, std::min(question.head, heads - 1), question.from, question.to, telling(evidence));
}

/// What a slot's read-out counts with in the layer's: MoM o = Σ_m w_m o_m with w = e over the chosen ones, the shared one 1; else 1.
class SlotWeights {
 public:
  SlotWeights(Evidence& evidence, std::int64_t layer) : first_(evidence.layer(layer).has_shared_slot ? 1 : 0) {
    if (evidence.layer(layer).mixer == "mom") routing_ = evidence.routing(layer);
  }
  double of(std::int64_t token, std::int64_t slot) const {
    if (!routing_ || slot < first_) return 1;
    double sum = 0;
    for (std::int64_t n = 0; n < routing_->partitions; ++n) sum += routing_->selected_at(token, n) ? routing_->gate_at(token, n) : 0;
    return routing_->gate_at(token, slot - first_) / sum;
  }

 private:
  std::int64_t first_;
  std::shared_ptr<const Routing> routing_;
};

/// The slot asked for, or all of them: o_t = Σ_slots w Σ_s A_{t,s} v_s.
AttentionRows of_slots(const AttentionQuestion& question, Evidence& evidence, const MemoryTrace& trace) {
  if (question.slot >= 0) return memory_attention(trace, question.slot, question.head, question.from, question.to, telling(evidence));
  const SlotWeights weights(evidence, question.layer);
  const std::int64_t n = question.to - question.from, slots = std::ssize(trace.slots);
  AttentionRows sum;
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    const Done done = [&](double part) { evidence.tell((static_cast<double>(slot) + part) / static_cast<double>(slots)); };
    AttentionRows rows = memory_attention(trace, slot, question.head, question.from, question.to, done);
    for (std::int64_t t = 0; t < n; ++t) {
      const double weight = weights.of(question.from + t, slot);
      rows.before[static_cast<std::size_t>(t)] *= weight;
      for (std::int64_t s = 0; s < n; ++s) rows.weight[static_cast<std::size_t>(t * n + s)] *= weight;
    }
    if (slot == 0) {
      sum = std::move(rows);
      continue;
    }
    // |Σ| ≤ Σ|·|: the part before the window is counted slot by slot.
    for (std::int64_t t = 0; t < n; ++t) sum.before[static_cast<std::size_t>(t)] += rows.before[static_cast<std::size_t>(t)];
    for (std::int64_t i = 0; i < n * n; ++i) sum.weight[static_cast<std::size_t>(i)] += rows.weight[static_cast<std::size_t>(i)];
  }
  return sum;
}

/// Normalised linear attention: o_t = q S / (q z + 1e-10), whose second memory z has the denominator for its read-out.
void normalise(AttentionRows& rows, const MemoryTrace& z, const AttentionQuestion& question) {
  const std::int64_t n = question.to - question.from;
  for (std::int64_t t = 0; t < n; ++t) {
    const std::int64_t visit = z.slots[0].reading(question.from + t);
    const double denominator = z.slots[0].o[static_cast<std::size_t>(visit * z.H + question.head)] + 1e-10;
    rows.before[static_cast<std::size_t>(t)] /= std::abs(denominator);
    for (std::int64_t s = 0; s < n; ++s) rows.weight[static_cast<std::size_t>(t * n + s)] /= denominator;
  }
}

}  // namespace

AttentionMap answer(const AttentionQuestion& question, Evidence& evidence) {
  const std::int64_t n = question.to - question.from;
  if (n < 1 || n > AttentionMap::kMostTokens || question.from < 0 || question.to > evidence.tokens())
    throw Error(fmt::format("no window of tokens {} to {}", question.from, question.to));
  const LayerInfo& layer = evidence.layer(question.layer);
  AttentionMap map{.from = question.from, .to = question.to, .heads = layer.heads};
  AttentionRows rows;
  if (layer.memory == "softmax attention") {
    rows = softmax_attention(question, evidence, map.heads);
  } else {
    const MemoryTrace* trace = evidence.trace(question.layer);
    if (!trace) throw Error("No single weight leads from a token to what this memory reads.");
    if (question.head < 0 || question.head >= trace->H) throw Error(fmt::format("there is no head {}", question.head));
    if (question.slot >= std::ssize(trace->slots)) throw Error(fmt::format("there is no slot {}", question.slot));
    rows = of_slots(question, evidence, *trace);
    const std::vector<MemoryTrace>& all = evidence.traces(question.layer);
    if (layer.mixer == "linear_attn" && all.size() == 2) normalise(rows, all[1], question);
  }
  map.weight.assign(rows.weight.begin(), rows.weight.end());
  map.before.assign(rows.before.begin(), rows.before.end());
  return map;
}

}  // namespace statescope

// What a token reads from which token (spec §12.8).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/analysis/attention_map.h"
#include "engine/analysis/parts.h"
#include "engine/analysis/slot_weights.h"
#include "engine/analysis/state_space_parameters.h"
#include "engine/answers/answers.h"
#include "engine/answers/levels.h"
#include "engine/answers/own_values.h"
#include "engine/error.h"
#include "engine/mixers/attention/attention_pattern.h"
#include "engine/mixers/mixer.h"

namespace statescope {
namespace {

constexpr std::int64_t kMostWeights = std::int64_t{1} << 22;  // worked out at once: 32 MiB

/// g_cmp A_cmp + g_slc A_slc + g_swa A_swa (spec §18.3).
AttentionRows of_branches(SoftmaxOperands operands, const Config& config, std::int64_t head, std::span<const float> gates,
                          const AttentionPart& part, const Done& done) {
  const auto third = [&](int branch) { return [&done, branch](double fraction) { done((branch + fraction) / 3); }; };
  AttentionRows sum = compressed_weights(operands, operands.chosen_size, head, part, third(0));
  const AttentionRows chosen = softmax_weights(operands, head, part, third(1));
  operands.chosen = {};
  operands.window = config.integer("window_size");
  const AttentionRows last = softmax_weights(operands, head, part, third(2));
  const auto gated = [&](std::vector<double>& cells, const std::vector<double>& of_chosen, const std::vector<double>& of_last) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::int64_t t = part.token(static_cast<std::int64_t>(i) % part.rows.count);
      const float* g = gates.data() + (t * operands.heads + head) * 3;
      cells[i] = g[0] * cells[i] + g[1] * of_chosen[i] + g[2] * of_last[i];
    }
  };
  gated(sum.weight, chosen.weight, last.weight);
  gated(sum.before, chosen.before, last.before);
  return sum;
}

/// The config of the attention that a layer has beside its memory.
Config config_beside(std::string_view mixer, const Config& config) {
  if (mixer == "falcon_h1") return config.object("attention");
  if (mixer == "sse_swa") return config.with("window_size", config.object("attn").integer("window_size", 64));
  return mixer == "hymba" ? config : Config(nlohmann::json::object());
}

/// Memory tokens are the first that attention sees: their keys are put before those of the run.
AttentionRows attention_beside(const AttentionQuestion& question, const AttentionPart& part, Evidence& evidence, const Done& done,
                               std::int64_t& heads) {
  const LayerInfo& layer = evidence.layer(question.layer);
  const ChannelRows *q = evidence.channel(question.layer, "attention_q"), *k = evidence.channel(question.layer, "attention_k");
  if (!q || !k) throw Error(fmt::format("layer {} ({}) has no attention beside its memory", question.layer, layer.mixer));
  const Config config = config_beside(layer.mixer, evidence.model().plan().layers[static_cast<std::size_t>(question.layer)].config);
  heads = q->shape[0];
  check_index("head", question.head, heads);
  std::vector<float> keys = evidence.memory_keys(question.layer), queries;
  const std::int64_t before = std::ssize(keys) / (k->shape[0] * k->shape[1]);
  keys.insert(keys.end(), k->values.begin(), k->values.end());
  queries.resize(static_cast<std::size_t>(before * heads * q->shape[1]));  // which nobody asks for
  queries.insert(queries.end(), q->values.begin(), q->values.end());
  SoftmaxOperands operands{.q = queries, .k = keys, .heads = heads, .kv_heads = k->shape[0], .d = q->shape[1]};
  const auto pattern = AttentionPattern::of(config, question.layer, heads);
  if (pattern) operands.pattern = pattern->on_host();
  operands.window = config.has("window_size") ? config.integer("window_size") : 0;
  const AttentionPart behind{{part.rows.from + before, part.rows.step, part.rows.count}, part.from + before, part.to + before};
  return softmax_weights(operands, question.head, behind, done);
}

AttentionRows softmax_attention(const AttentionQuestion& question, const AttentionPart& part, Evidence& evidence, const Done& done,
                                std::int64_t& heads) {
  const ChannelRows *q = evidence.channel(question.layer, "q"), *k = evidence.channel(question.layer, "k");
  if (!q || !k) throw Error("this layer does not tell its queries and keys");
  const Config& config = evidence.model().plan().layers[static_cast<std::size_t>(question.layer)].config;
  heads = q->shape[0];
  const std::int64_t head = question.head;
  check_index("head", head, heads);
  SoftmaxOperands operands{.q = q->values, .k = k->values, .heads = heads, .kv_heads = k->shape[0], .d = q->shape[1]};
  if (const ChannelRows* tokens = evidence.channel(question.layer, "dsa_selected")) operands.chosen = tokens->values;
  if (const ChannelRows* blocks = evidence.channel(question.layer, "nsa_selected")) {
    operands.chosen = blocks->values;
    operands.chosen_heads = blocks->shape[0];
    operands.chosen_size = config.integer("block_size");
    return of_branches(operands, config, head, evidence.channel(question.layer, "nsa_gates")->values, part, done);
  }
  const auto pattern = AttentionPattern::of(config, question.layer, heads);
  if (pattern) operands.pattern = pattern->on_host();
  operands.window = config.has("window_size") ? config.integer("window_size") : 0;
  if (config.integer("moba_topk", 0, 0, 4096) > 1)
    operands.blocks = {config.integer("moba_chunk_size", 0, 0), config.integer("moba_topk"), evidence.info().prompt_length};
  return softmax_weights(operands, head, part, done);
}

/// A token's own value, which did not pass through the memory.
void add_skip(AttentionRows& rows, const AttentionPart& part, const std::vector<float>& weights) {
  for (std::int64_t row = 0; row < part.rows.count && !weights.empty(); ++row)
    rows.weight[static_cast<std::size_t>((part.token(row) - part.from) * part.rows.count + row)] +=
        weights[static_cast<std::size_t>(part.token(row))];
}

/// The slot asked for, or all of them: o_t = Σ_slots w Σ_s A_{t,s} v_s.
AttentionRows of_slots(const AttentionQuestion& question, const AttentionPart& part, Evidence& evidence, const MemoryTrace& trace,
                       const Done& done) {
  const std::vector<float> gate = value_gate(question.layer, question.head, trace, evidence);
  if (question.slot >= 0) return memory_attention(trace, question.slot, question.head, part, done, gate);
  const SlotWeights weights(evidence, question.layer);
  const std::int64_t slots = std::ssize(trace.slots);
  AttentionRows sum;
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    const Done done_here = [&](double fraction) { done((static_cast<double>(slot) + fraction) / static_cast<double>(slots)); };
    AttentionRows rows = memory_attention(trace, slot, question.head, part, done_here, gate);
    if (slot == 0) {
      sum.weight.resize(rows.weight.size());
      sum.before.resize(rows.before.size());
    }
    std::vector<double> weight;
    for (std::int64_t row = 0; row < part.rows.count; ++row) weight.push_back(weights.of(part.token(row), slot));
    // |Σ| ≤ Σ|·|: the part before the window is counted slot by slot.
    for (std::size_t row = 0; row < weight.size(); ++row) sum.before[row] += weight[row] * rows.before[row];
    for (std::size_t i = 0; i < rows.weight.size(); ++i) sum.weight[i] += weight[i % weight.size()] * rows.weight[i];
  }
  return sum;
}

/// Normalised linear attention: o_t = q S / (q z + 1e-10), whose second memory z has the denominator for its read-out.
void normalise(AttentionRows& rows, const MemoryTrace& z, const AttentionPart& part, std::int64_t head) {
  std::vector<double> denominator;
  for (std::int64_t row = 0; row < part.rows.count; ++row) {
    const std::int64_t visit = z.slots[0].reading(part.token(row));
    denominator.push_back(z.slots[0].o[static_cast<std::size_t>(visit * z.H + head)] + 1e-10);
    rows.before[static_cast<std::size_t>(row)] /= std::abs(denominator.back());
  }
  for (std::size_t i = 0; i < rows.weight.size(); ++i) rows.weight[i] /= denominator[i % denominator.size()];
}

AttentionRows rows_of(const AttentionQuestion& question, const AttentionPart& part, Evidence& evidence, const Done& done,
                      std::int64_t& heads) {
  const LayerInfo& layer = evidence.layer(question.layer);
  if (question.slot == AttentionQuestion::kBeside) return attention_beside(question, part, evidence, done, heads);
  if (layer.memory == "softmax attention") return softmax_attention(question, part, evidence, done, heads);
  if (has_levels(layer)) {
    AttentionRows rows = attention_of_levels(question.layer, question.slot, question.head, part, evidence, done);
    if (question.slot < 0) add_skip(rows, part, skip_weights(question.layer, question.head, {.H = layer.heads}, evidence));
    return rows;
  }
  const MemoryTrace* trace = evidence.trace(question.layer);
  const ChannelRows* dt = evidence.channel(question.layer, "dt");
  if (trace && trace->of_cells() && dt) {
    check_index("head", question.head, trace->H);
    return scan_attention(*trace, question.head, part, dt->values,
                          layer_tensor(question.layer, ".D", trace->H * trace->V, evidence.checkpoint()), done);
  }
  if (!trace || trace->of_cells() || trace->steps > 1)
    throw Error("No single weight leads from a token to what this memory reads. The history of a read tells what each token adds to it.");
  check_index("head", question.head, trace->H);
  if (question.slot >= 0) check_index("slot", question.slot, std::ssize(trace->slots));
  AttentionRows rows = of_slots(question, part, evidence, *trace, done);
  const std::vector<MemoryTrace>& all = evidence.traces(question.layer);
  if (layer.mixer == "linear_attn" && all.size() == 2) normalise(rows, all[1], part, question.head);
  add_skip(rows, part, skip_weights(question.layer, question.head, *trace, evidence));
  return rows;
}

/// Each row's weights, of `step` tokens the one farthest from 0, and what they come to.
void add_rows(AttentionMap& map, const AttentionRows& rows, const AttentionPart& part, const TokenSteps& columns) {
  for (std::int64_t row = 0; row < part.rows.count; ++row) {
    const std::size_t first = map.weight.size();
    map.weight.resize(first + static_cast<std::size_t>(columns.count));
    double all = rows.before[static_cast<std::size_t>(row)];
    for (std::int64_t s = 0; s < part.width(); ++s) {
      const double a = rows.weight[static_cast<std::size_t>(s * part.rows.count + row)];
      float& cell = map.weight[first + static_cast<std::size_t>(s / columns.step)];
      if (std::abs(a) > std::abs(cell)) cell = static_cast<float>(a);
      all += std::abs(a);
    }
    map.before.push_back(static_cast<float>(rows.before[static_cast<std::size_t>(row)]));
    map.all.push_back(static_cast<float>(all));
  }
}

void check(const AttentionQuestion& question, std::int64_t tokens) {
  const auto& [from, step, count] = question.columns;
  const auto& [first, row_step, rows] = question.rows;
  const bool columns_fit = from >= 0 && step >= 1 && count >= 1 && from + (count - 1) * step < tokens;
  const bool rows_fit = first >= from && row_step >= 1 && rows >= 1 && rows <= AttentionMap::kMostRows;
  if (!columns_fit || !rows_fit || first + (rows - 1) * row_step >= std::min(tokens, from + count * step))
    throw Error(fmt::format("no map of {} tokens from {} on", rows, first));
}

}  // namespace

/// A few rows at a time, so that long runs need no more memory than short ones.
AttentionMap answer(const AttentionQuestion& question, Evidence& evidence) {
  check(question, evidence.tokens());
  const TokenSteps &rows = question.rows, &columns = question.columns;
  const std::int64_t to = std::min(evidence.tokens(), columns.from + columns.count * columns.step);
  const std::int64_t at_once = std::max<std::int64_t>(1, kMostWeights / (to - columns.from));
  AttentionMap map{.heads = evidence.layer(question.layer).heads, .weight = {}, .before = {}, .all = {}};
  for (std::int64_t first = 0; first < rows.count; first += at_once) {
    const std::int64_t count = std::min(at_once, rows.count - first);
    const AttentionPart part{{rows.from + first * rows.step, rows.step, count}, columns.from, to};
    const Done done = [&](double fraction) {
      evidence.tell((static_cast<double>(first) + fraction * static_cast<double>(count)) / static_cast<double>(rows.count));
    };
    add_rows(map, rows_of(question, part, evidence, done, map.heads), part, columns);
  }
  return map;
}

}  // namespace statescope

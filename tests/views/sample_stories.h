// More made-up answers (sample_answers.h): needles, predictions, the model's parts, updates and histories.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/findings/findings.h"
#include "engine/snapshot.h"

namespace statescope {

/// Layers with a state forget at different speeds, with a fall in the middle.
inline NeedleStory sample_answer(const NeedleQuestion& question, const Snapshot& snapshot) {
  NeedleStory story;
  const std::vector<LayerInfo>& layers = snapshot.run->model.layers;
  const std::int64_t n = question.question - question.end + 2;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    NeedleStory::LayerFate& fate = story.layers.emplace_back();
    if (!layers[l].has_state()) continue;
    fate = {.has_memory = true,
            .clear = 0.25,
            .decayed = 0.3,
            .erased = 0.05,
            .overwritten = 0.15,
            .misrouted = 0.25,
            .read_share = -0.125,
            .kept = {},
            .curves = {},
            .places = 3};
    for (std::int64_t i = 0; i < n; ++i)
      fate.kept.push_back(1 -
                          0.35f * static_cast<float>(i) / static_cast<float>(std::max<std::int64_t>(1, n - 1)) * (i > n / 2 ? 1 : 0.5f));
    for (std::int64_t head = 0; head < std::min<std::int64_t>(2, layers[l].heads); ++head) {
      NeedleStory::Curve curve{
          .slot = layers[l].slots() - 1, .head = head, .written = 2, .read_share = std::nan(""), .token = {}, .kept = {}};
      for (std::int64_t t = question.end - 1; t <= question.question; t += 3) {
        curve.token.push_back(static_cast<std::int32_t>(t));
        curve.kept.push_back(1 / (1 + 0.1f * static_cast<float>((head + 1) * (t - question.end + 1))));
      }
      fate.curves.push_back(curve);
    }
    story.all = fate;
    const std::int64_t layer = static_cast<std::int64_t>(l);
    const char* const whats[] = {"decay", "misrouting", "overwriting", "erasure"};
    for (std::int64_t i = 0; i < 12; ++i)
      story.causes.push_back(
          {layer, i % layers[l].slots(), i % layers[l].heads, whats[i % 4], 0.3 / static_cast<double>(i + 1), question.end + i % n});
  }
  if (story.all.has_memory) story.falls = {{question.end - 1 + n / 2, 0.125}};
  return story;
}

inline Predictions sample_answer(const PredictionsQuestion& question, const Snapshot& snapshot) {
  Predictions all{.from = question.from,
                  .to = question.to,
                  .top = {},
                  .next_probability = {},
                  .next_rank = {},
                  .entropy = {},
                  .logits = {},
                  .probabilities = {}};
  for (std::int64_t t = question.from; t < question.to; ++t) {
    const bool last = t + 1 == std::ssize(snapshot.run->tokens);
    const float p = 0.5f + 0.45f * std::sin(static_cast<float>(t) * 0.7f);
    all.top.push_back({{7, " mill", p}, {8, "\n", (1 - p) / 2}});
    all.next_probability.push_back(last ? std::numeric_limits<float>::quiet_NaN() : p);
    all.next_rank.push_back(last ? -1 : static_cast<std::int32_t>(t % 23));
    all.entropy.push_back(4 * (1 - p));
    for (std::size_t k = 0; k < question.ids.size(); ++k) {
      all.logits.push_back(12 * p - 3 * static_cast<float>(k));
      all.probabilities.push_back(p / static_cast<float>(k + 1));
    }
  }
  return all;
}

inline ModelMap sample_answer(const ModelMapQuestion&, const Snapshot& snapshot) {
  ModelMap map;
  for (std::size_t l = 0; l < snapshot.run->model.layers.size(); ++l) {
    ModelMap::LayerRow row{.tensors = {}, .parameters = 1234567, .weight_bytes = 4938268};
    for (const char* name : {"attn.q_proj.weight", "attn.k_proj.weight", "attn.gk_proj.0.0.weight", "mlp.gate_proj.weight"})
      row.tensors.push_back({"model.layers." + std::to_string(l) + "." + name, {1024, 512}, "bfloat16", 1048576});
    if (l == 0) row.program = {"q [32] = x · [32, 64]ᵀ", "k [32] = x · [32, 64]ᵀ", "y [64] = readout · [64, 32]ᵀ"};
    (l == 0 ? row.state_bytes : row.state_bytes_per_token) = 4096;
    map.layers.push_back(row);
  }
  map.rest.parameters = 99000;
  return map;
}

/// Rows fade, the first column is erased, and every third cell is written.
inline Update sample_answer(const UpdateQuestion& question, const Snapshot& snapshot) {
  const LayerInfo& layer = snapshot.run->model.layers[static_cast<std::size_t>(question.layer)];
  Update update{layer.slots(), layer.rows, layer.columns, {}, {}, {}, {}};
  for (std::int64_t i = 0; i < layer.slots() * layer.rows * layer.columns; ++i) {
    update.decayed.push_back(-0.01f * static_cast<float>(i % 11));
    update.erased.push_back(i % layer.columns == 0 ? 0.2f : 0);
    update.written.push_back(i % 3 == 0 ? 0.5f : 0);
  }
  update.write_weight.assign(static_cast<std::size_t>(layer.slots() * layer.rows), 0.25f);
  return update;
}

inline HeadState sample_answer(const StateQuestion& question, const Snapshot& snapshot) {
  const LayerInfo& layer = snapshot.run->model.layers[static_cast<std::size_t>(question.layer)];
  HeadState state{layer.slots(), layer.heads, layer.rows, layer.columns, {}};
  state.values.assign(static_cast<std::size_t>(state.slots * state.rows * state.columns), 0.125f);
  return state;
}

inline LayerState sample_answer(const LayerStateQuestion& question, const Snapshot& snapshot) {
  const LayerInfo& layer = snapshot.run->model.layers[static_cast<std::size_t>(question.layer)];
  LayerState state{layer.slots(), layer.heads, layer.rows, layer.columns, {}};
  state.values.assign(static_cast<std::size_t>(state.slots * state.heads * state.rows * state.columns), 0.125f);
  return state;
}

/// Every token up to the one asked about, larger and of changing sign towards the end.
inline History sample_answer(const HistoryQuestion& question, const Snapshot&) {
  History history;
  for (std::int64_t t = 0; t <= question.token; ++t) {
    const float part = (t % 3 == 1 ? -0.1f : 0.2f) / static_cast<float>(1 + question.token - t);
    history.token.push_back(static_cast<std::int32_t>(t));
    history.coefficient.push_back(2 * part);
    history.written.push_back(0.4f);
    history.contribution.push_back(part);
    history.sum += part;
  }
  history.shown = history.sum;
  return history;
}

}  // namespace statescope

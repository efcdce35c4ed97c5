// Small runs made by hand: an SSE-like recurrence with keys, values and gates from a fixed generator, on a needle prompt.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/snapshot.h"

namespace statescope {

struct SampleShape {
  std::int64_t tokens = 40;
  std::int64_t partitions = 4;  // N; 0: one plain memory
  std::int64_t chosen = 1;      // W
  std::int64_t heads = 2, rows = 16, columns = 16;
  const char* memory = "decayed outer product";
  std::int64_t experts = 0, chosen_experts = 4;  // of layer 1
};

inline std::vector<TokenInfo> sample_tokens(std::int64_t count) {
  static const char* const words[] = {"the",  " grass", " was", " wet", " .",   " the", " code", " of",   " anna", " is",
                                      " 4",   " 1",     " 7",   " 7",   " .",   " the", " old",  " mill", " was",  " by",
                                      " the", " river", " .",   "\n",   "what", " is",  " the",  " code", " of",   " anna",
                                      " ?",   " 4",     " 1",   " 7",   " 7",   " .",   " rain", " fell", " on",   " it"};
  std::vector<TokenInfo> tokens;
  for (std::int64_t t = 0; t < count; ++t) tokens.push_back({static_cast<std::int32_t>(t % 40), words[t % 40]});
  return tokens;
}

inline LayerInfo sample_layer(const SampleShape& shape) {
  LayerInfo layer{.mixer = shape.partitions > 0 ? "sse" : "gla",
                  .memory = shape.memory,
                  .recurrence = "S_t = diag(α_t) S_{t−1} + k_tᵀ v_t (GLA eq. 3)",
                  .slot_names = {shape.partitions > 0 ? "shared" : "state"},
                  .heads = shape.heads,
                  .rows = shape.rows,
                  .columns = shape.columns,
                  .partitions = shape.partitions,
                  .has_shared_slot = shape.partitions > 0};
  for (std::int64_t n = 1; n <= shape.partitions; ++n) layer.slot_names.push_back(std::to_string(n));
  return layer;
}

inline LayerInfo sample_attention_layer() {
  return {.mixer = "softmax_attention", .memory = "softmax attention", .slot_names = {}, .attention_heads = 2};
}

/// Layer 0 is the sample's, layer 1 softmax attention, with experts behind it where the sample has some.
inline std::shared_ptr<const RunInfo> sample_run(const SampleShape& shape) {
  RunInfo run;
  run.model = {.name = "sample", .family = "sse", .device = "CPU", .layers = {sample_layer(shape), sample_attention_layer()}};
  if (shape.experts > 0) run.model.layers[1].experts = shape.experts, run.model.layers[1].chosen_experts = shape.chosen_experts;
  run.tokens = sample_tokens(shape.tokens);
  run.spans = {{SpanKind::needle, 5, 14}, {SpanKind::question, 24, 31}, {SpanKind::answer, 31, 35}};
  run.prompt_length = std::min<std::int64_t>(shape.tokens, 31);
  return std::make_shared<const RunInfo>(run);
}

/// The same as a branch that parts at token 3.
inline std::shared_ptr<const RunInfo> sample_branch(const std::shared_ptr<const RunInfo>& run) {
  RunInfo branch = *run;
  branch.branch = {.number = 1, .parent = 0, .from = 3, .interventions = {"zero row 3 of head 1 of partition 2 of layer 0 at 2"}};
  return std::make_shared<const RunInfo>(std::move(branch));
}

class Sample {
 public:
  explicit Sample(SampleShape shape) : shape_(shape), run_(sample_run(shape)), random_(7) {
    if (shape.partitions == 0) return;
    Routing routing{.partitions = shape.partitions, .gate = {}, .selected = {}};
    for (std::int64_t t = 0; t < shape.tokens; ++t) route(routing);
    routing_ = std::make_shared<const Routing>(routing);
  }

  const std::shared_ptr<const RunInfo>& run() const { return run_; }

  /// A head of layer 0 after `token`, by S_t = a S_{t−1} + e k_tᵀ v_t on the chosen slots.
  Snapshot at(std::int64_t token, std::int64_t head = 0) const {
    HeadState state{1 + shape_.partitions, shape_.heads, shape_.rows, shape_.columns, {}};
    state.values.assign(static_cast<std::size_t>(state.slots * state.rows * state.columns), 0.0f);
    HeadState before = state;
    for (std::int64_t t = 0; t <= token; ++t) {
      before = state;
      step(state, head, t);
    }
    return {
        .run = run_, .layer = 0, .head = head, .token = token, .state = state, .before = before, .routing = routing_, .predictions = {}};
  }

  /// Layer 1: softmax attention, no state.
  Snapshot attention_at(std::int64_t token) const {
    return {.run = run_, .layer = 1, .token = token, .state = {}, .before = {}, .routing = nullptr, .predictions = {}};
  }

 private:
  float uniform() { return static_cast<float>(random_() % 10007) / 10007.0f; }

  void route(Routing& routing) {
    std::vector<float> gate;
    float sum = 0;
    for (std::int64_t n = 0; n < routing.partitions; ++n) sum += gate.emplace_back(std::exp(4 * uniform()));
    std::vector<std::uint8_t> selected(gate.size());
    for (std::int64_t w = 0; w < shape_.chosen; ++w) {
      std::size_t best = gate.size();
      for (std::size_t n = 0; n < gate.size(); ++n) {
        if (!selected[n] && (best == gate.size() || gate[n] > gate[best])) best = n;
      }
      selected[best] = 1;
    }
    for (const float e : gate) routing.gate.push_back(e / sum);
    routing.selected.insert(routing.selected.end(), selected.begin(), selected.end());
  }

  void step(HeadState& state, std::int64_t head, std::int64_t t) const {
    for (std::int64_t slot = 0; slot < state.slots; ++slot) {
      if (slot > 0 && !routing_->selected_at(t, slot - 1)) continue;
      const float e = slot > 0 ? routing_->gate_at(t, slot - 1) : 1.0f;
      write(state, slot, head, t, e);
    }
  }

  static void write(HeadState& state, std::int64_t slot, std::int64_t head, std::int64_t t, float e) {
    float* s = state.values.data() + slot * state.rows * state.columns;
    for (std::int64_t r = 0; r < state.rows; ++r) {
      const float k = std::exp(-2.0f * static_cast<float>((r * 5 + t * 7 + head * 3) % state.rows) / 3.0f);
      for (std::int64_t c = 0; c < state.columns; ++c) {
        const float v = std::sin(static_cast<float>((t + 1) * (c + 2)) * 0.7f + static_cast<float>(head));
        s[r * state.columns + c] = 0.96f * s[r * state.columns + c] + e * k * v;
      }
    }
  }

  SampleShape shape_;
  std::shared_ptr<const RunInfo> run_;
  std::shared_ptr<const Routing> routing_;
  std::mt19937 random_;
};

}  // namespace statescope

// What the tests of branches share: small models, runs of them, and all that a run has to show after a token.
#pragma once

#include "engine/run/branches.h"
#include "engine/run/sampling.h"
#include "tests/engine/model/golden.h"
#include "tests/engine/model/small_models.h"

namespace statescope::test::branch_cases {

inline constexpr std::int64_t kPrompt = 40, kTokens = 46, kAt = 21;

inline json config_of(const std::string& name) {
  for (const SmallModel& small : small_models()) {
    if (small.name == name) return small.config;
  }
  throw std::logic_error("no small model " + name);
}

inline std::shared_ptr<Model> load(const json& config) { return Model::load(random_checkpoint(Config(config), 5), make_cpu_backend(1)); }

/// A prompt, then what the model generates.
inline std::shared_ptr<Run> read_run(const std::shared_ptr<Model>& model, std::uint32_t seed = 7,
                                     RunOptions options = {.keyframe_interval = 16}) {
  auto run = std::make_shared<Run>(model, options);
  run->read(some_ids(kPrompt, model->vocab(), seed), kPrompt);
  while (run->tokens() < kTokens) {
    const std::int32_t id = most_probable_id(run->logits(run->tokens() - 1));
    run->read({&id, 1}, kPrompt);
  }
  return run;
}

inline bool near(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (std::equal(a.begin(), a.end(), b.begin()) || relative_error(a, b) <= 2e-5);
}

/// All that a run has to show after a token.
struct Shown {
  std::vector<std::vector<float>> states, others;  // [layers]: the first memory; what else is kept, normalisers among it
  std::vector<float> logits;
  bool operator==(const Shown&) const = default;
};
inline std::vector<float> other_memories(Backend& backend, const MixerState& state) {
  std::vector<float> all;
  for (std::size_t m = 1; m < state.memory.size(); ++m) {
    const std::vector<float> values = host_copy(backend, state.memory[m]);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}
inline Shown shown(Run& run, std::int64_t token) {
  Shown all{{}, {}, run.logits(token)};
  for (std::int64_t layer = 0; layer < run.model().layers(); ++layer) {
    all.states.push_back(run.state(layer, token).values);
    all.others.push_back(other_memories(run.model().backend(), run.mixer_state(layer, token + 1)));
  }
  return all;
}
inline std::vector<Shown> shown(Run& run, std::int64_t from, std::int64_t to) {
  std::vector<Shown> all;
  for (std::int64_t token = from; token < to; ++token) all.push_back(shown(run, token));
  return all;
}

inline bool near(const Shown& a, const Shown& b) {
  bool agree = near(a.logits, b.logits);
  for (std::size_t l = 0; l < a.states.size(); ++l) agree = agree && near(a.states[l], b.states[l]) && near(a.others[l], b.others[l]);
  return agree;
}

/// Multiplies what an address names, number by number.
inline void scale_by_hand(MixerState& state, std::int64_t slot, std::int64_t head, std::int64_t row, float factor) {
  for (std::size_t m = 0; m < state.memory.size(); ++m) {
    const Tensor& memory = state.memory[m];
    const bool normaliser = memory.shape[3] == 1;
    if (m > 0 && row >= 0 && !normaliser) continue;
    for (std::int64_t s = 0; s < memory.shape[0]; ++s)
      for (std::int64_t h = 0; h < memory.shape[1]; ++h)
        for (std::int64_t r = 0; r < memory.shape[2]; ++r)
          for (std::int64_t c = 0; c < memory.shape[3]; ++c) {
            if ((slot >= 0 && s != slot) || (head >= 0 && h != head) || (row >= 0 && r != row)) continue;
            memory.f32()[((s * memory.shape[1] + h) * memory.shape[2] + r) * memory.shape[3] + c] *= factor;
          }
  }
}

}  // namespace statescope::test::branch_cases

// Made-up answers to what views ask, of the right sizes, with peaks, gaps and extremes: one overload per question.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/findings.h"
#include "engine/snapshot.h"
#include "tests/views/sample_stories.h"

namespace statescope {

/// In [0, 1), the same for the same index.
inline float sample_noise(std::int64_t index) {
  const double x = std::sin(static_cast<double>(index + 1) * 12.9898) * 43758.5453;
  return static_cast<float>(x - std::floor(x));
}

inline const LayerInfo& sample_layer_of(const Snapshot& snapshot, std::int64_t layer) {
  return snapshot.run->model.layers[static_cast<std::size_t>(layer)];
}

/// Every row of its own speed, the last ones without decay; slot 0 is visited by every token, slot n by every fourth.
inline Decay sample_answer(const DecayQuestion& question, const Snapshot& snapshot) {
  const LayerInfo& layer = sample_layer_of(snapshot, question.layer);
  Decay decay;
  decay.axis = Decay::Axis::rows;
  decay.channels = layer.rows;
  decay.measured = std::min<std::int64_t>(128, std::ssize(snapshot.run->tokens));
  for (std::int64_t t = question.from; t < question.to; ++t) {
    if (question.slot == 0 || t % 4 == question.slot % 4) decay.token.push_back(static_cast<std::int32_t>(t));
  }
  std::vector<double> sum(static_cast<std::size_t>(layer.rows));
  for (const std::int32_t t : decay.token) {
    for (std::int64_t r = 0; r < layer.rows; ++r) {
      const float speed = 2.0f * static_cast<float>(layer.rows - 1 - r) / static_cast<float>(layer.rows);
      decay.log_decay.push_back(-speed * sample_noise(t * 31 + r) * sample_noise(t));
      decay.log_sum.push_back(sum[static_cast<std::size_t>(r)] += decay.log_decay.back());
    }
  }
  for (std::int64_t r = 0; r < layer.rows; ++r) {
    const bool forever = r == layer.rows - 1;
    decay.half_life.push_back(forever ? std::numeric_limits<float>::infinity() : 1.5f * static_cast<float>(r + 1));
    decay.width.push_back(forever ? static_cast<float>(std::ssize(snapshot.run->tokens)) : 9.5f * static_cast<float>(r));
    decay.censored.push_back(r > layer.rows / 2 ? r : 0);
  }
  return decay;
}

/// All that can be answered here.
inline Findings sample_findings(const std::vector<Question>& questions, const Snapshot& snapshot) {
  Findings findings;
  for (const Question& question : questions) {
    std::visit(
        [&]<class Q>(const Q& asked) {
          if constexpr (requires { sample_answer(asked, snapshot); }) findings.answer(asked, sample_answer(asked, snapshot));
        },
        question);
  }
  return findings;
}

}  // namespace statescope

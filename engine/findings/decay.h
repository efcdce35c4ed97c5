#pragma once

#include <cstdint>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {

/// How fast a slot forgets (spec §12.3, §12.4). Its channels are what decays on its own: the key rows or value columns of the head asked
/// for, or, where a head decays as one, all heads. All of the gates alone: what interventions did to a state is not in it.
struct Decay {
  static constexpr Accuracy accuracy = kRecomputed;
  enum class Axis { none, heads, rows, columns };
  Axis axis = Axis::none;  // none: this memory never forgets; everything below is empty
  std::int64_t channels = 0;
  std::vector<std::int32_t> token;     // [n] of those asked for, that visited the slot: the others leave it as it is
  std::vector<float> log_decay;        // [n, channels] log α, nat, ≤ 0
  std::vector<double> log_sum;         // [n, channels] of log α up to and including token[i]: Δ_{t,s} = exp(log_sum_t − log_sum_s)
  std::vector<float> half_life;        // [channels] tokens, over the whole run; infinite without decay
  std::vector<float> width;            // [channels] receptive field at θ = 0.001, tokens: mean of the run's last `measured`
  std::vector<std::int64_t> censored;  // [channels] of how many of those the first token of the run is still within it
  std::int64_t measured = 0;
};

/// Half-life and receptive field are of the whole run, the rest of its tokens in [from, to), at most 512.
struct DecayQuestion {
  std::int64_t layer = 0, slot = 0, head = 0, from = 0, to = 0;
  using Answer = Decay;
  bool operator==(const DecayQuestion&) const = default;
};

}  // namespace statescope

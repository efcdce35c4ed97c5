// The parameters of a state space that is the same for every token, as the checkpoint has them (spec §17.17).
#pragma once

#include <span>
#include <vector>

#include "engine/analysis/evidence.h"

namespace statescope {

struct StateSpaceParameters {
  std::int64_t states = 0, channels = 0;  // N of each channel, of conjugate pairs one; no channels: the layer is another one
  bool diagonal = false;
  std::vector<float> log_dt;  // [channels]
  std::vector<float> A;       // dense [N, N]; diagonal [channels, N] log(−Re A)
  std::vector<float> A_imag;  // diagonal [channels, N]
  std::vector<float> B;       // dense [N]
  std::vector<float> C;       // dense [channels, N]; diagonal [channels, N, 2]

  double step(std::int64_t channel) const;  // Δ = exp(log_dt)
};
StateSpaceParameters state_space_parameters(std::int64_t layer, const Evidence& evidence);

/// The states of one channel of a dense one, behind a token.
std::vector<double> states_of_channel(const LayerState& state, std::int64_t channel);
/// û of the input so many tokens ago, where A is HiPPO's: it was held for one step, whose middle this is.
double remembered_input(std::span<const double> X, double step, std::int64_t ago);

}  // namespace statescope

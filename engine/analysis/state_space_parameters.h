// The parameters of a state space that is the same for every token (spec §17.17), as the checkpoint has them, and its eigenvalues.
#pragma once

#include <complex>
#include <string_view>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/snapshot.h"

namespace statescope {

/// The first tensor of a layer that ends so and has that many numbers; empty: none.
std::vector<float> layer_tensor(std::int64_t layer, std::string_view ending, std::int64_t size, const Checkpoint& checkpoint);

struct StateSpaceParameters {
  std::int64_t states = 0, channels = 0;  // N of each channel, of conjugate pairs one; no channels: the layer is another one
  bool diagonal = false;
  std::vector<float> log_dt;  // [channels]
  std::vector<float> A;       // dense [N, N]; diagonal [channels, N] log(−Re A)
  std::vector<float> A_imag;  // diagonal [channels, N]
  std::vector<float> B;       // dense [N]
  std::vector<float> C;       // dense [channels, N]; diagonal [channels, N, 2]

  double step(std::int64_t channel) const;  // Δ = exp(log_dt)
  /// λ(A) of a channel [N], where A is diagonal.
  std::vector<std::complex<double>> diagonal_of(std::int64_t channel) const;
};
bool is_state_space(const LayerInfo& layer);
StateSpaceParameters state_space_parameters(std::int64_t layer, const LayerInfo& info, const Checkpoint& checkpoint);

/// Δ λ(A) of every channel [channels, N], of which a step keeps exp; NaN where an eigenvalue cannot be told (eigenvalues.h).
std::vector<std::complex<double>> held_eigenvalues(const StateSpaceParameters& space);
/// ln 2 / (−Δ Re λ), tokens; infinite where it does not decay
double half_life(std::complex<double> held);

}  // namespace statescope

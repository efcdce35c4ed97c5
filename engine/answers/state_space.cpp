#include "engine/answers/state_space.h"

#include <cmath>

#include "engine/analysis/legendre.h"
#include "engine/answers/own_values.h"

namespace statescope {

double StateSpaceParameters::step(std::int64_t channel) const { return std::exp(double{log_dt[static_cast<std::size_t>(channel)]}); }

StateSpaceParameters state_space_parameters(std::int64_t layer, const Evidence& evidence) {
  const LayerInfo& info = evidence.layer(layer);
  if (info.memory != "state space") return {};
  const std::int64_t N = info.rows, channels = info.columns;
  const auto tensor = [&](std::string_view ending, std::int64_t size) { return layer_tensor(layer, ending, size, evidence); };
  StateSpaceParameters all{.states = N, .channels = channels, .diagonal = info.slots() == 2, .log_dt = tensor(".kernel.log_dt", channels)};
  if (all.diagonal) {
    all.A = tensor(".kernel.log_A_real", channels * N);
    all.A_imag = tensor(".kernel.A_imag", channels * N);
    all.C = tensor(".kernel.C", channels * N * 2);
  } else {
    all.A = tensor(".kernel.A", N * N);
    all.B = tensor(".kernel.B", N);
    all.C = tensor(".kernel.C", channels * N);
  }
  return all;
}

std::vector<double> states_of_channel(const LayerState& state, std::int64_t channel) {
  std::vector<double> X;
  for (std::int64_t r = 0; r < state.rows; ++r) X.push_back(state.matrix(0, 0)[r * state.columns + channel]);
  return X;
}

double remembered_input(std::span<const double> X, double step, std::int64_t ago) {
  return legendre_signal(X, (static_cast<double>(ago) + 0.5) * step);
}

}  // namespace statescope

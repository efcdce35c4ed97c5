#include "engine/analysis/state_space_parameters.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "engine/analysis/eigenvalues.h"
#include "engine/config/weights.h"

namespace statescope {

std::vector<float> layer_tensor(std::int64_t layer, std::string_view ending, std::int64_t size, const Checkpoint& checkpoint) {
  const std::string scope = fmt::format("layers.{}.", layer);
  for (const StoredTensor& tensor : checkpoint.tensors) {
    if (tensor.name.find(scope) == tensor.name.npos || !tensor.name.ends_with(ending) || tensor.size() != size) continue;
    std::vector<float> numbers(static_cast<std::size_t>(size));
    widen(numbers.data(), tensor);
    return numbers;
  }
  return {};
}

double StateSpaceParameters::step(std::int64_t channel) const { return std::exp(double{log_dt[static_cast<std::size_t>(channel)]}); }

std::vector<std::complex<double>> StateSpaceParameters::diagonal_of(std::int64_t channel) const {
  std::vector<std::complex<double>> all;
  for (std::int64_t n = 0; n < states; ++n) {
    const auto at = static_cast<std::size_t>(channel * states + n);
    all.emplace_back(-std::exp(double{A[at]}), double{A_imag[at]});
  }
  return all;
}

bool is_state_space(const LayerInfo& layer) { return layer.memory == "state space"; }

StateSpaceParameters state_space_parameters(std::int64_t layer, const LayerInfo& info, const Checkpoint& checkpoint) {
  if (!is_state_space(info)) return {};
  const std::int64_t N = info.rows, channels = info.columns;
  const auto tensor = [&](std::string_view ending, std::int64_t size) { return layer_tensor(layer, ending, size, checkpoint); };
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

std::vector<std::complex<double>> held_eigenvalues(const StateSpaceParameters& space) {
  std::vector<std::complex<double>> all, lambda;
  if (!space.diagonal) lambda = eigenvalues(space.A);
  for (std::int64_t c = 0; c < space.channels; ++c) {
    if (space.diagonal) lambda = space.diagonal_of(c);
    for (const std::complex<double>& one : lambda) all.push_back(space.step(c) * one);
  }
  return all;
}

double half_life(std::complex<double> held) {
  return held.real() >= 0 ? std::numeric_limits<double>::infinity() : -std::numbers::ln2 / held.real();
}

}  // namespace statescope

// What a state space that is the same for every token keeps, for how long, and what its states still say of the input (spec §17.17).
#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>

#include "engine/analysis/legendre.h"
#include "engine/answers/observables_groups.h"
#include "engine/answers/state_space.h"
#include "engine/mixers/recurrent/hold.h"

namespace statescope {
namespace {

/// put(l, K_l) of a channel for every l from `first` to `last`: K_l = 2 Re Σ_n C_n Ā_n^l B̄_n
template <class Put>
void diagonal_kernel(const StateSpaceParameters& space, std::int64_t channel, std::int64_t first, std::int64_t last, const Put& put) {
  const std::vector<std::complex<double>> A = space.diagonal_of(channel);
  const double dt = space.step(channel);
  for (std::int64_t l = first; l <= last; ++l) {
    std::complex<double> sum = 0;
    for (std::size_t n = 0; n < A.size(); ++n) {
      const std::size_t at = 2 * (static_cast<std::size_t>(channel) * A.size() + n);
      sum +=
          std::complex<double>(space.C[at], space.C[at + 1]) * std::exp(static_cast<double>(l) * dt * A[n]) * zero_order_hold(A[n], dt).B;
    }
    put(l, 2 * sum.real());
  }
}

/// The same of a dense A: K_l = C Ā^l B̄
template <class Put>
void dense_kernel(const StateSpaceParameters& space, std::int64_t channel, std::int64_t first, std::int64_t last, const Put& put) {
  const Held held = zero_order_hold(space.A, space.B, space.step(channel));
  const auto C = space.C.begin() + channel * space.states;
  std::vector<double> x = held.B, next(x.size());
  for (std::int64_t l = 0; l <= last; ++l) {
    if (l >= first) put(l, std::inner_product(x.begin(), x.end(), C, 0.0));
    for (std::size_t n = 0; n < x.size(); ++n)
      next[n] = std::inner_product(x.begin(), x.end(), held.A.begin() + static_cast<std::ptrdiff_t>(n * x.size()), 0.0);
    std::swap(x, next);
  }
}

}  // namespace

ObservedGroup observe_eigenvalues(const LayerSpan& span, Evidence& evidence) {
  const StateSpaceParameters space = state_space_parameters(span.layer, evidence);
  if (space.channels == 0) return {};
  const std::vector<std::int64_t> shape{space.states, space.channels};
  Observed modulus(span, shape), turn(span, shape), half(span, shape);
  const std::vector<std::complex<double>> held = held_eigenvalues(space);
  for (std::int64_t c = 0; c < space.channels; ++c) {
    for (std::int64_t n = 0; n < space.states; ++n) {
      const std::complex<double> one = held[static_cast<std::size_t>(c * space.states + n)];
      for (std::int64_t t = span.from; t < span.to; ++t) {
        modulus.at(t, n, c) = static_cast<float>(std::exp(one.real()));
        turn.at(t, n, c) = static_cast<float>(one.imag());
        half.at(t, n, c) = static_cast<float>(half_life(one));
      }
    }
  }
  return {modulus, turn, half};
}

ObservedGroup observe_kernel(const LayerSpan& span, Evidence& evidence) {
  const StateSpaceParameters space = state_space_parameters(span.layer, evidence);
  if (space.channels == 0) return {};
  Observed kernel(span, {space.channels});
  const std::int64_t first = std::max<std::int64_t>(span.from - span.since, 0), last = span.to - 1 - span.since;
  for (std::int64_t c = 0; c < space.channels && last >= 0; ++c) {
    const auto put = [&](std::int64_t l, double K) { kernel.at(span.since + l, c) = static_cast<float>(K); };
    space.diagonal ? diagonal_kernel(space, c, first, last, put) : dense_kernel(space, c, first, last, put);
    evidence.tell(static_cast<double>(c + 1) / static_cast<double>(space.channels));
  }
  return {kernel};
}

ObservedGroup observe_remembered(const LayerSpan& span, Evidence& evidence) {
  const StateSpaceParameters space = state_space_parameters(span.layer, evidence);
  if (space.channels == 0 || space.diagonal || !is_legendre(space.A, space.B)) return {};
  Observed signal(span, {space.channels});
  for (std::int64_t t = std::max(span.from, span.since); t < span.to; ++t) {
    const HeadState state = evidence.head_state(span.layer, 0, t);
    for (std::int64_t c = 0; c < space.channels; ++c)
      signal.at(t, c) = static_cast<float>(remembered_input(states_of_channel(state, c), space.step(c), t - span.since));
    evidence.tell(static_cast<double>(t + 1 - span.from) / static_cast<double>(span.count()));
  }
  return {signal};
}

}  // namespace statescope

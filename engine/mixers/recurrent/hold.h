// Discretisation of a state space by zero-order hold.
#pragma once

#include <complex>
#include <vector>

namespace statescope {

/// Ā [N, N] and B̄ [N].
struct Held {
  std::vector<double> A, B;
};
/// Ā = e^{Δ A},   B̄ = ∫₀^Δ e^{s A} ds · B, which is A^{-1} (Ā − I) B where A has an inverse. A [N, N], B [N].
Held zero_order_hold(const std::vector<float>& A, const std::vector<float>& B, double dt);

/// The same of one state, with B = 1.
struct HeldState {
  std::complex<double> A, B;
};
HeldState zero_order_hold(std::complex<double> A, double dt);

}  // namespace statescope

// Discretisation of a state space by zero-order hold.
#pragma once

#include <vector>

namespace statescope {

/// Ā [N, N] and B̄ [N].
struct Held {
  std::vector<double> A, B;
};
/// Ā = e^{Δ A},   B̄ = ∫₀^Δ e^{s A} ds · B, which is A^{-1} (Ā − I) B where A has an inverse. A [N, N], B [N].
Held zero_order_hold(const std::vector<float>& A, const std::vector<float>& B, double dt);

}  // namespace statescope

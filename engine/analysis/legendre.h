// HiPPO's matrix, and the signal that coefficients of Legendre polynomials stand for (spec §17.17).
#pragma once

#include <span>

namespace statescope {

/// How far A [N, N] and B [N] are from those of HiPPO-LegS: A_nk = −√(2n+1) √(2k+1) for n > k, −(n+1) for n = k, else 0; B_n = √(2n+1)
/// (S4 eq. 2). The largest difference over the number's size, where that is 0 over the diagonal's; infinite where sizes do not fit.
double off_legendre(std::span<const float> A, std::span<const float> B);
/// Whether they are those, up to the rounding of float16.
bool is_legendre(std::span<const float> A, std::span<const float> B);

/// û = Σ_n X_n √(2n+1) P_n(2 e^{−s} − 1), s ≥ 0 how long ago in units of 1 / Δ tokens.
double legendre_signal(std::span<const double> X, double s);

}  // namespace statescope

// Eigenvalues of a matrix that need not be symmetric.
#pragma once

#include <complex>
#include <span>
#include <vector>

namespace statescope {

/// Of A [N, N], those of the largest real part first; of a triangular matrix its diagonal, exactly. NaN where rounding in double precision
/// may move one by more than a thousandth of its size, as it may far from normal matrices. Throws std::invalid_argument if A is not square.
std::vector<std::complex<double>> eigenvalues(std::span<const float> A);

}  // namespace statescope

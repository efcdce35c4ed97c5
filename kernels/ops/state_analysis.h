// Analyses of many states at once: how alike their rows are, and their singular values (spec §12.5).
#pragma once

#include "kernels/tensor.h"

namespace statescope {

/// C_ij = ⟨z_i, z_j⟩ / (‖z_i‖ ‖z_j‖), 0 where a row's norm is below 1e-12     (SSE Definition 1)
/// cosine [B, R, R], z [B, R, V], both float32 and contiguous. Throws std::invalid_argument if shapes do not fit.
void row_cosine(Tensor cosine, ConstTensor z);

/// σ [B, n], largest first, of z [B, R, V], n = min(R, V); both float32 and contiguous. They are the roots of the eigenvalues of ZᵀZ or ZZᵀ
/// in double precision: right to about 1e-8 of the largest. All NaN where z has a number that is not finite. Throws std::invalid_argument.
void singular_values(Tensor sigma, ConstTensor z);

/// Throws std::invalid_argument where the operands of the two do not fit.
void check_row_cosine(ConstTensor cosine, ConstTensor z);
void check_singular_values(ConstTensor sigma, ConstTensor z);

}  // namespace statescope

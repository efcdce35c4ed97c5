// What logits say about the next token, row by row, where the logits are: rows of a large vocabulary are too long to be sent elsewhere.
#pragma once

#include <cstdint>

#include "kernels/tensor.h"

namespace statescope {

/// nll_t = −log softmax(z_t)[id_t], nat; nll [T], logits z [T, V], both float32, ids [T] in [0, V). Throws std::invalid_argument if shapes
/// do not fit, std::out_of_range for an id.
void next_token_nll(Tensor nll, ConstTensor logits, const std::int32_t* ids);

/// distance_t = ½ Σ_v |softmax(a_t)_v − softmax(b_t)_v|, the total variation: 0 the same, 1 nothing in common. distance [T], a and b [T,
/// V], all float32. Throws std::invalid_argument.
void total_variation(Tensor distance, ConstTensor a, ConstTensor b);

/// ‖x_t‖; norms [T], x [T, n], both float32. Throws std::invalid_argument.
void row_norms(Tensor norms, ConstTensor x);

/// Throw as the operations do.
void check_next_token_nll(ConstTensor nll, ConstTensor logits, const std::int32_t* ids);
void check_total_variation(ConstTensor distance, ConstTensor a, ConstTensor b);
void check_row_norms(ConstTensor norms, ConstTensor x);

}  // namespace statescope

// The product of rows of bfloat16, by the distribution's oneDNN, where the processor multiplies this type itself.
#pragma once

#include "kernels/tensor.h"

namespace statescope {

/// What it does so with: "AVX512-BF16" or "AMX". Null where it does not, or oneDNN was not there when this was built.
const char* bfloat16_instructions();

/// y = x · weightᵀ with sums in float32: y [T, out] float32; x [T, in] and weight [out, in] bfloat16, at any alignment; none of them empty.
/// Numbers below 1e-38 count as 0. One thread, the same bits in every run. Only where there are instructions for it. Throws dnnl::error.
void multiply_bfloat16(Tensor y, ConstTensor x, ConstTensor weight);

}  // namespace statescope

// The product of rows of bfloat16, by the distribution's oneDNN, where the processor multiplies this type itself.
#pragma once

#include "kernels/tensor.h"

namespace statescope {

/// The instructions that it uses: "AVX512-BF16" or "AMX". Null where the processor has none, or oneDNN was not there at build time.
const char* bfloat16_instructions();

/// y = x · weightᵀ with sums in float32: y [T, out] float32; x [T, in] and weight [out, in] bfloat16, at any alignment; none of them empty.
/// Numbers below 1e-38 count as 0. One thread, the same bits in every run. Only where there are instructions for it. Throws dnnl::error.
void multiply_bfloat16(Tensor y, ConstTensor x, ConstTensor weight);

}  // namespace statescope

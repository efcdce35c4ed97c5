// Products in which every head has a weight of its own.
#pragma once

#include "kernels/tensor.h"

namespace statescope {

/// y[t·H + h] = W_h x[t·H + h], or W_hᵀ x[t·H + h] where `transposed`; W_h [m, n]: the rows from h·m on of the weight. y and x float32.
struct LinearByHead {
  Tensor y;            // [T·H, m]; transposed [T·H, n]
  ConstTensor x;       // [T·H, n]; transposed [T·H, m]
  ConstTensor weight;  // [H·m, n] float32, float16 or bfloat16
  std::int64_t heads = 1;
  bool transposed = false;
};

/// Throws std::invalid_argument if shapes do not fit.
void check_linear_by_head(const LinearByHead& op);

/// The result of a row does not depend on the number of threads. Throws std::invalid_argument if shapes do not fit.
void linear_by_head(const LinearByHead& op);

}  // namespace statescope

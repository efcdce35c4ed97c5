// The short causal convolution in front of q, k and v (spec §1.5).
#pragma once

#include "kernels/ops/elementwise.h"
#include "kernels/ops/memory.h"

namespace statescope {

/// y[t, c] = act( bias[c] + Σ_j weight[c, j] · x[t − (w − 1) + j, c] ), per segment, with the inputs before a segment's first row taken
/// from its cache. After the call the cache holds the segment's last w − 1 inputs (before the convolution).
struct ShortConvolution {
  ConstTensor x;       // [rows, C]
  ConstTensor weight;  // [C, w] float32 (stored [C, 1, w]); the last tap multiplies the current token
  ConstTensor bias;    // [C] float32 or absent
  Activation act = Activation::identity;
  Segments segments;
  ConstTensor initial_cache;  // [slots, w − 1, C], oldest input first; zeros at the start of a sequence
  Tensor final_cache;         // [slots, w − 1, C]; may be the same memory as initial_cache
  Tensor y;                   // [rows, C], not x
};
void short_convolution(const ShortConvolution& op);

}  // namespace statescope

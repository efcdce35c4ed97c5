// Products that are computed together, so that a device reads their weights in one go, with a norm as their prologue and an epilogue.
#pragma once

#include <variant>

#include "kernels/ops/elementwise.h"

namespace statescope {

/// x̂ = RMSNorm(x; weight + offset) ⊙ act(gate), over groups of `group` numbers; group 0: x̂ = x.
struct InputNorm {
  std::int64_t group = 0;
  ConstTensor weight;  // [group] or absent
  float eps = 0, offset = 0;
  ConstTensor gate;  // [T, in] or absent: 1
  Activation act = Activation::identity;
};

/// y = act(z + addend); addend [T, out] or absent, may be y
struct Activate {
  Activation act = Activation::identity;
  ConstTensor addend;
};
/// y = max(logσ(z) / normalizer, clamp_min): the forget gate of GLA (spec §3.4)
struct ForgetGate {
  float normalizer = 1, clamp_min = 0;
};
/// y = −exp(A_log) · softplus(z + dt_bias): the decay of a gated delta rule (spec §3.6); elementwise.h has the form with a bound. As the
/// finish of a product it has one A_log for each output and no bound.
struct DeltaDecay {
  ConstTensor A_log, dt_bias;  // [heads], [out]
  float lower_bound = 0;       // < 0, or 0: none
};
/// y = the short convolution of z (convolution.h), over all rows as one segment, with the cache [1, w − 1, out], which is updated
struct Convolve {
  ConstTensor weight, bias;  // [out, w]; [out] or absent
  Activation act = Activation::identity;
  Tensor cache;
  Tensor room = {};  // for z where it is not wanted
};
using Finish = std::variant<Activate, ForgetGate, DeltaDecay, Convolve>;

/// z = x̂ · weightᵀ + bias, y = finish(z). No weight may be written by earlier work that is still running: a device may read it before that
/// work is done.
struct Projection {
  ConstTensor x;  // [T, in]
  InputNorm norm;
  ConstTensor weight, bias;  // [out, in], [out] float32 or absent
  Tensor y;                  // [T, out]
  Finish finish;
  Tensor z;  // [T, out] or absent: not wanted
};

/// y = finish(x · weightᵀ + bias), of an x that several share.
struct LinearProduct {
  Tensor y;                  // [T, out]
  ConstTensor weight, bias;  // [out, in], [out] float32 or absent
  Finish finish;             // without an addend; no convolution
};

}  // namespace statescope

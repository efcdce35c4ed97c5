// Fused operations made of single ones: what a device runs that has no kernel of its own for one. Every part goes through Backend::run.
#pragma once

#include "kernels/backend.h"

namespace statescope {

void by_parts(const ops::SparseState& op, Backend& device);
void by_parts(const ops::LinearTogether& op, Backend& device);
void by_parts(const ops::AddLinear& op, Backend& device);
void by_parts(const ops::Project& op, Backend& device);
void by_parts(const ops::ProjectOne& op, Backend& device);
void by_parts(const ops::SwiGlu& op, Backend& device);
void by_parts(const ops::ForgetGatedOuterProduct& op, Backend& device);
void by_parts(const ops::UnitDeltaRule& op, Backend& device);
void by_parts(const ops::LowRankDecay& op, Backend& device);
void by_parts(const ops::SumPair& op, Backend& device);
void by_parts(const ops::SoftmaxPair& op, Backend& device);
void by_parts(const ops::AddRmsNorm& op, Backend& device);
void by_parts(const ops::GatedRmsNorm& op, Backend& device);

/// An operation that has such a form.
template <class Op>
concept Fused = requires(const Op& op, Backend& device) {
  by_parts(op, device);
};

/// y = finish(y)
void finish(const LinearProduct& p, Backend& device);
/// x, or a copy of it where its rows lie apart.
ConstTensor together(ConstTensor x, Backend& device, Workspace& workspace);
/// x̂ of projection.h in the workspace, in the type of activations; x itself where there is no norm.
ConstTensor normed(ConstTensor x, const InputNorm& norm, Backend& device, Workspace& workspace);

}  // namespace statescope

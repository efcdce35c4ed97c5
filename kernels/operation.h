// What a device computes, as data: one struct for each operation, with its operands. An operation lives only during the call that asks for
// it, so it may refer to what the caller holds. Tensors must live on the device that runs it.
#pragma once

#include <span>
#include <string_view>
#include <variant>

#include "kernels/ops/compressed_attention.h"
#include "kernels/ops/convolution.h"
#include "kernels/ops/decayed_outer_product.h"
#include "kernels/ops/elementwise.h"
#include "kernels/ops/experts/experts.h"
#include "kernels/ops/gated_delta_rule.h"
#include "kernels/ops/linear.h"
#include "kernels/ops/linear_by_head.h"
#include "kernels/ops/log_linear_attention.h"
#include "kernels/ops/predictions.h"
#include "kernels/ops/projection.h"
#include "kernels/ops/routing.h"
#include "kernels/ops/selective_scan.h"
#include "kernels/ops/softmax_attention.h"
#include "kernels/ops/sparse_state.h"
#include "kernels/ops/state_analysis.h"
#include "kernels/ops/state_space.h"
#include "kernels/ops/token_choice.h"
#include "kernels/ops/wkv.h"
#include "kernels/workspace.h"

namespace statescope {

/// Single operations do what the function of their `name` does in the header over them. A `chunk_size` of 0 takes the step form, which
/// needs at most one row per segment.
namespace ops {

// elementwise.h

struct Fill {
  static constexpr std::string_view name = "fill";
  Tensor x;
  float value;
};
struct Copy {
  static constexpr std::string_view name = "copy";
  Tensor dst;
  ConstTensor src;
};
struct GatherRows {
  static constexpr std::string_view name = "gather_rows";
  Tensor dst;
  ConstTensor src;
  const std::int32_t* rows;
};
struct ScatterAddRows {
  static constexpr std::string_view name = "scatter_add_rows";
  Tensor dst;
  ConstTensor src;
  const std::int32_t* rows;
  ConstTensor weight;
};
struct RmsNorm {
  static constexpr std::string_view name = "rms_norm";
  Tensor y;
  ConstTensor x, weight;
  float eps, offset;
};
struct RmsNormPlain {
  static constexpr std::string_view name = "rms_norm_plain";
  Tensor y;
  ConstTensor x;
  std::int64_t group;
  float eps;
};
struct LayerNorm {
  static constexpr std::string_view name = "layer_norm";
  Tensor y;
  ConstTensor x, weight, bias;
  std::int64_t group;
  float eps;
};
struct L2Norm {
  static constexpr std::string_view name = "l2_norm";
  Tensor y;
  ConstTensor x;
};
struct SumNorm {
  static constexpr std::string_view name = "sum_norm";
  Tensor y;
  ConstTensor x;
  float eps;
};
struct Softmax {
  static constexpr std::string_view name = "softmax";
  Tensor y;
  ConstTensor x;
  float temperature;
};
struct Activate {
  static constexpr std::string_view name = "activate";
  Tensor y;
  ConstTensor x;
  Activation act;
};
struct Gate {
  static constexpr std::string_view name = "gate";
  Tensor y;
  ConstTensor a, b;
  Activation act;
};
struct Add {
  static constexpr std::string_view name = "add";
  Tensor y;
  ConstTensor a, b;
  float factor;
};
struct ScaleHeads {
  static constexpr std::string_view name = "scale_heads";
  Tensor y;
  ConstTensor x, g;
  float scale;
};
struct DivideHeads {
  static constexpr std::string_view name = "divide_heads";
  Tensor y;
  ConstTensor x, d;
  float eps;
};
struct LogSigmoidDecay {
  static constexpr std::string_view name = "log_sigmoid_decay";
  Tensor y;
  ConstTensor x;
  float normalizer, clamp_min;
};
struct GatedDeltaDecay {
  static constexpr std::string_view name = "gated_delta_decay";
  Tensor y;
  ConstTensor a, A_log, dt_bias;
  float lower_bound = 0;
};
struct SoftplusClamp {
  static constexpr std::string_view name = "softplus_clamp";
  Tensor y;
  ConstTensor x, dt_bias;
  float dt_min, dt_max;
};
struct OneMinusExp {
  static constexpr std::string_view name = "one_minus_exp";
  Tensor y;
  ConstTensor x;
};
struct Rope {
  static constexpr std::string_view name = "rope";
  Tensor y;
  ConstTensor x;
  std::int64_t first;
  double theta;
  std::int64_t rotary;
  const Rotation* rotation;  // instead of theta and rotary; or null
};

// linear.h

struct Embed {
  static constexpr std::string_view name = "embed";
  Tensor y;
  ConstTensor table;
  const std::int32_t* ids;
};
struct Linear {
  static constexpr std::string_view name = "linear";
  Tensor y;
  ConstTensor x, weight, bias;
};

// linear_by_head.h

struct LinearByHead {
  static constexpr std::string_view name = "linear_by_head";
  const statescope::LinearByHead& product;
};

// routing.h

struct TopK {
  static constexpr std::string_view name = "top_k";
  Tensor ids;
  ConstTensor scores;
};
struct Renormalise {
  static constexpr std::string_view name = "renormalise";
  Tensor y;
  ConstTensor gate, ids;
};
struct ScoreExperts {
  static constexpr std::string_view name = "score_experts";
  const ExpertScores& scores;
};
struct ExpertMlps {
  static constexpr std::string_view name = "expert_mlps";
  const statescope::ExpertMlps& mlps;
  Workspace& workspace;
};
struct RowSparse {
  static constexpr std::string_view name = "row_sparse";
  Tensor k, log_decay;
  ConstTensor z;
  std::int64_t topk;
  bool skip_decay;
};

// convolution.h, decayed_outer_product.h, gated_delta_rule.h, selective_scan.h, wkv.h, log_linear_attention.h, state_space.h,
// softmax_attention.h, compressed_attention.h, token_choice.h

/// At least one, all over the same segments.
struct ShortConvolutions {
  static constexpr std::string_view name = "short_convolutions";
  std::span<const ShortConvolution> convolutions;
};
struct DecayedOuterProduct {
  static constexpr std::string_view name = "decayed_outer_product";
  const statescope::DecayedOuterProduct& memory;
  std::int64_t chunk_size;
};
struct GatedDeltaRule {
  static constexpr std::string_view name = "gated_delta_rule";
  const statescope::GatedDeltaRule& memory;
  std::int64_t chunk_size;
};
struct SelectiveScan {
  static constexpr std::string_view name = "selective_scan";
  const statescope::SelectiveScan& memory;
};
struct Wkv {
  static constexpr std::string_view name = "wkv";
  const statescope::Wkv& memory;
};
struct LogLinearAttention {
  static constexpr std::string_view name = "log_linear_attention";
  const statescope::LogLinearAttention& memory;
};
struct StateSpace {
  static constexpr std::string_view name = "state_space";
  const statescope::StateSpace& memory;
};
struct SoftmaxAttention {
  static constexpr std::string_view name = "softmax_attention";
  const statescope::SoftmaxAttention& memory;
  std::int64_t chunk_size;
};

struct CompressedAttention {
  static constexpr std::string_view name = "compressed_attention";
  const statescope::CompressedAttention& memory;
};
struct ChooseTokens {
  static constexpr std::string_view name = "choose_tokens";
  const TokenChoice& choice;
};

// predictions.h, state_analysis.h

struct NextTokenNll {
  static constexpr std::string_view name = "next_token_nll";
  Tensor nll;
  ConstTensor logits;
  const std::int32_t* ids;
};
struct TotalVariation {
  static constexpr std::string_view name = "total_variation";
  Tensor distance;
  ConstTensor a, b;
};
struct RowNorms {
  static constexpr std::string_view name = "row_norms";
  Tensor norms;
  ConstTensor x;
};
struct RowCosine {
  static constexpr std::string_view name = "row_cosine";
  Tensor cosine;
  ConstTensor z;
};
struct SingularValues {
  static constexpr std::string_view name = "singular_values";
  Tensor sigma;
  ConstTensor z;
  Workspace& workspace;
};

// Fused operations: single ones can make them up (fused/by_parts.h); a device has a kernel where one is faster.

/// Computes the operands that `from` tells of, and then what sparse_state.h says.
struct SparseState {
  static constexpr std::string_view name = "sparse_state";
  const statescope::SparseState& memory;
  const SparseSources* from;  // null: all operands are there
  std::int64_t chunk_size;
  Workspace& workspace;
};
/// Products of one x (projection.h). A device may compute those as one whose weights, and whose results, are adjacent in this order.
struct LinearTogether {
  static constexpr std::string_view name = "linear_together";
  std::span<const LinearProduct> products;
  ConstTensor x;
};
/// y = y + x · weightᵀ
struct AddLinear {
  static constexpr std::string_view name = "add_linear";
  Tensor y;
  ConstTensor x, weight;
  Workspace& workspace;
};
/// Products with their prologues and epilogues (projection.h), of one row or many. The x of one may be the y of another before it.
struct Project {
  static constexpr std::string_view name = "project";
  std::span<const Projection> projections;
  Workspace& workspace;
};
/// The same of projections that have one x̂, which is there.
struct ProjectOne {
  static constexpr std::string_view name = "project_one";
  std::span<const Projection> projections;
  ConstTensor normed_x;
  Workspace& workspace;
};
/// y = (silu(x̂ · gateᵀ) ⊙ (x̂ · upᵀ)) · downᵀ + addend; x̂ as in projection.h; addend like y or absent, may be y     (spec §1.4)
struct SwiGlu {
  static constexpr std::string_view name = "swiglu";
  Tensor y;
  ConstTensor x, gate_proj, up_proj, down_proj;
  Workspace& workspace;
  const InputNorm& norm;
  ConstTensor addend;
};
/// Computes memory.log_decay, the y of `gate`, which is a ForgetGate, and then the same as DecayedOuterProduct. A device that computes
/// decays inside the memory need not write it.
struct ForgetGatedOuterProduct {
  static constexpr std::string_view name = "forget_gated_outer_product";
  const statescope::DecayedOuterProduct& memory;
  const Projection& gate;
  std::int64_t chunk_size;
  Workspace& workspace;
};
/// The gated delta rule of L2(q) and L2(k)     (l2_norm); with a readout, a norm over heads, o becomes ô (projection.h).
struct UnitDeltaRule {
  static constexpr std::string_view name = "unit_delta_rule";
  const statescope::GatedDeltaRule& memory;
  std::int64_t chunk_size;
  Workspace& workspace;
  const InputNorm& readout;
};
/// y = max(logσ(x · weightᵀ + bias) / normalizer, clamp_min): the forget gate of GLA from its few features x [T, r] (spec §3.4)
struct LowRankDecay {
  static constexpr std::string_view name = "low_rank_decay";
  Tensor y;
  ConstTensor x, weight, bias;
  float normalizer, clamp_min;
};
/// pair[:, 0] = act(shared), pair[:, 1] = act(sparse + more): pair [T, 2, ...], the others [T, ...] (SSE eq. 9; spec §4.3)
struct SumPair {
  static constexpr std::string_view name = "sum_pair";
  Tensor pair;
  ConstTensor shared, sparse, more;
  Activation act;
};
/// pair[:, 0] = softmax(shared), pair[:, 1] = softmax(sparse + more) over the last axis
struct SoftmaxPair {
  static constexpr std::string_view name = "softmax_pair";
  Tensor pair;
  ConstTensor shared, sparse, more;
};
/// x = x + added, y = RMSNorm(x; weight), over whole rows; weight [n] or absent
struct AddRmsNorm {
  static constexpr std::string_view name = "add_rms_norm";
  Tensor y, x;
  ConstTensor added, weight;
  float eps, offset;
};
/// y = RMSNorm(x; weight) ⊙ act(gate), over groups of `group` numbers; weight [group] or absent     (spec §1.3)
struct GatedRmsNorm {
  static constexpr std::string_view name = "gated_rms_norm";
  Tensor y;
  ConstTensor x, weight;
  std::int64_t group;
  float eps;
  ConstTensor gate;
  Activation act;
};

}  // namespace ops

using Operation =
    std::variant<ops::Fill, ops::Copy, ops::GatherRows, ops::ScatterAddRows, ops::RmsNorm, ops::RmsNormPlain, ops::LayerNorm, ops::L2Norm,
                 ops::SumNorm, ops::Softmax, ops::Activate, ops::Gate, ops::Add, ops::ScaleHeads, ops::DivideHeads, ops::LogSigmoidDecay,
                 ops::GatedDeltaDecay, ops::SoftplusClamp, ops::OneMinusExp, ops::Rope, ops::Embed, ops::Linear, ops::LinearByHead,
                 ops::TopK, ops::Renormalise, ops::ScoreExperts, ops::ExpertMlps, ops::RowSparse, ops::ShortConvolutions,
                 ops::DecayedOuterProduct, ops::GatedDeltaRule, ops::SelectiveScan, ops::Wkv, ops::LogLinearAttention, ops::StateSpace,
                 ops::SoftmaxAttention, ops::CompressedAttention, ops::ChooseTokens, ops::NextTokenNll, ops::TotalVariation, ops::RowNorms,
                 ops::RowCosine, ops::SingularValues, ops::SparseState, ops::LinearTogether, ops::AddLinear, ops::Project, ops::ProjectOne,
                 ops::SwiGlu, ops::ForgetGatedOuterProduct, ops::UnitDeltaRule, ops::LowRankDecay, ops::SumPair, ops::SoftmaxPair,
                 ops::AddRmsNorm, ops::GatedRmsNorm>;

inline std::string_view name_of(const Operation& operation) {
  return std::visit([](const auto& op) { return op.name; }, operation);
}

}  // namespace statescope

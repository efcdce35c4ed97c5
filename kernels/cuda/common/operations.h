// The CUDA forms of the operations: each does what the header of its name says, on tensors that lie on the device, in stream order. Spans
// inside an operation's struct (its segments) stay on the host and are not read; their device form is passed beside it.
#pragma once

#include "kernels/cuda/common/cuda.h"
#include "kernels/ops/compressed_attention.h"
#include "kernels/ops/convolution.h"
#include "kernels/ops/decayed_outer_product.h"
#include "kernels/ops/elementwise.h"
#include "kernels/ops/experts/experts.h"
#include "kernels/ops/gated_delta_rule.h"
#include "kernels/ops/linear_by_head.h"
#include "kernels/ops/log_linear_attention.h"
#include "kernels/ops/softmax_attention.h"
#include "kernels/ops/sparse_state.h"
#include "kernels/ops/state_space.h"
#include "kernels/ops/token_choice.h"
#include "kernels/ops/wkv.h"
#include "kernels/workspace.h"

namespace statescope::cuda {

// elementwise.cu
void fill(Tensor x, float value, cudaStream_t stream);
void activate(Tensor y, ConstTensor x, Activation act, cudaStream_t stream);
void gate(Tensor y, ConstTensor a, ConstTensor b, Activation act, cudaStream_t stream);
void add(Tensor y, ConstTensor a, ConstTensor b, float factor, cudaStream_t stream);
void sum_pair(Tensor pair, ConstTensor shared, ConstTensor sparse, ConstTensor more, Activation act, cudaStream_t stream);
void scale_heads(Tensor y, ConstTensor x, ConstTensor g, float scale, cudaStream_t stream);
void divide_heads(Tensor y, ConstTensor x, ConstTensor d, float eps, cudaStream_t stream);
void log_sigmoid_decay(Tensor y, ConstTensor x, float normalizer, float clamp_min, cudaStream_t stream);
void gated_delta_decay(Tensor y, ConstTensor a, ConstTensor A_log, ConstTensor dt_bias, float lower_bound, cudaStream_t stream);
void softplus_clamp(Tensor y, ConstTensor x, ConstTensor dt_bias, float dt_min, float dt_max, cudaStream_t stream);
void one_minus_exp(Tensor y, ConstTensor x, cudaStream_t stream);

// rows.cu
void copy(Tensor dst, ConstTensor src, cudaStream_t stream);
void gather_rows(Tensor dst, ConstTensor src, const std::int32_t* device_rows, cudaStream_t stream);
void scatter_add_rows(Tensor dst, ConstTensor src, const std::int32_t* device_rows, ConstTensor weight, cudaStream_t stream);

// norms.cu
void rms_norm(Tensor y, ConstTensor x, ConstTensor weight, float eps, float offset, cudaStream_t stream);
void rms_norm_plain(Tensor y, ConstTensor x, std::int64_t group, float eps, cudaStream_t stream);
void add_rms_norm(Tensor y, Tensor x, ConstTensor added, ConstTensor weight, float eps, float offset, cudaStream_t stream);
void gated_rms_norm(Tensor y, ConstTensor x, ConstTensor weight, std::int64_t group, float eps, ConstTensor gate, Activation act,
                    cudaStream_t stream);
void layer_norm(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, std::int64_t group, float eps, cudaStream_t stream);
void l2_norm(Tensor y, ConstTensor x, cudaStream_t stream);
void sum_norm(Tensor y, ConstTensor x, float eps, cudaStream_t stream);
void softmax(Tensor y, ConstTensor x, float temperature, cudaStream_t stream);
void softmax_pair(Tensor pair, ConstTensor shared, ConstTensor sparse, ConstTensor more, cudaStream_t stream);

// rope.cu
void rope(Tensor y, ConstTensor x, std::int64_t first, double theta, std::int64_t rotary, cudaStream_t stream);
void rope(Tensor y, ConstTensor x, std::int64_t first, const Rotation& rotation, cudaStream_t stream);

// experts.cu
void score_experts(const ExpertScores& op, cudaStream_t stream);
/// Few tokens of float32, or many of bf16 whose operands are 16-byte vectors: those are grouped_experts.cu's.
bool expert_mlps_supported(const ExpertMlps& op);
void expert_mlps(const ExpertMlps& op, Workspace& workspace, cudaStream_t stream);
bool expert_products_supported(const ExpertMlps& op);
void expert_products(const ExpertMlps& op, Workspace& workspace, cudaStream_t stream);

// low_rank_decay.cu: weight float32 or bf16, of at most `most_low_rank` inputs.
constexpr std::int64_t most_low_rank = 32;
void low_rank_decay(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, float normalizer, float clamp_min, cudaStream_t stream);

// linear_by_head.cu
void linear_by_head(const LinearByHead& op, cudaStream_t stream);

// routing.cu
void top_k(Tensor ids, ConstTensor scores, cudaStream_t stream);
void renormalise(Tensor y, ConstTensor gate, ConstTensor ids, cudaStream_t stream);
void row_sparse(Tensor k, Tensor log_decay, ConstTensor z, std::int64_t topk, bool skip_decay, cudaStream_t stream);

// convolution.cu
void short_convolutions(std::span<const ShortConvolution> ops, const DeviceSegments& segments, cudaStream_t stream);

// decayed_outer_product.cu, gated_delta_rule.cu, wkv.cu: any number of rows a segment
void decayed_outer_product(const DecayedOuterProduct& op, const DeviceSegments& segments, cudaStream_t stream);
void gated_delta_rule(const GatedDeltaRule& op, const DeviceSegments& segments, cudaStream_t stream);
void wkv(const Wkv& op, const DeviceSegments& segments, cudaStream_t stream);

// log_linear_attention.cu, state_space.cu: any number of rows
void log_linear_attention(const LogLinearAttention& op, cudaStream_t stream);
void state_space(const StateSpace& op, cudaStream_t stream);

// memory_step.cu: one row of one sequence, states changed in place, all float32. False, and nothing done, for anything else.
class DecodeQueue;
bool decayed_outer_product_step(const DecayedOuterProduct& op, DecodeQueue& queue);
bool gated_delta_rule_step(const GatedDeltaRule& op, bool l2, DecodeQueue& queue);  // l2: q and k are normalised first
bool sparse_state_step(const SparseState& op, const SparseSources* from,
                       DecodeQueue& queue);  // from: null where q, k and choices are there

// sparse_state.cu; nothing is read back. For at most `most_sparse_runs` sequences × partitions.
std::int64_t most_sparse_runs();
/// A choice of a token: the row it reads, and the factors of q (0: it only writes) and of k (0: it only reads).
struct alignas(16) SparseItem {
  std::int32_t row, choice;
  float read, write;
};
/// As if a row of the shared state were one.
__device__ inline SparseItem own_item(std::int32_t row) { return {row, 0, 1, 1}; }
struct SparseOrder {
  SparseItem* items = nullptr;               // [T · choices], by (sequence, partition), in the order of their tokens
  std::int32_t* place = nullptr;             // [T · choices]: where choice c of token t is among them
  const std::int32_t* cu_seqlens = nullptr;  // of the tokens
  DeviceSegments segments;  // of the rows [T shared ; items]: the shared segments, then the partitions', some of them empty
};
SparseOrder sparse_order(const SparseState& op, const std::int32_t* cu_seqlens, Workspace& workspace, cudaStream_t stream);
/// The operands of one memory call over all states, whose output goes to `SparseRows::o`; `sum_sparse_rows` sums that into op.o.
struct SparseRows {
  Tensor q, k, v, log_decay, beta, o;  // rows [T shared ; items], of the workspace
};
SparseRows sparse_rows(const SparseState& op, const SparseOrder& order, Workspace& workspace, cudaStream_t stream);
void sum_sparse_rows(const SparseState& op, const SparseOrder& order, const SparseRows& rows, cudaStream_t stream);

// softmax_attention.cu; `cu_seqlens_k` [count + 1] on the device, `most_keys` of any segment
void softmax_attention(const SoftmaxAttention& op, const DeviceSegments& segments, const std::int32_t* cu_seqlens_k, std::int64_t most_keys,
                       cudaStream_t stream);
// softmax_attention_few_queries.cu: up to 8 of a segment, which see all keys, a window of them, what a pattern lets them see, or blocks
// that something else has chosen; `scratch` on the device, of so many bytes, 16-byte aligned
bool softmax_attention_few_queries_supported(const SoftmaxAttention& op, const DeviceSegments& segments);
std::size_t softmax_attention_few_queries_scratch(const SoftmaxAttention& op, std::int64_t most_keys);
void softmax_attention_few_queries(const SoftmaxAttention& op, const DeviceSegments& segments, const std::int32_t* cu_seqlens_k,
                                   std::int64_t most_keys, void* scratch, cudaStream_t stream);

// compressed_attention.cu; `scratch` on the device, of so many bytes. Throws std::invalid_argument for more blocks than a GPU takes.
std::size_t compressed_attention_scratch(const CompressedAttention& op, const DeviceSegments& segments, std::int64_t most_keys);
void compressed_attention(const CompressedAttention& op, const DeviceSegments& segments, const std::int32_t* cu_seqlens_k,
                          std::int64_t most_keys, void* scratch, cudaStream_t stream);

// token_choice.cu; likewise
std::size_t token_choice_scratch(const DeviceSegments& segments, std::int64_t most_keys);
void choose_tokens(const TokenChoice& op, const DeviceSegments& segments, const std::int32_t* cu_seqlens_k, std::int64_t most_keys,
                   void* scratch, cudaStream_t stream);

// predictions.cu
void next_token_nll(Tensor nll, ConstTensor logits, const std::int32_t* device_ids, cudaStream_t stream);
void total_variation(Tensor distance, ConstTensor a, ConstTensor b, cudaStream_t stream);
void row_norms(Tensor norms, ConstTensor x, cudaStream_t stream);

// row_cosine.cu, singular_values.cu
void row_cosine(Tensor cosine, ConstTensor z, cudaStream_t stream);
void singular_values(Tensor sigma, ConstTensor z, Workspace& workspace, cudaStream_t stream);

}  // namespace statescope::cuda

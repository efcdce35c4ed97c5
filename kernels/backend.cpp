#include "kernels/backend.h"

#include "kernels/cpu/host_memory.h"

namespace statescope {
namespace {

class Downloaded final : public Download {
 public:
  void wait() override {}
};

}  // namespace

std::unique_ptr<Download> Backend::download_later(Tensor host, ConstTensor device) {
  download(host, device);
  return std::make_unique<Downloaded>();
}

std::size_t Backend::free_bytes() { return available_memory(); }

void Backend::fill(Tensor x, float value) { run(ops::Fill{x, value}); }
void Backend::copy(Tensor dst, ConstTensor src) { run(ops::Copy{dst, src}); }
void Backend::gather_rows(Tensor dst, ConstTensor src, const std::int32_t* rows) { run(ops::GatherRows{dst, src, rows}); }
void Backend::scatter_add_rows(Tensor dst, ConstTensor src, const std::int32_t* rows, ConstTensor weight) {
  run(ops::ScatterAddRows{dst, src, rows, weight});
}

void Backend::embed(Tensor y, ConstTensor table, const std::int32_t* ids) { run(ops::Embed{y, table, ids}); }
void Backend::linear(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias) { run(ops::Linear{y, x, weight, bias}); }

void Backend::rms_norm(Tensor y, ConstTensor x, ConstTensor weight, float eps, float offset) {
  run(ops::RmsNorm{y, x, weight, eps, offset});
}
void Backend::rms_norm_plain(Tensor y, ConstTensor x, std::int64_t group, float eps) { run(ops::RmsNormPlain{y, x, group, eps}); }
void Backend::layer_norm(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, std::int64_t group, float eps) {
  run(ops::LayerNorm{y, x, weight, bias, group, eps});
}
void Backend::l2_norm(Tensor y, ConstTensor x) { run(ops::L2Norm{y, x}); }
void Backend::sum_norm(Tensor y, ConstTensor x, float eps) { run(ops::SumNorm{y, x, eps}); }
void Backend::softmax(Tensor y, ConstTensor x, float temperature) { run(ops::Softmax{y, x, temperature}); }
void Backend::activate(Tensor y, ConstTensor x, Activation act) { run(ops::Activate{y, x, act}); }
void Backend::gate(Tensor y, ConstTensor a, ConstTensor b, Activation act) { run(ops::Gate{y, a, b, act}); }
void Backend::add(Tensor y, ConstTensor a, ConstTensor b, float factor) { run(ops::Add{y, a, b, factor}); }
void Backend::scale_heads(Tensor y, ConstTensor x, ConstTensor g, float scale) { run(ops::ScaleHeads{y, x, g, scale}); }
void Backend::divide_heads(Tensor y, ConstTensor x, ConstTensor d, float eps) { run(ops::DivideHeads{y, x, d, eps}); }
void Backend::log_sigmoid_decay(Tensor y, ConstTensor x, float normalizer, float clamp_min) {
  run(ops::LogSigmoidDecay{y, x, normalizer, clamp_min});
}
void Backend::gated_delta_decay(Tensor y, ConstTensor a, ConstTensor A_log, ConstTensor dt_bias, float lower_bound) {
  run(ops::GatedDeltaDecay{y, a, A_log, dt_bias, lower_bound});
}
void Backend::softplus_clamp(Tensor y, ConstTensor x, ConstTensor dt_bias, float dt_min, float dt_max) {
  run(ops::SoftplusClamp{y, x, dt_bias, dt_min, dt_max});
}
void Backend::one_minus_exp(Tensor y, ConstTensor x) { run(ops::OneMinusExp{y, x}); }
void Backend::rope(Tensor y, ConstTensor x, std::int64_t first, double theta, std::int64_t rotary) {
  run(ops::Rope{y, x, first, theta, rotary, nullptr});
}
void Backend::rope(Tensor y, ConstTensor x, std::int64_t first, const Rotation& rotation) { run(ops::Rope{y, x, first, 0, 0, &rotation}); }
void Backend::top_k(Tensor ids, ConstTensor scores) { run(ops::TopK{ids, scores}); }
void Backend::renormalise(Tensor y, ConstTensor gate, ConstTensor ids) { run(ops::Renormalise{y, gate, ids}); }
void Backend::row_sparse(Tensor k, Tensor log_decay, ConstTensor z, std::int64_t topk, bool skip_decay) {
  run(ops::RowSparse{k, log_decay, z, topk, skip_decay});
}

void Backend::short_convolutions(std::span<const ShortConvolution> convolutions) { run(ops::ShortConvolutions{convolutions}); }
void Backend::decayed_outer_product(const DecayedOuterProduct& op, std::int64_t chunk_size) {
  run(ops::DecayedOuterProduct{op, chunk_size});
}
void Backend::gated_delta_rule(const GatedDeltaRule& op, std::int64_t chunk_size) { run(ops::GatedDeltaRule{op, chunk_size}); }
void Backend::softmax_attention(const SoftmaxAttention& op, std::int64_t chunk_size) { run(ops::SoftmaxAttention{op, chunk_size}); }

void Backend::next_token_nll(Tensor nll, ConstTensor logits, const std::int32_t* ids) { run(ops::NextTokenNll{nll, logits, ids}); }
void Backend::total_variation(Tensor distance, ConstTensor a, ConstTensor b) { run(ops::TotalVariation{distance, a, b}); }
void Backend::row_norms(Tensor norms, ConstTensor x) { run(ops::RowNorms{norms, x}); }

void Backend::row_cosine(Tensor cosine, ConstTensor z) { run(ops::RowCosine{cosine, z}); }
void Backend::singular_values(Tensor sigma, ConstTensor z, Workspace& workspace) { run(ops::SingularValues{sigma, z, workspace}); }

void Backend::sparse_state(const SparseState& op, std::int64_t chunk_size, Workspace& workspace) {
  run(ops::SparseState{op, nullptr, chunk_size, workspace});
}
void Backend::sparse_state(const SparseState& op, const SparseSources& from, std::int64_t chunk_size, Workspace& workspace) {
  run(ops::SparseState{op, &from, chunk_size, workspace});
}
void Backend::linear_together(std::span<const LinearProduct> products, ConstTensor x) { run(ops::LinearTogether{products, x}); }
void Backend::add_linear(Tensor y, ConstTensor x, ConstTensor weight, Workspace& workspace) {
  run(ops::AddLinear{y, x, weight, workspace});
}
void Backend::project(std::span<const Projection> projections, Workspace& workspace) { run(ops::Project{projections, workspace}); }
void Backend::swiglu(Tensor y, ConstTensor x, ConstTensor gate_proj, ConstTensor up_proj, ConstTensor down_proj, Workspace& workspace,
                     const InputNorm& norm, ConstTensor addend) {
  run(ops::SwiGlu{y, x, gate_proj, up_proj, down_proj, workspace, norm, addend});
}
void Backend::forget_gated_outer_product(const DecayedOuterProduct& op, const Projection& gate, std::int64_t chunk_size,
                                         Workspace& workspace) {
  run(ops::ForgetGatedOuterProduct{op, gate, chunk_size, workspace});
}
void Backend::unit_delta_rule(const GatedDeltaRule& op, std::int64_t chunk_size, Workspace& workspace, const InputNorm& readout) {
  run(ops::UnitDeltaRule{op, chunk_size, workspace, readout});
}
void Backend::low_rank_decay(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias, float normalizer, float clamp_min) {
  run(ops::LowRankDecay{y, x, weight, bias, normalizer, clamp_min});
}
void Backend::sum_pair(Tensor pair, ConstTensor shared, ConstTensor sparse, ConstTensor more, Activation act) {
  run(ops::SumPair{pair, shared, sparse, more, act});
}
void Backend::softmax_pair(Tensor pair, ConstTensor shared, ConstTensor sparse, ConstTensor more) {
  run(ops::SoftmaxPair{pair, shared, sparse, more});
}
void Backend::add_rms_norm(Tensor y, Tensor x, ConstTensor added, ConstTensor weight, float eps, float offset) {
  run(ops::AddRmsNorm{y, x, added, weight, eps, offset});
}
void Backend::gated_rms_norm(Tensor y, ConstTensor x, ConstTensor weight, std::int64_t group, float eps, ConstTensor gate, Activation act) {
  run(ops::GatedRmsNorm{y, x, weight, group, eps, gate, act});
}

void Backend::make_choices(const SparseSources& from) {
  for (const SparsePair* x : {&from.q, &from.k}) {
    if (x->softmax) {
      softmax_pair(x->pair, x->shared, x->sparse, x->more);
    } else {
      sum_pair(x->pair, x->shared, x->sparse, x->more, x->act);
    }
  }
  softmax(from.gate, from.logits);
  if (from.selected) top_k(from.selected, from.by_logits ? from.logits : from.gate);
}

void Backend::make(const SparseSources& from, Workspace& workspace) {
  make_choices(from);
  project(from.decays, workspace);
}

}  // namespace statescope

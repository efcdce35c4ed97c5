#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>

#include "kernels/cpu/bfloat16_product.h"
#include "kernels/cpu/parallel.h"
#include "kernels/device.h"
#include "kernels/fused/by_parts.h"

namespace statescope {
namespace {

/// Both sides contiguous and of one shape.
void copy_contiguous(Tensor to, ConstTensor from) {
  if (!to.contiguous() || !from.contiguous() || to.shape != from.shape || to.dtype != from.dtype) {
    throw std::invalid_argument("copy between host and device: " + to.shape.to_string() + " and " + from.shape.to_string() + " do not fit");
  }
  const std::size_t bytes = static_cast<std::size_t>(from.shape.size()) * size_of(from.dtype);
  if (bytes > 0 && to.data != from.data) std::memcpy(to.data, from.data, bytes);
}

struct OnCpu {
  Backend& device;
  bool rounds;  // the operands of products

  void operator()(const ops::Fill& op) const { fill(op.x, op.value); }
  void operator()(const ops::Copy& op) const { copy(op.dst, op.src); }
  void operator()(const ops::GatherRows& op) const { gather_rows(op.dst, op.src, op.rows); }
  void operator()(const ops::ScatterAddRows& op) const { scatter_add_rows(op.dst, op.src, op.rows, op.weight); }

  void operator()(const ops::RmsNorm& op) const { rms_norm(op.y, op.x, op.weight, op.eps, op.offset); }
  void operator()(const ops::RmsNormPlain& op) const { rms_norm_plain(op.y, op.x, op.group, op.eps); }
  void operator()(const ops::LayerNorm& op) const { layer_norm(op.y, op.x, op.weight, op.bias, op.group, op.eps); }
  void operator()(const ops::L2Norm& op) const { l2_norm(op.y, op.x); }
  void operator()(const ops::SumNorm& op) const { sum_norm(op.y, op.x, op.eps); }
  void operator()(const ops::Softmax& op) const { softmax(op.y, op.x, op.temperature); }
  void operator()(const ops::Activate& op) const { activate(op.y, op.x, op.act); }
  void operator()(const ops::Gate& op) const { gate(op.y, op.a, op.b, op.act); }
  void operator()(const ops::Add& op) const { add(op.y, op.a, op.b, op.factor); }
  void operator()(const ops::ScaleHeads& op) const { scale_heads(op.y, op.x, op.g, op.scale); }
  void operator()(const ops::DivideHeads& op) const { divide_heads(op.y, op.x, op.d, op.eps); }
  void operator()(const ops::LogSigmoidDecay& op) const { log_sigmoid_decay(op.y, op.x, op.normalizer, op.clamp_min); }
  void operator()(const ops::GatedDeltaDecay& op) const { gated_delta_decay(op.y, op.a, op.A_log, op.dt_bias, op.lower_bound); }
  void operator()(const ops::SoftplusClamp& op) const { softplus_clamp(op.y, op.x, op.dt_bias, op.dt_min, op.dt_max); }
  void operator()(const ops::OneMinusExp& op) const { one_minus_exp(op.y, op.x); }
  void operator()(const ops::Rope& op) const {
    op.rotation ? rope(op.y, op.x, op.first, *op.rotation) : rope(op.y, op.x, op.first, op.theta, op.rotary);
  }

  void operator()(const ops::Embed& op) const { embed(op.y, op.table, op.ids); }
  void operator()(const ops::Linear& op) const {
    rounds ? linear_rounded(op.y, op.x, op.weight, op.bias) : linear(op.y, op.x, op.weight, op.bias);
  }
  void operator()(const ops::LinearByHead& op) const { linear_by_head(op.product); }

  void operator()(const ops::TopK& op) const { top_k(op.ids, op.scores); }
  void operator()(const ops::Renormalise& op) const { renormalise(op.y, op.gate, op.ids); }
  void operator()(const ops::ScoreExperts& op) const { score_experts(op.scores); }
  void operator()(const ops::ExpertMlps& op) const { expert_mlps(op.mlps); }
  void operator()(const ops::RowSparse& op) const { row_sparse(op.k, op.log_decay, op.z, op.topk, op.skip_decay); }

  void operator()(const ops::ShortConvolutions& op) const {
    for (const ShortConvolution& convolution : op.convolutions) short_convolution(convolution);
  }
  void operator()(const ops::DecayedOuterProduct& op) const {
    op.chunk_size == 0 ? decayed_outer_product_step(op.memory) : decayed_outer_product_chunk(op.memory, op.chunk_size);
  }
  void operator()(const ops::GatedDeltaRule& op) const {
    op.chunk_size == 0 ? gated_delta_rule_step(op.memory) : gated_delta_rule_chunk(op.memory, op.chunk_size);
  }
  void operator()(const ops::SelectiveScan& op) const { selective_scan(op.memory); }
  void operator()(const ops::Wkv& op) const { wkv(op.memory); }
  void operator()(const ops::LogLinearAttention& op) const { log_linear_attention(op.memory); }
  void operator()(const ops::StateSpace& op) const { state_space(op.memory); }
  void operator()(const ops::SoftmaxAttention& op) const {
    op.chunk_size == 0 ? softmax_attention_step(op.memory) : softmax_attention_chunk(op.memory, op.chunk_size);
  }
  void operator()(const ops::CompressedAttention& op) const { compressed_attention(op.memory); }
  void operator()(const ops::ChooseTokens& op) const { choose_tokens(op.choice); }

  void operator()(const ops::NextTokenNll& op) const { next_token_nll(op.nll, op.logits, op.ids); }
  void operator()(const ops::TotalVariation& op) const { total_variation(op.distance, op.a, op.b); }
  void operator()(const ops::RowNorms& op) const { row_norms(op.norms, op.x); }
  void operator()(const ops::RowCosine& op) const { row_cosine(op.cosine, op.z); }
  void operator()(const ops::SingularValues& op) const { singular_values(op.sigma, op.z); }

  template <Fused Op>
  void operator()(const Op& op) const {
    by_parts(op, device);
  }
};

class CpuBackend final : public Backend {
 public:
  /// `threads` 0: as many as there are cores.
  CpuBackend(int threads, Precision precision) : rounds_(precision == Precision::bfloat16) {
    if (threads > 0) limit_.emplace(threads);
  }

  std::string description() const override {
    const int threads = thread_count();
    const std::string exact = "CPU, " + std::to_string(threads) + (threads == 1 ? " thread, " : " threads, ") + instruction_set();
    if (!rounds_) return exact;
    const char* const instructions = bfloat16_instructions();
    return exact + ", products in bfloat16" + (instructions ? std::string(" (") + instructions + ")" : "");
  }

  Buffer allocate(std::size_t bytes) override {
    constexpr std::size_t alignment = 64;
    void* memory = std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
    if (memory == nullptr) throw std::bad_alloc();
    return Buffer(memory, std::free);
  }
  void upload(Tensor device, ConstTensor host) override { copy_contiguous(device, host); }
  void download(Tensor host, ConstTensor device) override { copy_contiguous(host, device); }
  ConstTensor adopt(ConstTensor host, Buffer&) override { return host; }

  void run(const Operation& operation) override { std::visit(OnCpu{*this, rounds_}, operation); }

 private:
  bool rounds_;
  std::optional<ThreadLimit> limit_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(int threads) { return make_cpu_backend(threads, Precision::float32); }

std::unique_ptr<Backend> make_cpu_backend(int threads, Precision precision) { return std::make_unique<CpuBackend>(threads, precision); }

}  // namespace statescope

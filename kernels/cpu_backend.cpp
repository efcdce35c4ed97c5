#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>

#include "kernels/backend.h"
#include "kernels/cpu/bfloat16_product.h"
#include "kernels/cpu/parallel.h"
#include "kernels/device.h"

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

  void fill(Tensor x, float value) override { statescope::fill(x, value); }
  void copy(Tensor dst, ConstTensor src) override { statescope::copy(dst, src); }
  void gather_rows(Tensor dst, ConstTensor src, const std::int32_t* rows) override { statescope::gather_rows(dst, src, rows); }
  void scatter_add_rows(Tensor dst, ConstTensor src, const std::int32_t* rows, ConstTensor weight) override {
    statescope::scatter_add_rows(dst, src, rows, weight);
  }

  void embed(Tensor y, ConstTensor table, const std::int32_t* ids) override { statescope::embed(y, table, ids); }
  void linear(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias) override {
    rounds_ ? statescope::linear_rounded(y, x, weight, bias) : statescope::linear(y, x, weight, bias);
  }

  void rms_norm(Tensor y, ConstTensor x, ConstTensor weight, float eps, float offset) override {
    statescope::rms_norm(y, x, weight, eps, offset);
  }
  void rms_norm_plain(Tensor y, ConstTensor x, std::int64_t group, float eps) override { statescope::rms_norm_plain(y, x, group, eps); }
  void l2_norm(Tensor y, ConstTensor x) override { statescope::l2_norm(y, x); }
  void sum_norm(Tensor y, ConstTensor x, float eps) override { statescope::sum_norm(y, x, eps); }
  void softmax(Tensor y, ConstTensor x, float temperature) override { statescope::softmax(y, x, temperature); }
  void activate(Tensor y, ConstTensor x, Activation act) override { statescope::activate(y, x, act); }
  void gate(Tensor y, ConstTensor a, ConstTensor b, Activation act) override { statescope::gate(y, a, b, act); }
  void add(Tensor y, ConstTensor a, ConstTensor b, float factor) override { statescope::add(y, a, b, factor); }
  void scale_heads(Tensor y, ConstTensor x, ConstTensor g, float scale) override { statescope::scale_heads(y, x, g, scale); }
  void divide_heads(Tensor y, ConstTensor x, ConstTensor d, float eps) override { statescope::divide_heads(y, x, d, eps); }
  void log_sigmoid_decay(Tensor y, ConstTensor x, float normalizer, float clamp_min) override {
    statescope::log_sigmoid_decay(y, x, normalizer, clamp_min);
  }
  void gated_delta_decay(Tensor y, ConstTensor a, ConstTensor A_log, ConstTensor dt_bias) override {
    statescope::gated_delta_decay(y, a, A_log, dt_bias);
  }
  void softplus_clamp(Tensor y, ConstTensor x, ConstTensor dt_bias, float dt_min, float dt_max) override {
    statescope::softplus_clamp(y, x, dt_bias, dt_min, dt_max);
  }
  void one_minus_exp(Tensor y, ConstTensor x) override { statescope::one_minus_exp(y, x); }
  void rope(Tensor y, ConstTensor x, std::int64_t first, double theta, std::int64_t rotary) override {
    statescope::rope(y, x, first, theta, rotary);
  }
  void rope(Tensor y, ConstTensor x, std::int64_t first, const Rotation& rotation) override { statescope::rope(y, x, first, rotation); }
  void top_k(Tensor ids, ConstTensor scores) override { statescope::top_k(ids, scores); }
  void renormalise(Tensor y, ConstTensor gate, ConstTensor ids) override { statescope::renormalise(y, gate, ids); }
  void row_sparse(Tensor k, Tensor log_decay, ConstTensor z, std::int64_t topk, bool skip_decay) override {
    statescope::row_sparse(k, log_decay, z, topk, skip_decay);
  }

  void short_convolutions(std::span<const ShortConvolution> ops) override {
    for (const ShortConvolution& op : ops) statescope::short_convolution(op);
  }
  void decayed_outer_product(const DecayedOuterProduct& op, std::int64_t chunk_size) override {
    if (chunk_size == 0) return decayed_outer_product_step(op);
    decayed_outer_product_chunk(op, chunk_size);
  }
  void gated_delta_rule(const GatedDeltaRule& op, std::int64_t chunk_size) override {
    if (chunk_size == 0) return gated_delta_rule_step(op);
    gated_delta_rule_chunk(op, chunk_size);
  }
  void softmax_attention(const SoftmaxAttention& op, std::int64_t chunk_size) override {
    if (chunk_size == 0) return softmax_attention_step(op);
    softmax_attention_chunk(op, chunk_size);
  }
  void next_token_nll(Tensor nll, ConstTensor logits, const std::int32_t* ids) override { statescope::next_token_nll(nll, logits, ids); }
  void total_variation(Tensor distance, ConstTensor a, ConstTensor b) override { statescope::total_variation(distance, a, b); }
  void row_norms(Tensor norms, ConstTensor x) override { statescope::row_norms(norms, x); }
  void row_cosine(Tensor cosine, ConstTensor z) override { statescope::row_cosine(cosine, z); }
  void singular_values(Tensor sigma, ConstTensor z, Workspace&) override { statescope::singular_values(sigma, z); }

 private:
  bool rounds_;
  std::optional<ThreadLimit> limit_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(int threads) { return make_cpu_backend(threads, Precision::float32); }

std::unique_ptr<Backend> make_cpu_backend(int threads, Precision precision) { return std::make_unique<CpuBackend>(threads, precision); }

}  // namespace statescope

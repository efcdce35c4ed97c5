#include <omp.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "kernels/backend.h"

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
  explicit CpuBackend(int threads) : threads_(threads > 0 ? threads : omp_get_num_procs()) {}

  std::string description() const override {
    return "CPU, " + std::to_string(threads_) + (threads_ == 1 ? " thread, " : " threads, ") + instruction_set();
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

  void fill(Tensor x, float value) override { run(statescope::fill, x, value); }
  void copy(Tensor dst, ConstTensor src) override { run(statescope::copy, dst, src); }
  void gather_rows(Tensor dst, ConstTensor src, const std::int32_t* rows) override { run(statescope::gather_rows, dst, src, rows); }
  void scatter_add_rows(Tensor dst, ConstTensor src, const std::int32_t* rows, ConstTensor weight) override {
    run(statescope::scatter_add_rows, dst, src, rows, weight);
  }

  void embed(Tensor y, ConstTensor table, const std::int32_t* ids) override { run(statescope::embed, y, table, ids); }
  void linear(Tensor y, ConstTensor x, ConstTensor weight, ConstTensor bias) override { run(statescope::linear, y, x, weight, bias); }

  void rms_norm(Tensor y, ConstTensor x, ConstTensor weight, float eps, float offset) override {
    run(statescope::rms_norm, y, x, weight, eps, offset);
  }
  void rms_norm_plain(Tensor y, ConstTensor x, std::int64_t group, float eps) override {
    run(statescope::rms_norm_plain, y, x, group, eps);
  }
  void l2_norm(Tensor y, ConstTensor x) override { run(statescope::l2_norm, y, x); }
  void sum_norm(Tensor y, ConstTensor x, float eps) override { run(statescope::sum_norm, y, x, eps); }
  void softmax(Tensor y, ConstTensor x, float temperature) override { run(statescope::softmax, y, x, temperature); }
  void activate(Tensor y, ConstTensor x, Activation act) override { run(statescope::activate, y, x, act); }
  void gate(Tensor y, ConstTensor a, ConstTensor b, Activation act) override { run(statescope::gate, y, a, b, act); }
  void add(Tensor y, ConstTensor a, ConstTensor b, float factor) override { run(statescope::add, y, a, b, factor); }
  void scale_heads(Tensor y, ConstTensor x, ConstTensor g, float scale) override { run(statescope::scale_heads, y, x, g, scale); }
  void divide_heads(Tensor y, ConstTensor x, ConstTensor d, float eps) override { run(statescope::divide_heads, y, x, d, eps); }
  void log_sigmoid_decay(Tensor y, ConstTensor x, float normalizer, float clamp_min) override {
    run(statescope::log_sigmoid_decay, y, x, normalizer, clamp_min);
  }
  void gated_delta_decay(Tensor y, ConstTensor a, ConstTensor A_log, ConstTensor dt_bias) override {
    run(statescope::gated_delta_decay, y, a, A_log, dt_bias);
  }
  void softplus_clamp(Tensor y, ConstTensor x, ConstTensor dt_bias, float dt_min, float dt_max) override {
    run(statescope::softplus_clamp, y, x, dt_bias, dt_min, dt_max);
  }
  void one_minus_exp(Tensor y, ConstTensor x) override { run(statescope::one_minus_exp, y, x); }
  void rope(Tensor y, ConstTensor x, std::int64_t first, double theta, std::int64_t rotary) override {
    run(statescope::rope, y, x, first, theta, rotary);
  }
  void top_k(Tensor ids, ConstTensor scores) override { run(statescope::top_k, ids, scores); }
  void renormalise(Tensor y, ConstTensor gate, ConstTensor ids) override { run(statescope::renormalise, y, gate, ids); }
  void row_sparse(Tensor k, Tensor log_decay, ConstTensor z, std::int64_t topk, bool skip_decay) override {
    run(statescope::row_sparse, k, log_decay, z, topk, skip_decay);
  }

  void short_convolution(const ShortConvolution& op) override { run(statescope::short_convolution, op); }
  void decayed_outer_product(const DecayedOuterProduct& op, std::int64_t chunk_size) override {
    if (chunk_size == 0) return run(decayed_outer_product_step, op);
    run(decayed_outer_product_chunk, op, chunk_size);
  }
  void gated_delta_rule(const GatedDeltaRule& op, std::int64_t chunk_size) override {
    if (chunk_size == 0) return run(gated_delta_rule_step, op);
    run(gated_delta_rule_chunk, op, chunk_size);
  }
  void softmax_attention(const SoftmaxAttention& op, std::int64_t chunk_size) override {
    if (chunk_size == 0) return run(softmax_attention_step, op);
    run(softmax_attention_chunk, op, chunk_size);
  }

 private:
  /// OpenMP counts threads for each calling thread, and the one that computes need not be the one that made the backend.
  template <class... Parameter, class... Argument>
  void run(void (*kernel)(Parameter...), const Argument&... argument) const {
    omp_set_num_threads(threads_);
    kernel(argument...);
  }

  int threads_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(int threads) { return std::make_unique<CpuBackend>(threads); }

}  // namespace statescope

// A device that fails when a test wants it to: the CPU behind a hook that every operation calls first.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/device.h"

namespace statescope::test {

class FailingDevice : public Backend {
 public:
  /// `before` throws, or does not.
  explicit FailingDevice(std::function<void(std::string_view operation)> before) : before_(std::move(before)) {}

  std::string description() const override { return "a device that fails"; }
  Buffer allocate(std::size_t bytes) override { return on("allocate").allocate(bytes); }
  void upload(Tensor a, ConstTensor b) override { on("upload").upload(a, b); }
  void download(Tensor a, ConstTensor b) override { on("download").download(a, b); }
  ConstTensor adopt(ConstTensor host, Buffer& owner) override { return on("adopt").adopt(host, owner); }
  void fill(Tensor x, float value) override { on("fill").fill(x, value); }
  void copy(Tensor a, ConstTensor b) override { on("copy").copy(a, b); }
  void gather_rows(Tensor a, ConstTensor b, const std::int32_t* rows) override { on("gather_rows").gather_rows(a, b, rows); }
  void scatter_add_rows(Tensor a, ConstTensor b, const std::int32_t* rows, ConstTensor c) override {
    on("scatter_add_rows").scatter_add_rows(a, b, rows, c);
  }
  void embed(Tensor y, ConstTensor table, const std::int32_t* ids) override { on("embed").embed(y, table, ids); }
  void linear(Tensor y, ConstTensor x, ConstTensor w, ConstTensor b) override { on("linear").linear(y, x, w, b); }
  void rms_norm(Tensor y, ConstTensor x, ConstTensor w, float e, float o) override { on("rms_norm").rms_norm(y, x, w, e, o); }
  void rms_norm_plain(Tensor y, ConstTensor x, std::int64_t n, float e) override { on("rms_norm_plain").rms_norm_plain(y, x, n, e); }
  void l2_norm(Tensor y, ConstTensor x) override { on("l2_norm").l2_norm(y, x); }
  void sum_norm(Tensor y, ConstTensor x, float e) override { on("sum_norm").sum_norm(y, x, e); }
  void softmax(Tensor y, ConstTensor x, float t) override { on("softmax").softmax(y, x, t); }
  void activate(Tensor y, ConstTensor x, Activation act) override { on("activate").activate(y, x, act); }
  void gate(Tensor y, ConstTensor a, ConstTensor b, Activation act) override { on("gate").gate(y, a, b, act); }
  void add(Tensor y, ConstTensor a, ConstTensor b, float f) override { on("add").add(y, a, b, f); }
  void scale_heads(Tensor y, ConstTensor x, ConstTensor g, float s) override { on("scale_heads").scale_heads(y, x, g, s); }
  void divide_heads(Tensor y, ConstTensor x, ConstTensor d, float e) override { on("divide_heads").divide_heads(y, x, d, e); }
  void log_sigmoid_decay(Tensor y, ConstTensor x, float n, float c) override { on("log_sigmoid_decay").log_sigmoid_decay(y, x, n, c); }
  void gated_delta_decay(Tensor y, ConstTensor a, ConstTensor A, ConstTensor d) override {
    on("gated_delta_decay").gated_delta_decay(y, a, A, d);
  }
  void softplus_clamp(Tensor y, ConstTensor x, ConstTensor d, float a, float b) override {
    on("softplus_clamp").softplus_clamp(y, x, d, a, b);
  }
  void one_minus_exp(Tensor y, ConstTensor x) override { on("one_minus_exp").one_minus_exp(y, x); }
  void rope(Tensor y, ConstTensor x, std::int64_t first, double t, std::int64_t n) override { on("rope").rope(y, x, first, t, n); }
  void rope(Tensor y, ConstTensor x, std::int64_t first, const Rotation& rotation) override { on("rope").rope(y, x, first, rotation); }
  void top_k(Tensor ids, ConstTensor scores) override { on("top_k").top_k(ids, scores); }
  void renormalise(Tensor y, ConstTensor g, ConstTensor ids) override { on("renormalise").renormalise(y, g, ids); }
  void row_sparse(Tensor k, Tensor d, ConstTensor z, std::int64_t n, bool s) override { on("row_sparse").row_sparse(k, d, z, n, s); }
  void short_convolutions(std::span<const ShortConvolution> ops) override { on("short_convolutions").short_convolutions(ops); }
  void decayed_outer_product(const DecayedOuterProduct& op, std::int64_t chunk) override {
    on("decayed_outer_product").decayed_outer_product(op, chunk);
  }
  void gated_delta_rule(const GatedDeltaRule& op, std::int64_t chunk) override { on("gated_delta_rule").gated_delta_rule(op, chunk); }
  void softmax_attention(const SoftmaxAttention& op, std::int64_t chunk) override { on("softmax_attention").softmax_attention(op, chunk); }
  void next_token_nll(Tensor nll, ConstTensor z, const std::int32_t* ids) override { on("next_token_nll").next_token_nll(nll, z, ids); }
  void total_variation(Tensor d, ConstTensor a, ConstTensor b) override { on("total_variation").total_variation(d, a, b); }
  void row_norms(Tensor norms, ConstTensor x) override { on("row_norms").row_norms(norms, x); }
  void row_cosine(Tensor cosine, ConstTensor z) override { on("row_cosine").row_cosine(cosine, z); }
  void singular_values(Tensor sigma, ConstTensor z, Workspace& w) override { on("singular_values").singular_values(sigma, z, w); }

 private:
  Backend& on(std::string_view operation) {
    before_(operation);
    return *cpu_;
  }

  std::function<void(std::string_view)> before_;
  std::unique_ptr<Backend> cpu_ = make_cpu_backend(1);
};

}  // namespace statescope::test

// Where a model takes its weights from: a checkpoint's tensors, checked against the shape that the model expects, on the device that runs
// it.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "kernels/backend.h"

namespace statescope {

class ExpertCache;

/// A tensor that a model asks for.
struct TensorSpec {
  std::string name;
  std::vector<std::int64_t> shape;
};

class Weights {
 public:
  virtual ~Weights() = default;
  virtual bool has(const std::string& name) const = 0;
  /// What follows is asked for by this layer; −1: by none, as at the beginning.
  virtual void enter(std::int64_t /*layer*/) {}
  /// Extent of an axis of a tensor; `fallback` if there is no such tensor.
  virtual std::int64_t extent(const std::string& name, std::size_t axis, std::int64_t fallback) const = 0;
  /// As stored (float32, float16, bfloat16, on the host also float8), on the device. Throws Error saying which tensor, what was found and
  /// what was expected.
  virtual ConstTensor matrix(const std::string& name, std::vector<std::int64_t> shape) = 0;
  /// The same for several, side by side on a device that has memory of its own, each from a multiple of 64 bytes on: so that products with
  /// them may be one where they fill those (Backend::linear_together).
  virtual std::vector<ConstTensor> matrices(const std::vector<TensorSpec>& specs);
  /// A matrix of an expert: as `matrix`, or in the host's memory where the layer's experts stay there.
  virtual ConstTensor expert_matrix(const std::string& name, std::vector<std::int64_t> shape) { return matrix(name, std::move(shape)); }
  /// The same for several, as `matrices`.
  virtual std::vector<ConstTensor> expert_matrices(const std::vector<TensorSpec>& specs);
  /// What brings them to the device then; null: they are there.
  virtual std::shared_ptr<ExpertCache> expert_cache() { return nullptr; }
  /// A matrix whose rows come in another order: row i is the stored row `order`[i]. Of float8 it becomes float32.
  virtual ConstTensor matrix_in_order(const std::string& name, std::vector<std::int64_t> shape, std::span<const std::int64_t> order) = 0;
  /// The same as float32: norms, gates, decays, biases, convolutions.
  virtual ConstTensor floats(const std::string& name, std::vector<std::int64_t> shape) = 0;
  /// The same as float32 on the host.
  virtual std::vector<float> host(const std::string& name, std::vector<std::int64_t> shape) = 0;
  /// Numbers that follow from the config alone, on the device: [values.size()].
  virtual ConstTensor constant(const std::vector<float>& values) = 0;
  /// The same as i32.
  virtual ConstTensor indices(const std::vector<std::int32_t>& values) = 0;
};

/// Weights under a common prefix: "model.layers.0.attn.".
class WeightScope {
 public:
  WeightScope(Weights& weights, std::string prefix, bool of_expert = false)
      : weights_(weights), prefix_(std::move(prefix)), of_expert_(of_expert) {}
  WeightScope scope(std::string_view more) const { return {weights_, prefix_ + std::string(more), of_expert_}; }
  /// The same tensors, which are an expert's.
  WeightScope of_expert() const { return {weights_, prefix_, true}; }
  std::shared_ptr<ExpertCache> expert_cache() const { return weights_.expert_cache(); }
  /// Tensors of the whole model, by their full names.
  WeightScope of_model() const { return {weights_, ""}; }
  bool has(std::string_view name) const { return weights_.has(full(name)); }
  std::int64_t extent(std::string_view name, std::size_t axis, std::int64_t fallback) const {
    return weights_.extent(full(name), axis, fallback);
  }
  ConstTensor matrix(std::string_view name, std::vector<std::int64_t> shape) const {
    return of_expert_ ? weights_.expert_matrix(full(name), std::move(shape)) : weights_.matrix(full(name), std::move(shape));
  }
  ConstTensor matrix_in_order(std::string_view name, std::vector<std::int64_t> shape, std::span<const std::int64_t> order) const {
    return weights_.matrix_in_order(full(name), std::move(shape), order);
  }
  std::vector<ConstTensor> matrices(std::vector<TensorSpec> specs) const {
    for (TensorSpec& spec : specs) spec.name = full(spec.name);
    return of_expert_ ? weights_.expert_matrices(specs) : weights_.matrices(specs);
  }
  ConstTensor floats(std::string_view name, std::vector<std::int64_t> shape) const { return weights_.floats(full(name), std::move(shape)); }
  std::vector<float> host(std::string_view name, std::vector<std::int64_t> shape) const {
    return weights_.host(full(name), std::move(shape));
  }
  ConstTensor constant(const std::vector<float>& values) const { return weights_.constant(values); }
  ConstTensor indices(const std::vector<std::int32_t>& values) const { return weights_.indices(values); }
  /// What the file calls it.
  std::string full(std::string_view name) const { return prefix_ + std::string(name); }

 private:
  Weights& weights_;
  std::string prefix_;
  bool of_expert_;
};

/// Takes tensors from a list (a checkpoint's, after its legacy forms have been made regular); remembers which ones were asked for.
class StoredWeights final : public Weights {
 public:
  StoredWeights(std::vector<StoredTensor> tensors, Backend& backend) : StoredWeights(std::move(tensors), backend, {}) {}
  /// Each layer has a device, and what belongs to none is on `home`. Layers of two devices that share a tensor have it on both.
  StoredWeights(std::vector<StoredTensor> tensors, Backend& home, std::vector<Backend*> of_layers);
  /// The experts of a layer stay in the host's memory; null: on its device.
  void keep_experts_on_host(std::vector<std::shared_ptr<ExpertCache>> of_layers) { expert_caches_ = std::move(of_layers); }
  bool has(const std::string& name) const override;
  void enter(std::int64_t layer) override;
  std::int64_t extent(const std::string& name, std::size_t axis, std::int64_t fallback) const override;
  ConstTensor matrix(const std::string& name, std::vector<std::int64_t> shape) override;
  ConstTensor matrix_in_order(const std::string& name, std::vector<std::int64_t> shape, std::span<const std::int64_t> order) override;
  std::vector<ConstTensor> matrices(const std::vector<TensorSpec>& specs) override;
  ConstTensor expert_matrix(const std::string& name, std::vector<std::int64_t> shape) override;
  std::vector<ConstTensor> expert_matrices(const std::vector<TensorSpec>& specs) override;
  std::shared_ptr<ExpertCache> expert_cache() override { return expert_cache_; }
  ConstTensor floats(const std::string& name, std::vector<std::int64_t> shape) override;
  std::vector<float> host(const std::string& name, std::vector<std::int64_t> shape) override;
  ConstTensor constant(const std::vector<float>& values) override;
  ConstTensor indices(const std::vector<std::int32_t>& values) override;

  std::vector<std::string> unused() const;
  /// Device memory behind the tensors handed out; keep it as long as they are used.
  std::vector<Buffer> take_buffers() { return std::move(buffers_); }

 private:
  bool is_widened(const StoredTensor& stored) const;
  const StoredTensor& checked(const std::string& name, const std::vector<std::int64_t>& shape);
  std::map<std::string, StoredTensor> tensors_;
  std::map<std::string, bool> used_;
  std::map<std::pair<Backend*, std::string>, ConstTensor> matrices_;  // those handed out by themselves: layers may share them
  Backend* home_;
  std::vector<Backend*> of_layers_;                          // empty: all at home
  Backend* backend_;                                         // of what is asked for
  std::vector<std::shared_ptr<ExpertCache>> expert_caches_;  // [layers] or empty
  std::shared_ptr<ExpertCache> expert_cache_;                // of what is asked for
  std::vector<Buffer> buffers_;
};

/// Lists what a model asks for instead of giving it: its tensors can be described, not read.
class DescribedWeights final : public Weights {
 public:
  bool has(const std::string&) const override { return false; }
  std::int64_t extent(const std::string&, std::size_t, std::int64_t fallback) const override { return fallback; }
  ConstTensor matrix(const std::string& name, std::vector<std::int64_t> shape) override;
  ConstTensor matrix_in_order(const std::string& name, std::vector<std::int64_t> shape, std::span<const std::int64_t>) override {
    return matrix(name, std::move(shape));
  }
  ConstTensor floats(const std::string& name, std::vector<std::int64_t> shape) override { return matrix(name, std::move(shape)); }
  std::vector<float> host(const std::string& name, std::vector<std::int64_t> shape) override;
  ConstTensor constant(const std::vector<float>& values) override;
  ConstTensor indices(const std::vector<std::int32_t>& values) override;
  std::vector<TensorSpec> specs;
};

/// Extents as a device's tensors have them: up to four axes, trailing ones folded into the last; a scalar is one row of one.
Shape folded(const std::vector<std::int64_t>& extents);

/// Widens any stored float tensor to float32.
void widen(float* to, const StoredTensor& from);

}  // namespace statescope

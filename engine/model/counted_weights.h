// What a model asks for, added up.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/model/placement.h"

namespace statescope {

/// Adds up what is asked for instead of giving it, in a part for each layer, and one behind them. Tensors without data count as zeros.
class CountedWeights : public Weights {
 public:
  CountedWeights(const std::vector<StoredTensor>& tensors, std::size_t layers) : parts(layers + 1) {
    for (const StoredTensor& tensor : tensors) tensors_.emplace(tensor.name, &tensor);
  }

  std::vector<PartBytes> parts;

  bool has(const std::string& name) const override { return tensors_.contains(name); }
  void enter(std::int64_t layer) override { part_ = layer < 0 ? parts.size() - 1 : static_cast<std::size_t>(layer); }
  std::int64_t extent(const std::string& name, std::size_t axis, std::int64_t fallback) const override {
    const auto found = tensors_.find(name);
    return found == tensors_.end() || axis >= found->second->shape.size() ? fallback : found->second->shape[axis];
  }
  ConstTensor matrix(const std::string& name, std::vector<std::int64_t> shape) override {
    const DType type = type_of(name);
    const Shape extents = folded(shape);
    const auto numbers = static_cast<std::size_t>(extents.size());
    add(numbers * size_of(type == DType::f8 ? DType::f32 : type), numbers * size_of(type));
    return {&kNowhere, type, extents};
  }
  ConstTensor expert_matrix(const std::string& name, std::vector<std::int64_t> shape) override {
    const std::size_t before = parts[part_].own;
    const ConstTensor given = matrix(name, std::move(shape));
    if (given.dtype != DType::f8) parts[part_].experts += parts[part_].own - before;
    return given;
  }
  ConstTensor matrix_in_order(const std::string& name, std::vector<std::int64_t> shape, std::span<const std::int64_t>) override {
    return type_of(name) == DType::f8 ? widened(folded(shape), DType::f32) : matrix(name, std::move(shape));
  }
  ConstTensor floats(const std::string&, std::vector<std::int64_t> shape) override { return widened(folded(shape), DType::f32); }
  std::vector<float> host(const std::string& name, std::vector<std::int64_t> shape) override {
    std::vector<float> values(static_cast<std::size_t>(folded(shape).size()));
    const auto found = tensors_.find(name);
    if (found != tensors_.end() && found->second->data && found->second->size() == std::ssize(values)) widen(values.data(), *found->second);
    return values;
  }
  ConstTensor constant(const std::vector<float>& values) override { return widened({std::ssize(values)}, DType::f32); }
  ConstTensor indices(const std::vector<std::int32_t>& values) override { return widened({std::ssize(values)}, DType::i32); }

 protected:
  std::size_t part() const { return part_; }  // that is being asked for
  DType type_of(const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? DType::f32 : found->second->dtype;
  }

 private:
  static constexpr std::byte kNowhere{};
  void add(std::size_t own, std::size_t host) {
    parts[part_].own += own;
    parts[part_].host += host;
  }
  ConstTensor widened(const Shape& extents, DType type) {
    add(static_cast<std::size_t>(extents.size()) * size_of(type), static_cast<std::size_t>(extents.size()) * size_of(type));
    return {&kNowhere, type, extents};
  }

  std::map<std::string, const StoredTensor*> tensors_;
  std::size_t part_ = parts.size() - 1;
};

}  // namespace statescope

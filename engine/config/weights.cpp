#include "engine/config/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Core>
#include <cstring>

#include "engine/error.h"
#include "kernels/ops/linear.h"

namespace statescope {
namespace {

ConstTensor uploaded(Backend& backend, std::vector<Buffer>& buffers, ConstTensor values) {
  buffers.push_back(backend.allocate(static_cast<std::size_t>(values.shape.size()) * size_of(values.dtype)));
  const Tensor device(buffers.back().get(), values.dtype, values.shape);
  backend.upload(device, values);
  return device;
}

}  // namespace

Shape folded(const std::vector<std::int64_t>& extents) {
  Shape shape;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    if (axis < 4) {
      shape.push_back(extents[axis]);
    } else {
      shape[3] *= extents[axis];
    }
  }
  if (extents.empty()) shape.push_back(1);
  return shape;
}

void widen(float* to, const StoredTensor& from) {
  const std::int64_t n = from.size();
  const auto* halves = reinterpret_cast<const std::uint16_t*>(from.data);
  switch (from.dtype) {
    case DType::f32:
      std::memcpy(to, from.data, static_cast<std::size_t>(n) * sizeof(float));
      break;
    case DType::f16:
      for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(halves[i]));
      break;
    case DType::bf16:
      for (std::int64_t i = 0; i < n; ++i) to[i] = std::bit_cast<float>(static_cast<std::uint32_t>(halves[i]) << 16);
      break;
    case DType::f8:
      for (std::int64_t row = 0, width = n / from.shape[0]; row < from.shape[0]; ++row) widen_row(to + row * width, from.matrix(), row);
      break;
    case DType::i32:
      throw Error(fmt::format("{}: an integer tensor cannot be a weight", from.name));
  }
}

std::vector<ConstTensor> Weights::matrices(const std::vector<TensorSpec>& specs) {
  std::vector<ConstTensor> all;
  for (const TensorSpec& spec : specs) all.push_back(matrix(spec.name, spec.shape));
  return all;
}

std::vector<ConstTensor> Weights::expert_matrices(const std::vector<TensorSpec>& specs) {
  std::vector<ConstTensor> all;
  for (const TensorSpec& spec : specs) all.push_back(expert_matrix(spec.name, spec.shape));
  return all;
}

StoredWeights::StoredWeights(std::vector<StoredTensor> tensors, Backend& home, std::vector<Backend*> of_layers)
    : home_(&home), of_layers_(std::move(of_layers)), backend_(&home) {
  for (StoredTensor& tensor : tensors) {
    std::string name = tensor.name;
    if (!used_.emplace(name, false).second) throw Error(fmt::format("two tensors are read as {}", name));
    tensors_.emplace(std::move(name), std::move(tensor));
  }
}

void StoredWeights::enter(std::int64_t layer) {
  backend_ = layer < 0 || of_layers_.empty() ? home_ : of_layers_[static_cast<std::size_t>(layer)];
  expert_cache_ = layer < 0 || expert_caches_.empty() ? nullptr : expert_caches_[static_cast<std::size_t>(layer)];
}

bool StoredWeights::has(const std::string& name) const { return tensors_.contains(name); }

std::int64_t StoredWeights::extent(const std::string& name, std::size_t axis, std::int64_t fallback) const {
  auto it = tensors_.find(name);
  return it == tensors_.end() || axis >= it->second.shape.size() ? fallback : it->second.shape[axis];
}

const StoredTensor& StoredWeights::checked(const std::string& name, const std::vector<std::int64_t>& shape) {
  auto it = tensors_.find(name);
  if (it == tensors_.end()) throw Error(fmt::format("tensor {} is missing, expected with shape [{}]", name, fmt::join(shape, ", ")));
  if (it->second.shape != shape) {
    throw Error(fmt::format("tensor {} has shape [{}], expected [{}] by the config", name, fmt::join(it->second.shape, ", "),
                            fmt::join(shape, ", ")));
  }
  used_[name] = true;
  return it->second;
}

/// A device with memory of its own reads no float8.
bool StoredWeights::is_widened(const StoredTensor& stored) const { return stored.dtype == DType::f8 && backend_->has_own_memory(); }

ConstTensor StoredWeights::matrix(const std::string& name, std::vector<std::int64_t> shape) {
  const StoredTensor& stored = checked(name, shape);
  if (is_widened(stored)) return floats(name, std::move(shape));
  if (const auto known = matrices_.find({backend_, name}); known != matrices_.end()) return known->second;
  Buffer owner;
  ConstTensor weight = backend_->adopt({stored.data, stored.dtype, folded(shape)}, owner);
  weight.scales = stored.scales;
  if (owner) buffers_.push_back(std::move(owner));
  return matrices_[{backend_, name}] = weight;
}

ConstTensor StoredWeights::expert_matrix(const std::string& name, std::vector<std::int64_t> shape) {
  if (!expert_cache_) return matrix(name, std::move(shape));
  const StoredTensor& stored = checked(name, shape);
  return {stored.data, stored.dtype, folded(shape)};
}

std::vector<ConstTensor> StoredWeights::expert_matrices(const std::vector<TensorSpec>& specs) {
  return expert_cache_ ? Weights::expert_matrices(specs) : matrices(specs);
}

ConstTensor StoredWeights::matrix_in_order(const std::string& name, std::vector<std::int64_t> shape, std::span<const std::int64_t> order) {
  const StoredTensor& stored = checked(name, shape);
  const std::vector<float> wide = stored.scales ? host(name, shape) : std::vector<float>();
  const auto* const data = stored.scales ? reinterpret_cast<const std::byte*>(wide.data()) : stored.data;
  const DType type = stored.scales ? DType::f32 : stored.dtype;
  const std::size_t row = static_cast<std::size_t>(stored.size() / shape[0]) * size_of(type);
  std::vector<std::byte> rows;
  for (const std::int64_t i : order)
    rows.insert(rows.end(), data + static_cast<std::size_t>(i) * row, data + static_cast<std::size_t>(i + 1) * row);
  const Tensor weight(buffers_.emplace_back(backend_->allocate_weights(rows.size())).get(), type, folded(shape));
  backend_->upload(weight, ConstTensor(rows.data(), type, weight.shape));
  return weight;
}

std::vector<ConstTensor> StoredWeights::matrices(const std::vector<TensorSpec>& specs) {
  if (!backend_->has_own_memory()) return Weights::matrices(specs);
  constexpr std::size_t alignment = 64;
  std::vector<std::size_t> begins;
  std::size_t bytes = 0;
  for (const TensorSpec& spec : specs) {
    begins.push_back(bytes);
    const StoredTensor& stored = checked(spec.name, spec.shape);
    const std::size_t of_number = is_widened(stored) ? sizeof(float) : size_of(stored.dtype);
    bytes += (static_cast<std::size_t>(stored.size()) * of_number + alignment - 1) / alignment * alignment;
  }
  auto* const block = static_cast<std::byte*>(buffers_.emplace_back(backend_->allocate_weights(bytes)).get());
  std::vector<ConstTensor> all;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const StoredTensor& stored = checked(specs[i].name, specs[i].shape);
    const std::vector<float> wide = is_widened(stored) ? host(specs[i].name, specs[i].shape) : std::vector<float>();
    const Tensor weight(block + begins[i], wide.empty() ? stored.dtype : DType::f32, folded(stored.shape));
    backend_->upload(weight, {wide.empty() ? stored.data : static_cast<const void*>(wide.data()), weight.dtype, weight.shape});
    all.emplace_back(weight);
  }
  return all;
}

std::vector<float> StoredWeights::host(const std::string& name, std::vector<std::int64_t> shape) {
  const StoredTensor& stored = checked(name, shape);
  std::vector<float> values(static_cast<std::size_t>(stored.size()));
  widen(values.data(), stored);
  return values;
}

ConstTensor StoredWeights::floats(const std::string& name, std::vector<std::int64_t> shape) {
  const Shape extents = folded(shape);
  const std::vector<float> values = host(name, std::move(shape));
  return uploaded(*backend_, buffers_, {values.data(), DType::f32, extents});
}

ConstTensor StoredWeights::constant(const std::vector<float>& values) {
  return uploaded(*backend_, buffers_, {values.data(), DType::f32, {static_cast<std::int64_t>(values.size())}});
}

ConstTensor StoredWeights::indices(const std::vector<std::int32_t>& values) {
  return uploaded(*backend_, buffers_, {values.data(), DType::i32, {static_cast<std::int64_t>(values.size())}});
}

std::vector<std::string> StoredWeights::unused() const {
  std::vector<std::string> names;
  for (const auto& [name, used] : used_) {
    if (!used) names.push_back(name);
  }
  return names;
}

namespace {

/// Where described tensors point to; nothing reads it.
constexpr std::byte kNowhere{};

}  // namespace

ConstTensor DescribedWeights::matrix(const std::string& name, std::vector<std::int64_t> shape) {
  specs.push_back({name, shape});
  return {&kNowhere, DType::f32, folded(shape)};
}

std::vector<float> DescribedWeights::host(const std::string& name, std::vector<std::int64_t> shape) {
  std::vector<float> zeros(static_cast<std::size_t>(folded(shape).size()));
  specs.push_back({name, std::move(shape)});
  return zeros;
}

ConstTensor DescribedWeights::constant(const std::vector<float>& values) {
  return {&kNowhere, DType::f32, {static_cast<std::int64_t>(values.size())}};
}

ConstTensor DescribedWeights::indices(const std::vector<std::int32_t>& values) {
  return {&kNowhere, DType::i32, {static_cast<std::int64_t>(values.size())}};
}

}  // namespace statescope

#include "engine/model/expert_cache.h"

namespace statescope {

std::size_t ExpertCache::bytes_of(ConstTensor matrix) {
  constexpr std::size_t alignment = 256;
  const std::size_t bytes = static_cast<std::size_t>(matrix.shape.size()) * size_of(matrix.dtype);
  return (bytes + alignment - 1) / alignment * alignment;
}

void ExpertCache::expect(std::span<const ConstTensor> matrices) {
  std::size_t bytes = 0;
  for (const ConstTensor& matrix : matrices) bytes += bytes_of(matrix);
  place_bytes_ = std::max(place_bytes_, bytes);
}

/// The one that was used longest ago, now the last.
ExpertCache::Place& ExpertCache::free_place() {
  if (!memory_) {
    memory_ = device_.allocate_weights(places() * place_bytes_);
    for (std::size_t i = 0; i < places(); ++i) places_.push_back({nullptr, static_cast<std::byte*>(memory_.get()) + i * place_bytes_});
  }
  places_.splice(places_.end(), places_, places_.begin());
  by_expert_.erase(places_.back().expert);
  return places_.back();
}

std::vector<ConstTensor> ExpertCache::bring(std::span<const ConstTensor> matrices) {
  const void* const expert = matrices.front().data;
  const auto known = by_expert_.find(expert);
  const bool is_here = known != by_expert_.end();
  if (is_here) places_.splice(places_.end(), places_, known->second);
  Place& place = is_here ? places_.back() : free_place();
  std::vector<ConstTensor> there;
  std::byte* at = place.memory;
  for (const ConstTensor& matrix : matrices) {
    const Tensor copy(at, matrix.dtype, matrix.shape);
    if (!is_here) device_.upload(copy, matrix);
    there.emplace_back(copy);
    at += bytes_of(matrix);
  }
  if (is_here) return there;
  place.expert = expert;
  by_expert_[expert] = std::prev(places_.end());
  ++brought_;
  return there;
}

}  // namespace statescope

#include "kernels/program/kv_cache.h"

#include <algorithm>

namespace statescope {

KvCache KvCache::first(std::int64_t tokens) const {
  KvCache cache = *this;
  if (!k) return cache;
  cache.k = k.slice(0, tokens);
  if (v) cache.v = v.slice(0, tokens);
  if (index) cache.index = index.slice(0, tokens);
  cache.length = tokens;
  return cache;
}

void append(KvCache& cache, Backend& backend, ConstTensor k, ConstTensor v, ConstTensor index) {
  const std::int64_t length = cache.length + k.rows();
  const std::int64_t capacity = cache.k ? cache.k.rows() : 0;
  const auto each_part = [&](const auto& work) {
    work(cache.k, k);
    if (v) work(cache.v, v);
    if (index) work(cache.index, index);
  };
  if (length > capacity) {
    const std::int64_t grown = std::max<std::int64_t>({length, 2 * capacity, 256});
    std::int64_t numbers = 0;
    each_part([&](Tensor&, ConstTensor rows) { numbers += grown * rows.row_size(); });
    Buffer memory = backend.allocate(static_cast<std::size_t>(numbers) * sizeof(float));
    auto* next = static_cast<float*>(memory.get());
    each_part([&](Tensor& part, ConstTensor rows) {
      Shape shape = rows.shape;
      shape[0] = grown;
      const Tensor larger(next, DType::f32, shape);
      if (cache.length > 0) backend.copy(larger.slice(0, cache.length), part.slice(0, cache.length));
      part = larger;
      next += shape.size();
    });
    cache.memory = std::move(memory);
  }
  each_part([&](Tensor& part, ConstTensor rows) { backend.copy(part.slice(cache.length, rows.rows()), rows); });
  cache.length = length;
}

}  // namespace statescope

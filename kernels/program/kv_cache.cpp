#include "kernels/program/kv_cache.h"

#include <algorithm>

namespace statescope {

void append(KvCache& cache, Backend& backend, ConstTensor k, ConstTensor v) {
  const std::int64_t length = cache.length + k.rows();
  const std::int64_t capacity = cache.k ? cache.k.rows() : 0;
  if (length > capacity) {
    const std::int64_t grown = std::max<std::int64_t>({length, 2 * capacity, 256});
    Shape k_shape = k.shape, v_shape = v.shape;
    k_shape[0] = v_shape[0] = grown;
    Buffer memory = backend.allocate(static_cast<std::size_t>(k_shape.size() + v_shape.size()) * sizeof(float));
    Tensor new_k(memory.get(), DType::f32, k_shape);
    Tensor new_v(static_cast<float*>(memory.get()) + k_shape.size(), DType::f32, v_shape);
    if (cache.length > 0) {
      backend.copy(new_k.slice(0, cache.length), cache.k.slice(0, cache.length));
      backend.copy(new_v.slice(0, cache.length), cache.v.slice(0, cache.length));
    }
    cache.memory = std::move(memory);
    cache.k = new_k;
    cache.v = new_v;
  }
  backend.copy(cache.k.slice(cache.length, k.rows()), k);
  backend.copy(cache.v.slice(cache.length, v.rows()), v);
  cache.length = length;
}

}  // namespace statescope

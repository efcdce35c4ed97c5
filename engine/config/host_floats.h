// Numbers brought back from a device.
#pragma once

#include <vector>

#include "kernels/backend.h"

namespace statescope {

/// Of a float32 tensor, whose rows may be apart.
inline std::vector<float> host_floats(Backend& backend, ConstTensor x) {
  std::vector<float> values(static_cast<std::size_t>(x.shape.size()));
  Buffer packed;
  if (!x.contiguous()) {
    packed = backend.allocate(values.size() * sizeof(float));
    const Tensor copy(packed.get(), DType::f32, x.shape);
    backend.copy(copy, x);
    x = copy;
  }
  backend.download(Tensor(values.data(), DType::f32, x.shape), x);
  return values;
}

}  // namespace statescope

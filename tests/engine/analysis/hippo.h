// HiPPO's matrix, and a small state space that has it (spec §17.17).
#pragma once

#include <cmath>
#include <vector>

#include "tests/engine/model/small_models.h"

namespace statescope::test {

struct Hippo {
  std::vector<float> A, B;

  explicit Hippo(std::size_t N) : A(N * N) {
    for (std::size_t n = 0; n < N; ++n) {
      B.push_back(std::sqrt(2 * static_cast<float>(n) + 1));
      for (std::size_t k = 0; k < n; ++k) A[n * N + k] = -B[n] * B[k];
      A[n * N + n] = -static_cast<float>(n + 1);
    }
  }
};

/// Two layers of 10 states in each of 40 channels.
inline Editable hippo_model() {
  Editable edited(s4_config("hippo"));
  const Hippo hippo(10);
  for (const char* layer : {"0", "1"}) {
    std::ranges::copy(hippo.A, edited.floats(std::string("model.layers.") + layer + ".s4.kernel.A").begin());
    std::ranges::copy(hippo.B, edited.floats(std::string("model.layers.") + layer + ".s4.kernel.B").begin());
  }
  return edited;
}

}  // namespace statescope::test

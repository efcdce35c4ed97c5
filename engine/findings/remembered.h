#pragma once

#include <cstdint>
#include <vector>

#include "engine/accuracy.h"

namespace statescope {

/// The input of one channel of a layer whose state has coefficients of Legendre polynomials, and what those after a token still say of it
/// (spec §17.17); of the tokens in [from, to), at most 512. Empty for any other layer.
struct Remembered {
  static constexpr Accuracy accuracy = kRecomputed;
  std::vector<float> entered;     // [n] u_s
  std::vector<float> remembered;  // [n] û_s; NaN where s is behind the token
  double step = 0;                // Δ of the channel
};

struct RememberedQuestion {
  std::int64_t layer = 0, channel = 0, token = 0, from = 0, to = 0;
  using Answer = Remembered;
  bool operator==(const RememberedQuestion&) const = default;
};

}  // namespace statescope

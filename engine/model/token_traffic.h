// What one token costs a model whose weights nobody has to have: the bytes that go through memory for it, part by part.
#pragma once

#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/model/family.h"

namespace statescope {

struct TokenTraffic {
  double weights = 0;  // bytes read: all of a part's but rows of tables, and of experts those that are chosen
  double states = 0;   // read and written again: matrix states of the slots that the token comes to, caches of convolutions
  double cache = 0;    // keys and values read for each token before it
};

/// Tensors that a model of this config has, without their data: matrices of `dtype`, all else float32. Throws Error.
std::vector<StoredTensor> tensors_without_data(const Config& config, DType dtype);

/// Of each layer, and behind them of what belongs to none: the embedding's row, the last norm, the head.
std::vector<TokenTraffic> token_traffic(const Plan& plan, const std::vector<StoredTensor>& tensors);

}  // namespace statescope

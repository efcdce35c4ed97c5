// Which experts a token goes to, and with which weights (spec §8.1, §19.4, §19.6, §19.10).
#pragma once

#include <vector>

#include "engine/model/ffn.h"

namespace statescope {

/// On the device.
struct ExpertChoice {
  Tensor weights;  // [T, E] w_e; of the others as it happens
  Tensor ids;      // [T, k] i32, of the largest weight first
};

/// From the router's logits [T, E]; `correction` [E] or absent. Emits them and the choice.
ExpertChoice chosen_experts(Context& ctx, Tensor logits, const ExpertsPlan& plan, ConstTensor correction);

/// Its ids [T, k], on the host.
std::vector<std::int32_t> host_ids(Context& ctx, const ExpertChoice& choice);

}  // namespace statescope

// Which experts a token goes to, and with which weights (spec §8.1, §19.4, §19.6, §19.10).
#pragma once

#include <vector>

#include "engine/model/ffn.h"

namespace statescope {

struct ExpertChoice {
  Tensor weights;                 // [T, E] w_e, on the device; of the others as it happens
  std::vector<std::int32_t> ids;  // [T, k], of the largest weight first
  std::int64_t chosen = 0;        // k

  ConstTensor host_ids() const { return {ids.data(), DType::i32, {static_cast<std::int64_t>(ids.size()) / chosen, chosen}}; }
};

/// From the router's logits [T, E]. Emits them and the choice.
ExpertChoice chosen_experts(Context& ctx, Tensor logits, const ExpertsPlan& plan, std::span<const float> correction);

/// The experts of one token by scores s [E] that are each for itself:
///   c = s + correction;   groups, if there are several: those `chosen_groups` whose two largest c have the largest sum, all other c = −∞;
///   the `chosen` largest c, ties to the lowest index, sorted by s.
std::vector<std::int32_t> chosen_by_scores(std::span<const float> scores, const ExpertsPlan& plan, std::span<const float> correction);

}  // namespace statescope

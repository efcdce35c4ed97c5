// RWKV's part between mixers: an MLP that also reads the token before (spec §17.10).
#pragma once

#include "engine/model/ffn.h"

namespace statescope {

std::unique_ptr<Ffn> make_channel_mix(const WeightScope& weights, std::int64_t hidden, const ChannelMixPlan& plan);

}  // namespace statescope

// What `statescope bench` measures of a config without weights.
#pragma once

#include <string_view>

#include "app/bench/bench.h"
#include "engine/config/config.h"

namespace statescope {

/// Reading and decoding of a model with random bfloat16 weights, printed under its name; nothing where that is not wanted.
void bench_random(const Bench& bench, std::string_view name, const Config& config);

}  // namespace statescope

// A checkpoint in memory with random weights: for benchmarks and tests, never for a picture.
#pragma once

#include <memory>

#include "engine/checkpoint/checkpoint.h"
#include "engine/config/config.h"

namespace statescope {

/// Every tensor that `config` needs, drawn from a fixed seed (matrices N(0, 1/in), norms near 1, decays and steps of plausible size).
/// Matrices are stored as `dtype`, everything else as float32. The same seed gives the same weights everywhere. Throws Error.
std::shared_ptr<const Checkpoint> random_checkpoint(const Config& config, std::uint64_t seed, DType dtype = DType::f32);

}  // namespace statescope

// How each group of families plans its stack. Only family.cpp calls these; a new group is one file here and its rows there.
#pragma once

#include "engine/model/family.h"

namespace statescope {

constexpr std::int64_t kMaxLayers = 10'000;  // of num_hidden_layers

/// The families of flash-linear-attention (spec §1, §7).
Plan plan_fla(const Config& config, const std::string& family);
/// Mamba-2 as flash-linear-attention stores it (spec §3.9).
Plan plan_mamba2(const Config& config, const std::string& family);
/// Qwen3-Next and Qwen3.5, bare or within the wrapper of a model for pictures too (spec §8.1, §8.2).
Plan plan_qwen(const Config& outer, const std::string& family);

}  // namespace statescope

// A token's way through a model as one kernel (levels_hopper.cu). Included by .cu files alone.
#pragma once

#include <cuda_runtime.h>

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/cuda_memory_step.h"
#include "kernels/cuda_one_row.h"

namespace statescope::cuda {

namespace one_row {
/// What a captured launch multiplies, weights bf16; nothing where it is another kernel.
std::optional<OneRow> captured(const cudaKernelNodeParams& launch);
}  // namespace one_row

namespace memory_step {
/// The same of a memory's step.
struct Captured {
  Step step;
  bool delta_rule;
};
std::optional<Captured> captured(const cudaKernelNodeParams& launch);
}  // namespace memory_step

/// The only parameter of a captured launch, which lies anywhere.
template <class Parameter>
Parameter parameter_of(const cudaKernelNodeParams& launch) {
  Parameter p;
  std::memcpy(&p, launch.kernelParams[0], sizeof p);
  return p;
}

/// On the device; as long as a graph that uses it.
using LevelMemory = std::shared_ptr<void>;

/// Puts one kernel in the place of launches of a captured graph, one behind the other, that multiply one row or take a memory's step: it
/// fetches a level's weights while those before it are at work, and hands numbers from level to level by mail (cuda_mail.h). They are the
/// numbers of the launches up to float32 rounding. Nothing where the device is not of compute capability 9.0. Throws DeviceError.
std::vector<LevelMemory> put_levels_together(cudaGraph_t graph);

}  // namespace statescope::cuda

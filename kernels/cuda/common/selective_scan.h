// The selective scan (kernels/ops/selective_scan.h) on a device; x and o float32 or bf16.
#pragma once

#include "kernels/cuda/common/cuda.h"
#include "kernels/ops/selective_scan.h"

namespace statescope::cuda {

/// One row of one sequence. False, and nothing done, for anything else.
bool selective_scan_step(const SelectiveScan& op, cudaStream_t stream);

/// Any number of rows a segment; `scratch` has the bytes that `selective_scan_scratch` says. Throws std::invalid_argument for more states
/// a channel than a GPU takes.
std::size_t selective_scan_scratch(const SelectiveScan& op, const DeviceSegments& segments);
void selective_scan(const SelectiveScan& op, const DeviceSegments& segments, void* scratch, cudaStream_t stream);

}  // namespace statescope::cuda

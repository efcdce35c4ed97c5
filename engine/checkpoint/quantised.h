// From the tensors of a folder, of whatever types, to a checkpoint's: quantised matrices are read where their form is known, and refused by
// its name where it is not (spec §19.11–19.17).
#pragma once

#include <vector>

#include "engine/checkpoint/quantisation.h"
#include "engine/checkpoint/safetensors.h"

namespace statescope {

/// Adds all tensors to the checkpoint: float tensors and FP8 matrices as they are stored, INT8, MXFP4 and NVFP4 widened to float32, all
/// with their scales. What is passed over is noted. `tensors` lie in the checkpoint's storage. Throws Error.
void take_tensors(Checkpoint& checkpoint, std::vector<RawTensor> tensors, const Quantisation& said);

}  // namespace statescope

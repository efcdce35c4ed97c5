// One checkpoint read and judged.
#pragma once

#include <functional>
#include <string>

#include "app/inspect/arguments.h"
#include "app/inspect/checkpoints.h"
#include "app/inspect/report.h"

namespace statescope {

/// Reads what the arguments say: prompts, or examples of the checkpoint's own task, `samples` of each length. `tell` hears which part is
/// done, in [0, 1]; returning false cancels. Of a checkpoint with numbers that are not finite the judgement is that alone. Throws Error.
Inspected inspect_checkpoint(const InspectArguments& arguments, const FoundCheckpoint& found, const std::function<bool(double)>& tell);

}  // namespace statescope

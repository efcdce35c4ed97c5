// One checkpoint read and judged.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/common/job_site.h"
#include "app/inspect/arguments.h"
#include "app/inspect/checkpoints.h"
#include "app/inspect/report.h"
#include "engine/run/prompt_input.h"

namespace statescope {

struct InspectText {
  std::string name;
  PromptInput prompt;
  std::string reread;  // as Inspected has it
};

struct InspectJob {
  using Found = Inspected;
  std::int64_t steps = 0;             // of the training; 0: as the checkpoint says
  std::vector<InspectText> texts;     // none: examples of the task that it was trained on
  std::vector<std::int64_t> lengths;  // as InspectArguments has them
  std::int64_t samples = 3;
  std::string reread_with;  // options of the window that follow all `reread`: "--device cuda"
};
/// Reads each of them. Of a checkpoint with numbers that are not finite the judgement is that alone. Throws Error.
Inspected do_job(const InspectJob& job, const JobSite& site);

/// What the arguments say of a checkpoint; `prompt`: what those of a prompt name. Throws Error.
InspectJob inspect_job(const InspectArguments& arguments, const FoundCheckpoint& found,
                       const std::function<PromptInput(const PromptArguments&)>& prompt);
/// The same and done. `tell` hears which part is done, in [0, 1]; returning false cancels.
Inspected inspect_checkpoint(const InspectArguments& arguments, const FoundCheckpoint& found, const std::function<bool(double)>& tell);

/// Which checkpoints there are (find_checkpoints), called as whoever asks calls the place. Throws Error.
struct FindJob {
  using Found = FoundCheckpoints;
};
FoundCheckpoints do_job(const FindJob& job, const JobSite& site);

}  // namespace statescope

// What interventions do to a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/common/job_site.h"
#include "app/jobs/branch_report.h"
#include "engine/run/prompt_input.h"
#include "engine/snapshot.h"

namespace statescope {

struct Intervened {
  BranchReport report;
  std::string family, device;
  std::vector<std::string> notes, remarks;  // the model's; of both runs
  RecordingInfo recording = {};
  std::int64_t tokens = 0;                      // of the run
  std::optional<std::int64_t> again_from = {};  // the first that was read again; unset: none was
};

struct InterveneJob {
  using Found = Intervened;
  PromptInput prompt;
  std::vector<Intervention> interventions;
  std::vector<PromptInput> others;            // runs 1, 2, … that states are imported from
  std::optional<std::int64_t> generate = {};  // unset: as many as the prompt expects, else 32
};
/// Reads the prompt, generates greedily, and reads it again with the interventions. Throws Error.
Intervened do_job(const InterveneJob& job, const JobSite& site);

}  // namespace statescope

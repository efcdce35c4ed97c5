// What became of a prompt's needle.
#pragma once

#include <cstdint>
#include <string>

#include "app/common/job_site.h"
#include "app/needle/report.h"
#include "engine/run/prompt_input.h"

namespace statescope {

struct NeedleFound {
  NeedleReport report;
  std::string remark = {};  // of the run; empty: nothing is to be said
};

struct NeedleJob {
  using Found = NeedleFound;
  PromptInput prompt;
  std::string prompt_name;  // where something is wrong with it
  std::int64_t events = 3;  // of each head
};
/// Throws Error.
NeedleFound do_job(const NeedleJob& job, const JobSite& site);

}  // namespace statescope

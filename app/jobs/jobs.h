// What commands have a model do, here or on an engine on another machine: only what is asked and what is found travels.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "app/eval/eval_job.h"
#include "app/inspect/inspecting.h"
#include "app/jobs/intervene_job.h"
#include "app/jobs/model_job.h"
#include "app/jobs/needle_job.h"

namespace statescope {

using Job = std::variant<InterveneJob, NeedleJob, ModelJob, InspectJob, FindJob, EvalJob>;

/// A job for an engine. It travels by remote::pack and unpack (engine/remote/wire.h), as does what comes of it.
struct JobAsked {
  std::string checkpoint;  // as whoever asks calls it
  Job job;
};
template <class Found>
struct JobDone {
  std::string note;  // why it was done on the CPU; empty: it was done where it was meant to be
  Found found;
};

/// The engine's part: `packed` is a JobAsked, `site` knows all but the checkpoint's name; returns a packed JobDone. Where `auto` chose a
/// CUDA device that fails under way, the CPU does it from the beginning. Throws Error; WireError for bytes that are no job.
std::string do_packed_job(std::string_view packed, JobSite site);

}  // namespace statescope

// What an engine tells of the files of checkpoints.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "engine/remote/messages.h"

namespace statescope {

/// `tell` hears how far the work is; returning false ends it.
using DoJob = std::function<std::string(const std::string& job, const std::filesystem::path& path,
                                        const std::function<bool(double fraction, const std::string& what)>& tell)>;

/// `path`: of what the message calls `checkpoint`. Both throw Error; Cancelled where `goes_on` returns false.
struct AboutCheckpoints {
  std::function<remote::Described(const remote::Describe& asked, const std::filesystem::path& path, const std::function<bool()>& goes_on)>
      describe;
  std::function<remote::PromptMade(const remote::MakePrompt& asked, const std::filesystem::path& path)> make_prompt;
  /// What a command has a model do (app/jobs/jobs.h). Null: nothing.
  DoJob do_job = {};
};

/// `device`: what the engine's runs are read on, as --device says it.
AboutCheckpoints about_checkpoints(const std::string& device);

}  // namespace statescope

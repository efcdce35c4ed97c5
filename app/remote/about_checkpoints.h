// What an engine tells of the files of checkpoints.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "engine/remote/messages.h"

namespace statescope {

/// `path`: of what the message calls `checkpoint`. Both throw Error; Cancelled where `goes_on` returns false.
struct AboutCheckpoints {
  std::function<remote::Described(const remote::Describe& asked, const std::filesystem::path& path, const std::function<bool()>& goes_on)>
      describe;
  std::function<remote::PromptMade(const remote::MakePrompt& asked, const std::filesystem::path& path)> make_prompt;
};

/// `device`: what the engine's runs are read on, as --device says it.
AboutCheckpoints about_checkpoints(const std::string& device);

}  // namespace statescope

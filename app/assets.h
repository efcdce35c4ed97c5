// Where the files lie that come with the program.
#pragma once

#include <filesystem>
#include <vector>

namespace statescope {

/// The assets folder: STATESCOPE_ASSETS if set, beside the program, where it was installed, or in the source tree. Throws Error if there is
/// none.
std::filesystem::path assets_folder();

/// The folders of shipped checkpoints: where a session from another machine may find its own. None where there is no assets folder.
std::vector<std::filesystem::path> checkpoint_places();

/// What the program opens when nothing is named.
struct DefaultRun {
  std::filesystem::path checkpoint, prompt;
};
DefaultRun default_run();

/// By name; none where there is no assets folder.
std::vector<std::filesystem::path> shipped_checkpoints();
/// Likewise the prompts.
std::vector<std::filesystem::path> shipped_prompts();

}  // namespace statescope

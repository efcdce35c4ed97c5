// Where the files lie that come with the program.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace statescope {

/// The assets folder: STATESCOPE_ASSETS if set, beside the program, where it was installed, or in the source tree. Throws Error if there is
/// none.
std::filesystem::path assets_folder();

/// The folders of shipped checkpoints: where a session from another machine may find its own. None where there is no assets folder.
std::vector<std::filesystem::path> checkpoint_places();

/// The shipped checkpoint that is called so, "niah-gla.h5" or "niah-gla"; empty: there is none.
std::filesystem::path shipped_checkpoint(const std::string& name);

/// Where a checkpoint lies that somebody names: there, or, if nothing is there, the shipped one of that name. A path has to be straight in
/// checkpoints/ for that; where neither is to be found, it is `given`.
std::filesystem::path checkpoint_at(const std::filesystem::path& given);

/// What the program opens when nothing is named.
struct DefaultRun {
  std::filesystem::path checkpoint, prompt;
};
DefaultRun default_run();

/// Those of the tasks, by name, without trajectories and seeds; none where there is no assets folder.
std::vector<std::filesystem::path> shipped_checkpoints();
/// Likewise the prompts.
std::vector<std::filesystem::path> shipped_prompts();

}  // namespace statescope

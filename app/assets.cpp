#include "app/assets.h"

#include <algorithm>
#include <cstdlib>

#include "engine/error.h"

namespace statescope {
namespace fs = std::filesystem;

namespace {

std::vector<fs::path> shipped(const char* folder, const char* extension) {
  std::vector<fs::path> paths;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(assets_folder() / folder))
      if (entry.path().extension() == extension) paths.push_back(entry.path());
  } catch (const std::exception&) {
    return {};
  }
  std::ranges::sort(paths);
  return paths;
}

}  // namespace

fs::path assets_folder() {
  std::vector<fs::path> places;
  if (const char* named = std::getenv("STATESCOPE_ASSETS")) places.emplace_back(named);
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path folder = program.parent_path();
    for (const char* near : {"assets", "../share/statescope", "../../assets"}) places.push_back(folder / near);
  }
  places.emplace_back(STATESCOPE_SOURCE_ASSETS);
  for (const fs::path& place : places) {
    if (fs::is_directory(place / "checkpoints", error)) return fs::weakly_canonical(place);
  }
  throw Error("the program's assets are not to be found: set STATESCOPE_ASSETS to the folder that holds checkpoints/");
}

std::vector<fs::path> checkpoint_places() {
  try {
    const fs::path checkpoints = assets_folder() / "checkpoints";
    return {checkpoints, checkpoints / "trajectories", checkpoints / "seeds"};
  } catch (const Error&) {
    return {};
  }
}

std::vector<fs::path> shipped_checkpoints() { return shipped("checkpoints", ".h5"); }
std::vector<fs::path> shipped_prompts() { return shipped("prompts", ".json"); }

DefaultRun default_run() {
  const fs::path assets = assets_folder();
  return {assets / "checkpoints/niah-sse-gla-n4k1.h5", assets / "prompts/needle.json"};
}

}  // namespace statescope

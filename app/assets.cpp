#include "app/assets.h"

#include <algorithm>
#include <cstdlib>

#include "engine/error.h"

namespace statescope {
namespace fs = std::filesystem;

namespace {

constexpr const char* kTasks[] = {"mqar", "niah", "prose"};  // what shipped models were trained on

std::vector<fs::path> shipped(const fs::path& folder, const char* extension) {
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

fs::path checkpoint_folder() {
  try {
    return assets_folder() / "checkpoints";
  } catch (const Error&) {
    return {};
  }
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
  const fs::path folder = checkpoint_folder();
  if (folder.empty()) return {};
  std::vector<fs::path> places;
  for (const char* task : kTasks) places.push_back(folder / task);
  for (const char* more : {"trajectories", "seeds"}) places.push_back(folder / more);
  return places;
}

fs::path shipped_checkpoint(const std::string& name) {
  if (name.empty() || name.find('/') != name.npos || name == "." || name == "..") return {};
  std::error_code error;
  for (const fs::path& place : checkpoint_places()) {
    for (const std::string& file : {name, name + ".h5"})
      if (fs::is_regular_file(place / file, error)) return place / file;
  }
  return {};
}

fs::path checkpoint_at(const fs::path& given) {
  std::error_code error;
  if (fs::exists(given, error)) return given;
  const bool is_name = !given.has_parent_path();
  if (!is_name && !fs::equivalent(given.parent_path(), checkpoint_folder(), error)) return given;
  const fs::path shipped = shipped_checkpoint(given.filename().string());
  return shipped.empty() ? given : shipped;
}

std::vector<fs::path> shipped_checkpoints() {
  std::vector<fs::path> all;
  for (const char* task : kTasks) {
    const std::vector<fs::path> some = shipped(fs::path("checkpoints") / task, ".h5");
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}
std::vector<fs::path> shipped_prompts() { return shipped("prompts", ".json"); }

DefaultRun default_run() {
  const fs::path assets = assets_folder();
  return {assets / "checkpoints/niah/niah-sse-gla-n4k1.h5", assets / "prompts/needle.json"};
}

}  // namespace statescope

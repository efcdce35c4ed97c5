#include "app/inspect/checkpoints.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace statescope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// "gla-step900" before "gla-step1000": a name without its number, then the number.
std::pair<std::string, std::int64_t> numbered(const std::string& path) {
  constexpr std::size_t most_digits = 18;
  const fs::path name = fs::path(path).filename();
  const std::string stem = name.extension() == ".h5" ? name.stem().string() : name.string();
  const std::size_t digits = stem.find_last_not_of("0123456789") + 1;
  if (digits == stem.size() || stem.size() - digits > most_digits) return {stem, 0};
  return {stem.substr(0, digits), std::stoll(stem.substr(digits))};
}

json read_json(const fs::path& path) {
  std::ifstream file(path);
  return json::parse(file, nullptr, false);
}

/// trainer_state.json says global_step; else what the name ends with, where it speaks of steps.
std::int64_t steps_of(const std::string& path) {
  constexpr std::uint64_t most_steps = 1'000'000'000'000'000;
  const json state = read_json(fs::path(path) / "trainer_state.json");
  const json step = state.is_object() ? state.value("global_step", json()) : json();
  if (step.is_number_unsigned() && step.get<std::uint64_t>() <= most_steps) return step;
  const auto [name, number] = numbered(path);
  return name.ends_with("step") || name.ends_with("step-") || name.ends_with("step_") || name.ends_with("checkpoint-") ? number : 0;
}

bool has_weights(const fs::path& folder) {
  const json index = read_json(folder / "model.safetensors.index.json");
  if (index.is_object() && index.contains("weight_map") && index["weight_map"].is_object()) {
    for (const json& file : index["weight_map"]) {
      std::error_code error;  // of a name that no file can have
      if (!file.is_string() || !fs::exists(folder / file.get<std::string>(), error)) return false;
    }
    return true;
  }
  const auto entries = fs::directory_iterator(folder);
  return std::any_of(begin(entries), end(entries), [](const fs::directory_entry& e) { return e.path().extension() == ".safetensors"; });
}

/// What a folder inside the given one is: a checkpoint, one that is not whole, or something else.
void add_folder(const fs::path& folder, FoundCheckpoints& found) {
  const bool has_config = fs::exists(folder / "config.json");
  const bool looks_so = has_config || numbered(folder.string()).first.ends_with("checkpoint-");
  if (!looks_so) return;
  if (!has_config)
    found.skipped.push_back(folder.string() + ": no config.json yet");
  else if (!has_weights(folder))
    found.skipped.push_back(folder.string() + ": its weights are not all there yet");
  else
    found.checkpoints.push_back({folder.string(), steps_of(folder.string())});
}

}  // namespace

bool comes_before(const FoundCheckpoint& a, const FoundCheckpoint& b) { return numbered(a.path) < numbered(b.path); }

FoundCheckpoints find_checkpoints(const std::vector<std::string>& given) {
  FoundCheckpoints found;
  for (const std::string& path : given) {
    if (!fs::is_directory(path) || fs::exists(fs::path(path) / "config.json")) {
      found.checkpoints.push_back({path, steps_of(path)});
      continue;
    }
    FoundCheckpoints inside;
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.path().extension() == ".h5")
        inside.checkpoints.push_back({entry.path().string(), steps_of(entry.path().string())});
      else if (entry.is_directory())
        add_folder(entry.path(), inside);
    }
    std::ranges::sort(inside.checkpoints, comes_before);
    std::ranges::sort(inside.skipped);
    found.checkpoints.insert(found.checkpoints.end(), inside.checkpoints.begin(), inside.checkpoints.end());
    found.skipped.insert(found.skipped.end(), inside.skipped.begin(), inside.skipped.end());
  }
  return found;
}

}  // namespace statescope

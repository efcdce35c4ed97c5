#include "app/ranks/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <thread>

namespace statescope {
namespace {

/// How one kind of launcher names a process's place.
struct Names {
  const char *rank, *size, *local, *local_size;
};
// A job's script under Slurm is no step of it: what belongs to the whole job is set there, too.
constexpr std::array kLaunchers{
    Names{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    Names{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"},
    Names{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}};

std::optional<int> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return {};
  const std::string_view word(text);
  int number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || number < 0) return {};
  return number;
}

}  // namespace

std::optional<RankPlace> rank_place() {
  for (const Names& names : kLaunchers) {
    const std::optional<int> rank = number_in(names.rank), size = number_in(names.size);
    if (!rank || !size || *size < 2 || *rank >= *size) continue;
    return RankPlace{*rank, *size, number_in(names.local).value_or(0), number_in(names.local_size).value_or(0)};
  }
  return {};
}

void forget_rank_place() {
  for (const Names& names : kLaunchers) ::unsetenv(names.size);
}

DeviceChoice device_of_rank(DeviceChoice choice, const RankPlace& place, int gpus) {
  if (choice.name == "auto" && gpus == 0) choice.name = "cpu";
  if ((choice.name == "cuda" || choice.name == "auto") && gpus > 0) choice.name = fmt::format("cuda:{}", place.local % gpus);
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (choice.threads == 0 && place.local_size > 1) choice.threads = std::max(1, cores / place.local_size);
  return choice;
}

int visible_gpus() {
  if (const char* const chosen = std::getenv("CUDA_VISIBLE_DEVICES")) {
    const std::string_view list(chosen);
    return list.empty() || list.starts_with('-') ? 0 : static_cast<int>(std::ranges::count(list, ',')) + 1;
  }
  int found = 0;
  std::error_code none;
  while (std::filesystem::exists(fmt::format("/dev/nvidia{}", found), none)) ++found;
  return found;
}

}  // namespace statescope

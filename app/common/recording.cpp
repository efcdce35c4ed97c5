#include "app/common/recording.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace statescope {

RunOptions recording_budgets(std::int64_t megabytes) {
  const std::size_t bytes = static_cast<std::size_t>(megabytes) * 1'000'000;
  return {.memory_budget = bytes, .host_memory_budget = bytes};
}

std::string recording_text(const RecordingInfo& recording) {
  const auto megabytes = [](std::int64_t bytes) { return fmt::format("{:.1f}", static_cast<double>(bytes) / 1e6); };
  const bool has_device = recording.host_budget > 0;
  std::string text =
      fmt::format("recording: a keyframe every {} tokens; {} of {} MB of {}", recording.keyframe_interval, megabytes(recording.memory),
                  megabytes(recording.memory_budget), has_device ? "the device's memory" : "memory");
  if (has_device) text += fmt::format(", {} of {} MB of the host's", megabytes(recording.host), megabytes(recording.host_budget));
  return text + (recording.file > 0 ? fmt::format(", {} MB in a file", megabytes(recording.file)) : "");
}

nlohmann::json recording_json(const RecordingInfo& recording) {
  return {{"keyframe_interval", recording.keyframe_interval},
          {"memory", recording.memory},
          {"memory_budget", recording.memory_budget},
          {"host", recording.host},
          {"host_budget", recording.host_budget},
          {"file", recording.file}};
}

}  // namespace statescope

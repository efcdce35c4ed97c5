// How much a recording may take, and how that is said.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/run/run.h"

namespace statescope {

/// `megabytes` of the device's memory, and of the host's beside it; 0: a quarter of what is free of each.
RunOptions recording_budgets(std::int64_t megabytes);
/// In a line: how far its keyframes are from each other, what it takes and what it may take.
std::string recording_text(const RecordingInfo& recording);
nlohmann::json recording_json(const RecordingInfo& recording);

}  // namespace statescope

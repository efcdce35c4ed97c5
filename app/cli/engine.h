// Commands whose runs are read by an engine on another machine.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/commands.h"
#include "app/remote/engine_runs.h"

namespace statescope {

/// Those that ask one.
std::span<const std::string_view> commands_of_engine();
/// Why a command has nothing to ask an engine, and what to do; empty: it has.
std::string why_no_engine(const std::string& command);

/// Throws OptionsError for what only an engine's own machine is told: devices and memory.
void check_fits_engine(const EngineArguments& engine, const DeviceChoice& device, std::int64_t memory);
/// What an engine that ssh starts is told of these, as `statescope serve` takes it.
std::vector<std::string> engine_options(const DeviceChoice& device, std::int64_t memory);
/// What reads a command's runs; null: no engine is named. Needs a running QCoreApplication. Throws OptionsError, Error.
std::unique_ptr<EngineRuns> reach_engine(const EngineArguments& engine, const DeviceChoice& device, std::int64_t memory);

}  // namespace statescope

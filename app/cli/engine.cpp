#include "app/cli/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/error.h"

namespace statescope {

std::span<const std::string_view> commands_of_engine() {
  constexpr static std::array<std::string_view, 12> names{"run",     "model",     "needle", "inspect", "eval", "observe",
                                                          "history", "intervene", "figure", "film",    "page", "batch"};
  return names;
}

std::string why_no_engine(const std::string& command) {
  constexpr std::array<std::string_view, 2> reads{"check", "bench"};
  if (std::ranges::count(commands_of_engine(), command) > 0) return "";
  if (std::ranges::find(reads, command) != reads.end())
    return fmt::format("{0} works with the model itself: start it on the engine's machine, as with ssh USER@HOST statescope {0} …",
                       command);
  return command + " does not use an engine; leave the option out";
}

void check_fits_engine(const EngineArguments& engine, const DeviceChoice& device, std::int64_t memory) {
  const bool by_ssh = is_ssh(engine.place);
  const auto refuse = [&](bool given, const char* option, const char* why) {
    if (given) throw OptionsError(fmt::format("{} does not go with --engine {}: {}", option, engine.place, why));
  };
  refuse(!by_ssh && device.name != "cpu", "--device", "it is set where the engine is started");
  refuse(!by_ssh && device.precision != Precision::float32, "--precision", "it is set where the engine is started");
  refuse(!by_ssh && device.threads > 0, "--threads", "it is set where the engine is started");
  refuse(!by_ssh && memory > 0, "--memory", "it is set where the engine is started");
  refuse(by_ssh && !engine.token_file.empty(), "--engine-token-file", "ssh starts the engine with a token of its own");
  refuse(by_ssh && !engine.authorities.empty(), "--engine-ca", "ssh encrypts the connection");
}

std::vector<std::string> engine_options(const DeviceChoice& device, std::int64_t memory) {
  std::vector<std::string> options{"--device", device.name, "--precision",
                                   device.precision == Precision::bfloat16 ? "bfloat16" : "float32"};
  if (device.threads > 0) options.insert(options.end(), {"--threads", std::to_string(device.threads)});
  if (memory > 0) options.insert(options.end(), {"--memory", std::to_string(memory)});
  return options;
}

std::unique_ptr<EngineRuns> reach_engine(const EngineArguments& engine, const DeviceChoice& device, std::int64_t memory) {
  if (engine.place.empty()) return nullptr;
  check_fits_engine(engine, device, memory);
  auto reached = std::make_unique<ReachedEngine>(engine.place, engine.token_file, engine.authorities, engine_options(device, memory));
  EnginePlace place = reached->place();
  return std::make_unique<EngineRuns>(std::move(place), std::move(reached));
}

}  // namespace statescope

// What came of `statescope run`, wherever the model was.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/commands.h"
#include "app/common/console.h"
#include "app/jobs/branch_report.h"
#include "engine/run/not_finite.h"
#include "engine/snapshot.h"

namespace statescope {

inline constexpr std::int64_t kUsualGeneration = 32;  // tokens generated

/// What a run has to say in the end.
struct Outcome {
  std::string checkpoint, family, device;
  std::vector<std::string> notes;  // of the model
  std::int64_t prompt_length = 0;
  std::int64_t restored = 0;          // tokens that a session had read before
  std::vector<Prediction> generated;  // with the probability each had
  std::vector<Prediction> next;       // most probable, where nothing was to be generated
  std::string text, expected;
  double load_seconds = 0, read_seconds = 0, generate_seconds = 0;  // generating: 0 where reading counts both
  std::optional<RecordingInfo> recording;                           // of a session
  std::optional<BranchReport> difference;                           // from the branch that it is compared with
  NotFinite not_finite;

  bool correct() const { return answers(text, expected); }
};

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// As text and as JSON, where they go.
void tell(const Outcome& outcome, const RunArguments& arguments, ReportFile& json_file);

/// The command with an engine on another machine. Throws OptionsError for what only the engine's own machine does.
int run_there(const RunArguments& arguments, ReportFile& json_file);

}  // namespace statescope

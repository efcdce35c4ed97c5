// Where a command has a model do something: in this program, or on the engine that the command line names.
#pragma once

#include <optional>
#include <string>

#include "app/cli/engine.h"
#include "app/common/interruption.h"
#include "app/figure/fonts_alone.h"
#include "app/jobs/jobs.h"

namespace statescope {

class JobPlace {
 public:
  /// `memory`: MB of a recording; 0: a quarter of what is free. Throws OptionsError, Error.
  JobPlace(DeviceChoice device, const EngineArguments& engine, std::int64_t memory = 0);

  bool is_elsewhere() const { return engine_ != nullptr; }
  /// What the arguments name. Throws Error.
  PromptInput prompt(const PromptArguments& arguments, const std::string& checkpoint);
  /// Throws Error; Cancelled where `tell` returns false.
  template <class J>
  typename J::Found done(const std::string& checkpoint, const J& job, const JobSite::Tell& tell);
  /// Shows how far it is as `what`, until the engine is told of Ctrl+C.
  template <class J>
  typename J::Found done(const std::string& checkpoint, const J& job, const std::string& what);

 private:
  const DeviceChoice device_;
  const std::int64_t memory_;
  std::optional<Offscreen<QCoreApplication>> application_;  // of the connection
  std::optional<Interruption> interruption_;                // so that the engine hears of it
  std::unique_ptr<EngineRuns> engine_;                      // null: this program does it
};

}  // namespace statescope

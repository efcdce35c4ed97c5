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
  JobPlace(std::string checkpoint, DeviceChoice device, const EngineArguments& engine, std::int64_t memory = 0);

  /// What the arguments name. Throws Error.
  PromptInput prompt(const PromptArguments& arguments);
  /// Shows how far it is as `what`. Throws Error.
  template <class J>
  typename J::Found done(const J& job, const std::string& what);

 private:
  const std::string checkpoint_;
  const DeviceChoice device_;
  const std::int64_t memory_;
  std::optional<Offscreen<QCoreApplication>> application_;  // of the connection
  std::optional<Interruption> interruption_;                // so that the engine hears of it
  std::unique_ptr<EngineRuns> engine_;                      // null: this program does it
};

}  // namespace statescope

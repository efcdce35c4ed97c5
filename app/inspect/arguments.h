// What is inspected, and where the report goes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/common/engine_arguments.h"
#include "app/common/prompts.h"
#include "engine/device.h"

namespace statescope {

struct InspectArguments {
  std::vector<std::string> checkpoints;
  PromptArguments prompt;             // a text or ids; none, and no files: examples of the task that the checkpoint was trained on
  std::vector<std::string> prompts;   // prompt files; all examples of those that have several
  std::vector<std::int64_t> lengths;  // of its task's examples; empty: a quarter of the training length, that length, twice as long
  std::int64_t samples = 3;           // examples of each length
  std::string json, html, csv;
  bool whole = false;    // text with every figure
  bool check = false;    // end with 3 where something is ill
  bool watch = false;    // look for new checkpoints until it is interrupted
  double every = 10;     // seconds between two looks
  std::string when_ill;  // a command for the shell: what to run when a new checkpoint is ill
  DeviceChoice device;
  EngineArguments engine;
  bool force = false;
};

}  // namespace statescope

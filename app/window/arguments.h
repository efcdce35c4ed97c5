// What the window is started with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/common/engine_arguments.h"
#include "app/common/prompts.h"
#include "engine/device.h"

namespace statescope {

struct WindowArguments {
  EngineArguments engine;
  std::string checkpoint;
  std::vector<std::string> beside;  // checkpoints to compare with it
  PromptArguments prompt;
  DeviceChoice device;
  std::int64_t memory = 0;  // MB of a recording; 0: a quarter of what is free
  std::string theme = "system", screenshot, size = "1600x1000";
  float scale = 0;
  bool software = false, no_autoplay = false;
  std::vector<std::string> views;  // an arrangement of its own (arrangement_of); empty: that of last time
  std::int64_t token = -1, layer = -1, head = -1, slot = -1;
  std::string watch;      // a training's folder
  std::string lesson;     // a file, or the name of a shipped one
  std::int64_t step = 1;  // of the lesson, in a screenshot
  bool revealed = false;  // its question answered
};

}  // namespace statescope

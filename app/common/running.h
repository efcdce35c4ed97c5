// A model on the device that was asked for, and what happens where that device fails.
#pragma once

#include <functional>
#include <memory>

#include "app/common/console.h"
#include "engine/device.h"
#include "engine/model/model.h"

namespace statescope {

/// Model::load on the device asked for; says the model's notes.
std::shared_ptr<Model> load_model(std::shared_ptr<const Checkpoint> checkpoint, const DeviceChoice& device);

/// Runs a command, which prints nothing before it is done. Where `auto` chose a CUDA device and that fails or runs out of memory under way,
/// `note` hears so, the choice becomes the CPU, and the command runs once more. Throws what the command throws.
int run_with_fallback(DeviceChoice& device, const std::function<int()>& command,
                      const std::function<void(const std::string&)>& note = print_note);

}  // namespace statescope

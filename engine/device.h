// What a model runs on, as the user names it.
#pragma once

#include "kernels/device.h"

namespace statescope {

struct DeviceChoice {
  // cpu, cuda, cuda:1; several in order: cuda:0,cuda:1,cpu; two to check: check:cpu,cuda; auto: as few GPUs as have room for the model, and
  // where they have none, the CPU beside them or alone
  std::string name = "cpu";
  int threads = 0;                           // of the CPU; 0: one per core
  Precision precision = Precision::float32;  // of products
};

/// Empty for a name that a user may give, else one line that says which.
std::string wrong_device_name(const std::string& name);

/// The CUDA device, several devices (kernels/devices.h) or a checked one that is meant; null where that is the CPU. Throws DeviceError.
std::shared_ptr<Backend> open_cuda_device(const DeviceChoice& choice);
/// The CUDA device or the CPU. Throws DeviceError.
std::shared_ptr<Backend> open_device(const DeviceChoice& choice);

}  // namespace statescope

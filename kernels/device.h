// Devices by name.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "kernels/backend.h"

namespace statescope {

/// A device that cannot be used: no module, no driver, too old, lost. One line.
class DeviceError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// "cpu"; "cuda" or "cuda:1": the CUDA module is loaded from beside the program, so that the program itself starts on every machine.
/// `threads` as for make_cpu_backend. Throws DeviceError, std::invalid_argument for a name that means nothing.
std::unique_ptr<Backend> make_backend(const std::string& device, int threads = 0);

}  // namespace statescope

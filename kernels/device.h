// Devices by name.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "kernels/backend.h"

namespace statescope {

/// A device that cannot be used: no module, no driver, too old, lost. One line.
class DeviceError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What a device may round. bfloat16: the operands of matrix products and of the memories' chunk forms, on their way into tensor cores, and
/// of passes over many rows the activations in memory (Backend::activation_type); the residual stream, accumulation, states, caches, decays
/// and scores stay float32. On the CPU: the operands of products with weights (linear_rounded), nothing else.
enum class Precision : std::uint8_t { float32, bfloat16 };

/// "cpu"; "cuda" or "cuda:1", of the CUDA module, loaded from beside the program, so that the program itself starts on every machine;
/// "check:cpu,cuda" (checked/). `threads` as for make_cpu_backend. Throws DeviceError, std::invalid_argument for any other name.
std::unique_ptr<Backend> make_backend(const std::string& device, int threads = 0, Precision precision = Precision::float32);

/// The CPU of backend.h; with bfloat16 its products are rounded.
std::unique_ptr<Backend> make_cpu_backend(int threads, Precision precision);

}  // namespace statescope

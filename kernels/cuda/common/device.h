// Devices: which one, and what it is called. Included by .cu files alone.
#pragma once

#include <string>

#include "kernels/device.h"

namespace statescope::cuda {

/// The device of this thread from now on. Throws DeviceError with one line where there is none of this index, or it or its driver is too
/// old.
void choose_device(int index);

/// Its name, memory and precision, for people.
std::string described(int index, Precision precision);

}  // namespace statescope::cuda

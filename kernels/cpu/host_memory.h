// What the host has to give.
#pragma once

#include <cstddef>

namespace statescope {

/// Bytes that a program may take now without others being pushed out, as the system says; 4 GiB where it says nothing.
std::size_t available_memory();

}  // namespace statescope

// Memory of the host.
#pragma once

#include <cstddef>

namespace statescope {

/// Bytes that a program may allocate without swapping, as the system says; 4 GiB where it says nothing.
std::size_t available_memory();

}  // namespace statescope

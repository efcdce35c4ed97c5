#include "kernels/cpu/host_memory.h"

#include <fstream>
#include <string>

namespace statescope {

std::size_t available_memory() {
  std::ifstream info("/proc/meminfo");
  std::string name, unit;
  for (std::size_t kilobytes = 0; info >> name >> kilobytes; std::getline(info, unit)) {
    if (name == "MemAvailable:") return kilobytes * 1024;
  }
  return std::size_t{4} << 30;
}

}  // namespace statescope

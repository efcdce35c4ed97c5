// As much of a CUDA driver as the CUDA runtime asks before it gives up: too old (FAKE_DRIVER_VERSION), or without a GPU.
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {
constexpr int no_device = 100;
}

extern "C" {

int cuDriverGetVersion(int* version) {
  const char* const wanted = std::getenv("FAKE_DRIVER_VERSION");
  *version = wanted ? std::atoi(wanted) : 99000;
  return 0;
}

int cuInit(unsigned) { return no_device; }

int cuGetProcAddress_v2(const char* symbol, void** function, int, std::uint64_t, void*) {
  const auto is = [&](const char* name) { return std::strcmp(symbol, name) == 0; };
  *function = is("cuDriverGetVersion") ? reinterpret_cast<void*>(cuDriverGetVersion)
              : is("cuGetProcAddress") ? reinterpret_cast<void*>(cuGetProcAddress_v2)
                                       : reinterpret_cast<void*>(cuInit);
  return 0;
}
}

// Any bytes as a safetensors file: refused with an Error, or entries that lie within the file.
#include "engine/checkpoint/safetensors.h"

#include <cstdlib>

#include "engine/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) try {
  const auto bytes = std::as_bytes(std::span(data, size));
  for (const statescope::SafetensorsEntry& entry : statescope::parse_safetensors("input", bytes))
    if (entry.begin > entry.end || entry.end > size) std::abort();
  return 0;
} catch (const statescope::Error&) {
  return 0;
}

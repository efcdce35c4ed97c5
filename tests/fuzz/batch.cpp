// Any bytes as the file of a batch: refused with one line, or figures of a known format.
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "app/batch/batch.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const statescope::Batch batch = statescope::parse_batch({reinterpret_cast<const char*>(data), size}, "batch");
    if (batch.figures.empty() || batch.output.empty() || batch.format.size() != 3) std::abort();
  } catch (const std::runtime_error& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}

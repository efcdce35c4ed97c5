// Any bytes as an HDF5 checkpoint: refused with an Error, or tensors that can be read. What the HDF5 library itself does wrong ends in the
// reader's own process.
#include <cstdlib>
#include <numeric>

#include "engine/checkpoint/checkpoint.h"
#include "engine/error.h"
#include "tests/fuzz/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) try {
  const statescope::fuzz::InputFile file(data, size, ".h5");
  const auto checkpoint = statescope::open_checkpoint(file.path());
  unsigned sum = 0;
  for (const statescope::StoredTensor& tensor : checkpoint->tensors)
    for (std::int64_t i = 0; i < tensor.bytes(); ++i) sum += static_cast<unsigned>(tensor.data[i]);
  [[maybe_unused]] static volatile unsigned sink;
  sink = sum;
  return 0;
} catch (const statescope::Error&) {
  return 0;
}

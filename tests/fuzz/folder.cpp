// Any bytes as the index of a folder's shards, a zero byte, any bytes as the shard: refused with one line, or tensors that can be read.
#include <cstdlib>
#include <numeric>

#include "engine/checkpoint/checkpoint.h"
#include "engine/error.h"
#include "tests/fuzz/input_file.h"
#include "tests/temporary_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace statescope;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string_view index = bytes.substr(0, bytes.find('\0'));
  const test::TemporaryFolder folder;
  fuzz::write_bytes(folder / "config.json", "{}");
  fuzz::write_bytes(folder / "model.safetensors.index.json", index);
  fuzz::write_bytes(folder / "model-1.safetensors", bytes.substr(std::min(index.size() + 1, size)));
  try {
    const auto checkpoint = open_checkpoint(folder.path());
    for (const StoredTensor& tensor : checkpoint->tensors) {
      [[maybe_unused]] static volatile unsigned sink;
      sink = std::accumulate(tensor.data, tensor.data + tensor.bytes(), 0U,
                             [](unsigned sum, std::byte b) { return sum + static_cast<unsigned>(b); });
    }
  } catch (const Error& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}

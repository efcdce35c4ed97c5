// Any bytes as the trainer_state.json, a zero byte, any bytes as the index of a checkpoint that a training wrote: found with its steps, or
// passed over with a line.
#include <cstdlib>

#include "app/inspect/checkpoints.h"
#include "tests/fuzz/input_file.h"
#include "tests/temporary_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace statescope;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string_view state = bytes.substr(0, bytes.find('\0'));
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "checkpoint-7");
  fuzz::write_bytes(folder / "checkpoint-7/config.json", "{}");
  fuzz::write_bytes(folder / "checkpoint-7/trainer_state.json", state);
  if (state.size() < size) fuzz::write_bytes(folder / "checkpoint-7/model.safetensors.index.json", bytes.substr(state.size() + 1));
  fuzz::write_bytes(folder / "checkpoint-7/model.safetensors", "");
  const FoundCheckpoints found = find_checkpoints({folder.path().string()});
  if (found.checkpoints.size() + found.skipped.size() != 1) std::abort();
  for (const FoundCheckpoint& one : found.checkpoints)
    if (one.steps < 0) std::abort();
  return 0;
}

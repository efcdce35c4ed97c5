// Which checkpoints a folder of a training holds, in the order of their steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace statescope {

struct FoundCheckpoint {
  std::string path;
  std::int64_t steps = 0;  // by its name, or by the trainer_state.json beside it; 0: unknown
};

struct FoundCheckpoints {
  std::vector<FoundCheckpoint> checkpoints;
  std::vector<std::string> skipped;  // "PATH: why", of what looks like a checkpoint and is none yet
};

/// A folder that is no model itself stands for the .h5 files and Hugging Face folders in it ("checkpoint-5000"); other paths stand for
/// themselves. A folder without a config.json, or whose weights are not all there, is skipped: it is still being written, or broke off.
FoundCheckpoints find_checkpoints(const std::vector<std::string>& given);
/// The order within a folder: by name, and of one name by its number.
bool comes_before(const FoundCheckpoint& a, const FoundCheckpoint& b);

}  // namespace statescope

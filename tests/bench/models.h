// Models that the benchmarks read with.
#pragma once

#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "engine/model/random_checkpoint.h"

namespace statescope::bench {

/// Weights from a file, or, for a config alone (.json), random ones in bfloat16.
inline std::shared_ptr<const Checkpoint> open(const std::string& path) {
  if (!path.ends_with(".json")) return open_checkpoint(path);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return random_checkpoint(Config::parse(text.str()), 1, DType::bf16);
}

}  // namespace statescope::bench

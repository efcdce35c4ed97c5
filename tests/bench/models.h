// Models that the benchmarks read with.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>

#include "engine/model/random_checkpoint.h"

namespace statescope::bench {

/// Weights from a file, or, for a config alone (.json), random ones in bfloat16; of such a model perhaps so many layers alone.
inline std::shared_ptr<const Checkpoint> open(const std::string& path, std::int64_t layers = 0) {
  if (!path.ends_with(".json")) return open_checkpoint(path);
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be opened");
  std::stringstream text;
  text << file.rdbuf();
  const Config whole = Config::parse(text.str());
  if (layers == 0) return random_checkpoint(whole, 1, DType::bf16);
  nlohmann::json config = nlohmann::json::parse(text.str());
  config["num_hidden_layers"] = layers;
  return random_checkpoint(Config::parse(config.dump()), 1, DType::bf16);
}

}  // namespace statescope::bench

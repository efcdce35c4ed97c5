// Models that the benchmarks read with, and what they have in common as programs.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>

#include "engine/device.h"
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

/// Which model, and on what.
struct ModelChoice {
  std::string model = "assets/checkpoints/niah/niah-sse-gla-n4k1.h5";
  DeviceChoice device;

  void add_to(CLI::App& app) {
    const std::map<std::string, Precision> precisions{{"float32", Precision::float32}, {"bfloat16", Precision::bfloat16}};
    app.add_option("model", model, "a checkpoint, or a config (.json) for random weights")->capture_default_str();
    app.add_option("--device", device.name, "cpu, cuda, cuda:1, …")->capture_default_str();
    app.add_option("--threads", device.threads, "threads of the CPU; 0: one per core")->check(CLI::Range(0, 1024));
    app.add_option("--precision", device.precision, "of products")->transform(CLI::CheckedTransformer(precisions));
  }
};

/// Does the work, or says in one line why it failed. Returns the program's exit status.
template <class Work>
int run(const char* program, const Work& work) {
  try {
    work();
    return 0;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: out of memory\n", program);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program, error.what());
  }
  return 1;
}

}  // namespace statescope::bench

// The fuzz targets over their corpora in every build, without a fuzzer: each file as it is, cut off at every byte, and with bits flipped.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/source.h"

#define FUZZ_TARGET(name) extern "C" int fuzz_##name(const std::uint8_t* data, std::size_t size);
#include "targets.inc"
#undef FUZZ_TARGET

namespace statescope::replay_test {
namespace {

namespace fs = std::filesystem;

using Target = int (*)(const std::uint8_t*, std::size_t);
const std::map<std::string, Target> kTargets{
#define FUZZ_TARGET(name) {#name, fuzz_##name},
#include "targets.inc"
#undef FUZZ_TARGET
};

struct Input {
  std::string name, bytes;
};

/// The files of a target's corpus.
std::vector<Input> corpus(const std::string& target) {
  std::vector<Input> inputs;
  for (const auto& entry : fs::directory_iterator(from_source("tests/fuzz/corpus/" + target))) {
    std::ifstream file(entry.path(), std::ios::binary);
    inputs.push_back({entry.path().filename().string(), {std::istreambuf_iterator<char>(file), {}}});
  }
  return inputs;
}

/// A target aborts where it finds a fault; the test's messages then name the file.
void give(Target target, const std::string& bytes) { target(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()); }

/// HDF5 files are read in a process of their own each, which takes a while; tests/engine/checkpoint/hostile_test.cpp cuts one at every
/// byte.
std::size_t stride_of(const std::string& target) { return target == "hdf5" ? 97 : 1; }

}  // namespace

TEST_CASE("every target has a small corpus, and ends as it should on each of its files") {
  for (const auto& [name, target] : kTargets) {
    const std::vector<Input> inputs = corpus(name);
    INFO(name);
    CHECK(!inputs.empty());
    for (const Input& input : inputs) {
      INFO(input.name);
      CHECK(input.bytes.size() < 8192);  // each is read as often as it has bytes
      give(target, input.bytes);
    }
  }
}

TEST_CASE("inputs cut off at any byte do no harm") {
  for (const auto& [name, target] : kTargets) {
    for (const Input& input : corpus(name)) {
      INFO(name << ": " << input.name);
      for (std::size_t size = 0; size < input.bytes.size(); size += stride_of(name)) give(target, input.bytes.substr(0, size));
    }
  }
}

TEST_CASE("inputs with flipped bits do no harm") {
  for (const auto& [name, target] : kTargets) {
    std::mt19937 random(3);
    for (const Input& input : corpus(name)) {
      INFO(name << ": " << input.name);
      for (std::size_t i = 0; i < 500 && !input.bytes.empty(); i += stride_of(name)) {
        std::string flipped = input.bytes;
        char& byte = flipped[random() % flipped.size()];
        byte = static_cast<char>(byte ^ 1 << random() % 8);
        give(target, flipped);
      }
    }
  }
}

}  // namespace statescope::replay_test

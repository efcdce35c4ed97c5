// The tasks behind one interface: what `statescope dataset` writes and `statescope eval` scores.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "datasets/example.h"
#include "datasets/philox.h"

namespace statescope {

struct TaskOptions {
  std::string name = "niah";         // niah, mqar, copy
  std::int64_t length = 512;         // of every example, in the task's unit
  std::int64_t needles = 1;          // niah: keys that a needle names; 0: as many as fit
  std::int64_t values = 1;           // niah: needles per key, each with its own value
  std::int64_t queries = 1;          // niah: keys that are asked
  std::int64_t pairs = 8;            // mqar
  std::optional<int> depth_percent;  // niah: where the needles of the asked key stand; drawn if absent
  std::string haystack = "filler";   // niah: filler, prose (the books of assets/texts), or a text file, taken whole
  std::string value = "code";        // niah: code, number, uuid
  std::string filler = "noise";      // mqar: noise, zero
  std::uint32_t seed = 1;
  Split split = Split::evaluation;
};

/// A task with its files read and its options checked. An example depends on nothing but the options and its index: any order, any thread.
class Task {
 public:
  virtual ~Task() = default;
  virtual Example example(std::int64_t index) const = 0;
  /// What lengths count: "words" or "bytes".
  virtual std::string unit() const = 0;
};

/// Options that no example can meet: needles that do not fit into the length, a question too many.
class OptionsError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws with one line: OptionsError, or std::runtime_error for a file under `assets` that is missing or damaged.
std::unique_ptr<const Task> make_task(const TaskOptions& options, const std::filesystem::path& assets);

}  // namespace statescope

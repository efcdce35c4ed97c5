// What `statescope eval` is to measure: one cell for each setting of a task.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "datasets/task.h"

namespace statescope {

/// `samples` examples of a task; where the task is "file", at most so many of the prompts in the file `haystack`; where it is "text", at
/// most so many windows of `length` bytes of the text file `haystack` ("prose": the books that come with the program).
struct EvalCell {
  TaskOptions task;
  std::int64_t samples = 500;
  // Where replies are scored:
  std::optional<std::int64_t> reply;  // tokens that one may have; unset: as many as its answers have, and some more
  bool special = false;               // names of special tokens in a file's prompts are those tokens
  std::string score = "mixed";        // which of a file's answers a right reply contains: all, any; mixed: as each prompt says
};

/// Lists make every combination; an empty one stands for what `base` says.
struct EvalLists {
  EvalCell base;
  std::vector<std::int64_t> lengths, needles, pairs;
  std::vector<int> depths;
};

/// One line on what does not go together, empty if all does.
std::string wrong_lists(const EvalLists& lists);
std::vector<EvalCell> cells_of(const EvalLists& lists);
/// 0 … 100 in `count` equal steps, rounded; 50 alone.
std::vector<int> even_depths(int count);

/// Reads a JSON list of cells: [{"task": "niah", "length": 512, "needles": 4, "samples": 1000}, …], keys as in TaskOptions; what a cell
/// does not say it takes from `base`. Throws Error.
std::vector<EvalCell> read_cells(const std::filesystem::path& path, const EvalCell& base);
/// One of them, number `number` of the file. Throws Error.
EvalCell read_cell(const nlohmann::json& object, const std::filesystem::path& path, std::size_t number, const EvalCell& base);
/// Reads one of several such lists: {"niah": [{"task": "niah", …}, …], …}. Throws Error.
std::vector<EvalCell> read_suite(const std::filesystem::path& path, const std::string& suite, const EvalCell& base);

}  // namespace statescope

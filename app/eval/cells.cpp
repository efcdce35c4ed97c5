#include "app/eval/cells.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/checkpoint/json_object.h"
#include "engine/error.h"

namespace statescope {
namespace {

using nlohmann::json;

constexpr std::int64_t kLongest = 100'000'000, kMostSamples = 10'000'000, kLongestReply = 10'000;
constexpr std::size_t kMostBytes = 1 << 20;

const std::array<std::string_view, 5> kTasks{"niah", "mqar", "copy", "text", "file"};

/// A text has neither filler nor needles: the prose that comes with the program unless a file is named.
void settle(EvalCell& cell) {
  if (cell.task.name == "text" && cell.task.haystack == TaskOptions{}.haystack) cell.task.haystack = "prose";
}

/// Where none is given: a text's windows are longer, a copy's length is odd.
std::int64_t usual_length(const TaskOptions& task) { return task.name == "text" ? 1024 : task.name == "copy" ? 511 : task.length; }

json parsed(const std::filesystem::path& path) {
  const std::string text = read_file(path, kMostBytes);
  check_json_text(path, "the file", text);
  return json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::vector<EvalCell> cells_from(const std::filesystem::path& path, const json& list, const EvalCell& base) {
  if (!list.is_array() || list.empty()) fail(path, "is not a JSON list of cells");
  std::vector<EvalCell> cells;
  for (std::size_t i = 0; i < list.size(); ++i) cells.push_back(read_cell(list[i], path, i + 1, base));
  return cells;
}

template <class T>
std::vector<T> or_else(const std::vector<T>& list, T otherwise) {
  return list.empty() ? std::vector<T>{otherwise} : list;
}

}  // namespace

std::string wrong_lists(const EvalLists& lists) {
  const TaskOptions& task = lists.base.task;
  const TaskOptions standard;
  const auto only = [&](std::string_view option, std::string_view owner, bool given) {
    return given && task.name != owner ? fmt::format("{} is of --task {}, not of {}", option, owner, task.name) : "";
  };
  for (const std::string& wrong :
       {only("--needles", "niah", !lists.needles.empty()), only("--values", "niah", task.values != standard.values),
        only("--queries", "niah", task.queries != standard.queries), only("--depth", "niah", !lists.depths.empty()),
        only("--value", "niah", task.value != standard.value), only("--pairs", "mqar", !lists.pairs.empty()),
        only("--filler", "mqar", task.filler != standard.filler)}) {
    if (!wrong.empty()) return wrong;
  }
  if (task.haystack != standard.haystack && task.name != "niah" && task.name != "text")
    return fmt::format("--haystack is of --task niah and text, not of {}", task.name);
  return "";
}

std::vector<EvalCell> cells_of(const EvalLists& lists) {
  std::vector<std::optional<int>> depths(lists.depths.begin(), lists.depths.end());
  std::vector<EvalCell> cells;
  for (std::int64_t length : or_else(lists.lengths, usual_length(lists.base.task))) {
    for (std::int64_t needles : or_else(lists.needles, lists.base.task.needles)) {
      for (std::int64_t pairs : or_else(lists.pairs, lists.base.task.pairs)) {
        for (std::optional<int> depth : or_else(depths, lists.base.task.depth_percent)) {
          EvalCell cell = lists.base;
          cell.task.length = length;
          cell.task.needles = needles;
          cell.task.pairs = pairs;
          cell.task.depth_percent = depth;
          settle(cell);
          cells.push_back(std::move(cell));
        }
      }
    }
  }
  return cells;
}

std::vector<int> even_depths(int count) {
  if (count == 1) return {50};
  std::vector<int> depths;
  for (int i = 0; i < count; ++i) depths.push_back((200 * i + count - 1) / (2 * (count - 1)));
  return depths;
}

EvalCell read_cell(const json& value, const std::filesystem::path& path, std::size_t number, const EvalCell& base) {
  JsonObject object(value, fmt::format("{}: cell {}", path.string(), number));
  EvalCell cell = base;
  TaskOptions& task = cell.task;
  object.take("task", task.name);
  if (std::ranges::find(kTasks, task.name) == kTasks.end())
    object.refuse(fmt::format("there is no task {}; there are niah, mqar, copy, text and file", in_quotes(task.name)));
  object.take("length", task.length, 1, kLongest);
  object.take("needles", task.needles, 0, kLongest);
  object.take("values", task.values, 1, kLongest);
  object.take("queries", task.queries, 1, kLongest);
  object.take("pairs", task.pairs, 1, kLongest);
  object.take("depth_percent", task.depth_percent, 0, 100);
  object.take("haystack", task.haystack);
  object.take("file", task.haystack);
  object.take("value", task.value);
  object.take("filler", task.filler);
  object.take("seed", task.seed, 0, std::numeric_limits<std::uint32_t>::max());
  object.take("samples", cell.samples, 1, kMostSamples);
  object.take("reply", cell.reply, 1, kLongestReply);
  object.take("score", cell.score);
  if (cell.score != "all" && cell.score != "any" && cell.score != "mixed") object.wrong("score", "all, any or mixed");
  object.take("special", cell.special);
  object.nothing_else("a cell");
  settle(cell);
  return cell;
}

std::vector<EvalCell> read_cells(const std::filesystem::path& path, const EvalCell& base) { return cells_from(path, parsed(path), base); }

std::vector<EvalCell> read_suite(const std::filesystem::path& path, const std::string& suite, const EvalCell& base) {
  const json suites = parsed(path);
  if (!suites.is_object()) fail(path, "is not a JSON object of lists of cells");
  if (!suites.contains(suite)) {
    std::vector<std::string> names;
    for (const auto& [name, list] : suites.items()) names.push_back(name);
    fail(path, fmt::format("has no suite {}; there are: {}", in_quotes(suite), fmt::join(names, ", ")));
  }
  return cells_from(path, suites[suite], base);
}

}  // namespace statescope

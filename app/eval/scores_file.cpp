#include "app/eval/scores_file.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/checkpoint/json_object.h"
#include "engine/error.h"

namespace statescope {
namespace {

using nlohmann::json;

constexpr std::size_t kMostBytesOfScores = 64 << 20;

/// Keys of a stored cell that say what came out, not what was asked.
const std::set<std::string> kResults{"checkpoint",    "questions",      "exact", "low",        "high",  "tokens",    "nll",  "windows",
                                     "bits_per_byte", "standard_error", "parts", "impossible", "notes", "scored_by", "hits", "chat"};

TaskScore task_score(JsonObject& cell) {
  TaskScore score;
  score.questions = static_cast<std::int64_t>(cell.number("questions", 0, 1e12));
  score.exact = {cell.number("exact", 0, 1), cell.number("low", 0, 1), cell.number("high", 0, 1)};
  if (score.exact.low > score.exact.mean || score.exact.mean > score.exact.high) cell.refuse("\"low\", \"exact\", \"high\" do not ascend");
  std::string scored_by;
  cell.take("scored_by", scored_by);
  score.by_reply = scored_by == "reply";
  score.nll = score.by_reply ? NAN : cell.number("nll", 0, std::numeric_limits<double>::max());
  return score;
}

CellScore score_in(const json& value, const std::string& name, std::size_t number) {
  JsonObject cell(value, fmt::format("{}: cell {}", name, number));
  json asked = json::object();
  for (const auto& [key, each] : value.items()) {
    if (!kResults.contains(key) && !each.is_null()) asked[key] = each;  // a depth of null: drawn anew for each example
  }
  CellScore score;
  score.checkpoint = cell.text("checkpoint");
  score.cell = read_cell(asked, name, number, {});
  cell.take("impossible", score.impossible);
  if (score.impossible.empty() && score.cell.task.name != "text") score.task = task_score(cell);
  return score;
}

}  // namespace

std::vector<CellScore> parse_scores(std::string_view text, const std::string& name) {
  check_json_text(name, "the file", text);
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || document.value("format", json()) != "statescope-scores" || document.value("version", json()) != 1)
    fail(name, "is not a file of statescope eval --json that this version can read");
  const json cells = document.value("cells", json());
  if (!cells.is_array()) fail(name, "\"cells\" is not a list");
  std::vector<CellScore> scores;
  for (std::size_t i = 0; i < cells.size(); ++i) scores.push_back(score_in(cells[i], name, i + 1));
  return scores;
}

std::vector<CellScore> load_scores(const std::filesystem::path& path) {
  return parse_scores(read_file(path, kMostBytesOfScores), path.string());
}

}  // namespace statescope

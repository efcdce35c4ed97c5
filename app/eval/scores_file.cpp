#include "app/eval/scores_file.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/checkpoint/file.h"
#include "engine/checkpoint/format.h"
#include "engine/error.h"

namespace statescope {
namespace {

using nlohmann::json;

constexpr std::size_t kMostBytes = 64 << 20;

/// Keys of a stored cell that say what came out, not what was asked.
const std::set<std::string> kResults{"checkpoint",    "questions",      "exact", "low",        "high",  "tokens",    "nll",  "windows",
                                     "bits_per_byte", "standard_error", "parts", "impossible", "notes", "scored_by", "hits", "chat"};

/// One cell's results.
class Results {
 public:
  Results(const json& cell, const std::string& name, std::size_t number) : cell_(cell), name_(name), number_(number) {}

  [[noreturn]] void refuse(const std::string& what) const { fail(name_, fmt::format("cell {}: {}", number_, what)); }

  std::string text(const char* key) const {
    const auto found = cell_.find(key);
    if (found == cell_.end()) return {};
    if (!found->is_string()) refuse(fmt::format("\"{}\" is not text", key));
    return found->get<std::string>();
  }
  double number(const char* key, double most) const {
    const auto found = cell_.find(key);
    const double value = found == cell_.end() || !found->is_number() ? NAN : found->get<double>();
    if (!(value >= 0 && value <= most)) refuse(fmt::format("\"{}\" is not a number between 0 and {:g}", key, most));
    return value;
  }
  TaskScore task() const {
    TaskScore score;
    score.questions = static_cast<std::int64_t>(number("questions", 1e12));
    score.exact = {number("exact", 1), number("low", 1), number("high", 1)};
    if (score.exact.low > score.exact.mean || score.exact.mean > score.exact.high) refuse("\"low\", \"exact\", \"high\" do not ascend");
    score.by_reply = text("scored_by") == "reply";
    score.nll = score.by_reply ? NAN : number("nll", std::numeric_limits<double>::max());
    return score;
  }

 private:
  const json& cell_;
  const std::string& name_;
  std::size_t number_;
};

CellScore score_in(const json& value, const std::string& name, std::size_t number) {
  const Results results(value, name, number);
  if (!value.is_object()) results.refuse("is not an object");
  json asked = json::object();
  for (const auto& [key, each] : value.items()) {
    if (!kResults.contains(key) && !each.is_null()) asked[key] = each;  // a depth of null: drawn anew for each example
  }
  CellScore score;
  score.checkpoint = results.text("checkpoint");
  score.cell = read_cell(asked, name, number, {});
  score.impossible = results.text("impossible");
  if (score.checkpoint.empty()) results.refuse("has no \"checkpoint\"");
  if (score.impossible.empty() && score.cell.task.name != "text") score.task = results.task();
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

std::vector<CellScore> load_scores(const std::filesystem::path& path) { return parse_scores(read_file(path, kMostBytes), path.string()); }

}  // namespace statescope

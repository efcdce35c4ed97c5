#include "app/eval/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace statescope {
namespace {

using Json = nlohmann::ordered_json;

/// One thing that a cell sets, under its name in files.
struct Setting {
  std::string key;
  std::set<std::string> tasks;  // that have it
  Json (*value)(const EvalCell& cell);
};

const std::vector<Setting>& settings() {
  static const std::vector<Setting> list{
      {"length", {"niah", "mqar", "copy", "text"}, [](const EvalCell& cell) { return Json(cell.task.length); }},
      {"needles", {"niah"}, [](const EvalCell& cell) { return Json(cell.task.needles); }},
      {"values", {"niah"}, [](const EvalCell& cell) { return Json(cell.task.values); }},
      {"queries", {"niah"}, [](const EvalCell& cell) { return Json(cell.task.queries); }},
      {"pairs", {"mqar"}, [](const EvalCell& cell) { return Json(cell.task.pairs); }},
      {"depth_percent",
       {"niah"},
       [](const EvalCell& cell) { return cell.task.depth_percent ? Json(*cell.task.depth_percent) : Json(nullptr); }},
      {"file", {"file"}, [](const EvalCell& cell) { return Json(cell.task.haystack); }},
      {"special", {"file"}, [](const EvalCell& cell) { return Json(cell.special); }},
      {"score", {"file"}, [](const EvalCell& cell) { return Json(cell.score); }},
      {"haystack", {"niah", "text"}, [](const EvalCell& cell) { return Json(cell.task.haystack); }},
      {"value", {"niah"}, [](const EvalCell& cell) { return Json(cell.task.value); }},
      {"filler", {"mqar"}, [](const EvalCell& cell) { return Json(cell.task.filler); }},
      {"seed", {"niah", "mqar", "copy"}, [](const EvalCell& cell) { return Json(cell.task.seed); }},
  };
  return list;
}

/// As a word of a table: text without quotes, "any" where a depth is drawn.
std::string plain(const Json& value) { return value.is_null() ? "any" : value.is_string() ? value.get<std::string>() : value.dump(); }

/// The file's name where that tells checkpoints apart, else the path.
std::string short_name(const std::string& checkpoint, std::span<const CellScore> scores) {
  const auto stem = [](const std::string& path) { return std::filesystem::path(path).stem().string(); };
  const bool unique = std::all_of(scores.begin(), scores.end(), [&](const CellScore& other) {
    return other.checkpoint == checkpoint || stem(other.checkpoint) != stem(checkpoint);
  });
  const std::string name = stem(checkpoint);
  return unique && !name.empty() ? name : checkpoint;
}

using Row = std::vector<std::string>;

/// Columns as wide as their widest word; the first and the last to the left, numbers to the right.
std::string aligned(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i + 1 < row.size() || row.size() == rows.front().size()) widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line = fmt::format("{:<{}}", row.front(), widths.front());
    for (std::size_t i = 1; i < row.size(); ++i) line += i + 1 < row.size() ? fmt::format("  {:>{}}", row[i], widths[i]) : "  " + row[i];
    text += line + "\n";
  }
  return text;
}

/// The task's number and whatever is not as usual.
bool is_telling(const Setting& setting, const EvalCell& cell) {
  EvalCell usual;
  if (cell.task.name == "text") usual.task.haystack = "prose";
  return setting.key == "needles" || setting.key == "pairs" || setting.value(cell) != setting.value(usual);
}

/// What tells the cells of one task apart.
std::vector<const Setting*> columns(const std::string& task, std::span<const CellScore* const> scores) {
  std::vector<const Setting*> chosen;
  for (const Setting& setting : settings()) {
    const bool telling =
        std::any_of(scores.begin(), scores.end(), [&](const CellScore* score) { return is_telling(setting, score->cell); });
    if (setting.tasks.contains(task) && (setting.key == "length" || telling)) chosen.push_back(&setting);
  }
  return chosen;
}

std::string numbers(std::span<const double> values) { return fmt::format("{:.3f}", fmt::join(values, " ")); }

/// When an answer counts as right.
std::string reply_rule(const CellScore& score) {
  const bool any = score.cell.task.name == "file" && score.cell.score == "any";
  return fmt::format("the reply{} contains {}", score.task->in_chat ? ", in chat form," : "", any ? "one of the answers" : "it");
}

Row result_row(const CellScore& score) {
  if (!score.impossible.empty()) return {score.impossible};
  if (score.text) {
    const TextScore& text = *score.text;
    return {fmt::to_string(text.windows), fmt::format("{:.4f}", text.bits_per_byte), fmt::format("{:.4f}", text.standard_error),
            numbers(text.parts)};
  }
  const TaskScore& task = *score.task;
  return {fmt::to_string(task.questions), fmt::format("{:.3f}", task.exact.mean),
          fmt::format("{:.3f}-{:.3f}", task.exact.low, task.exact.high), task.by_reply ? "-" : fmt::format("{:.4f}", task.nll),
          task.by_reply ? reply_rule(score) : numbers(task.tokens)};
}

Row result_titles(const std::string& task) {
  if (task == "text") return {"windows", "bits/byte", "+-", "by eighth of the window"};
  return {"questions", "exact", "95 %", "nll", "by token of the answer"};
}

std::string task_table(const std::string& task, std::span<const CellScore* const> scores, std::span<const CellScore> all) {
  const std::vector<const Setting*> chosen = columns(task, scores);
  std::vector<Row> rows{{task}};
  for (const Setting* setting : chosen) rows[0].push_back(setting->key == "depth_percent" ? "depth %" : setting->key);
  for (std::string& title : result_titles(task)) rows[0].push_back(std::move(title));
  for (const CellScore* score : scores) {
    Row& row = rows.emplace_back(Row{short_name(score->checkpoint, all)});
    for (const Setting* setting : chosen) row.push_back(plain(setting->value(score->cell)));
    for (std::string& word : result_row(*score)) row.push_back(std::move(word));
  }
  return aligned(rows);
}

/// Everything that a cell says but its depth and its length: cells that agree in it are one picture.
std::string apart_from_place(const CellScore& score, std::span<const CellScore> all) {
  std::string name = short_name(score.checkpoint, all);
  for (const Setting& setting : settings()) {
    if (setting.key == "length" || setting.key == "depth_percent" || !setting.tasks.contains(score.cell.task.name)) continue;
    if (is_telling(setting, score.cell)) name += fmt::format(", {} {}", setting.key, plain(setting.value(score.cell)));
  }
  return name;
}

std::string depth_grid(const std::string& title, std::span<const CellScore* const> scores) {
  std::map<int, std::map<std::int64_t, std::string>> by_place;
  std::set<std::int64_t> lengths;
  for (const CellScore* score : scores) {
    lengths.insert(score->cell.task.length);
    by_place[*score->cell.task.depth_percent][score->cell.task.length] = score->task ? fmt::format("{:.3f}", score->task->exact.mean) : "-";
  }
  if (by_place.size() < 2) return "";
  std::vector<Row> rows{{"depth %"}};
  for (std::int64_t length : lengths) rows[0].push_back(fmt::to_string(length));
  for (auto& [depth, cells] : by_place) {
    Row& row = rows.emplace_back(Row{fmt::to_string(depth)});
    for (std::int64_t length : lengths) row.push_back(cells.contains(length) ? cells[length] : "");
  }
  return fmt::format("\nexact by depth and length: {}\n{}", title, aligned(rows));
}

/// By what an answer counts as right, and what that way of scoring tells beside.
Json how(const CellScore& score) {
  const TaskScore& task = *score.task;
  if (!task.by_reply) return {{"scored_by", "tokens"}, {"tokens", task.tokens}, {"nll", task.nll}};
  const Json reply = score.cell.reply ? Json(*score.cell.reply) : Json(nullptr);
  return {{"scored_by", "reply"}, {"hits", task.hits}, {"reply", reply}, {"chat", task.in_chat}};
}

Json json_of(const CellScore& score) {
  Json cell{{"checkpoint", score.checkpoint}, {"task", score.cell.task.name}};
  for (const Setting& setting : settings()) {
    if (setting.tasks.contains(score.cell.task.name)) cell[setting.key] = setting.value(score.cell);
  }
  cell["samples"] = score.cell.samples;
  if (!score.notes.empty()) cell["notes"] = score.notes;
  if (!score.impossible.empty()) cell["impossible"] = score.impossible;
  if (score.task) {
    cell["questions"] = score.task->questions;
    cell["exact"] = score.task->exact.mean;
    cell["low"] = score.task->exact.low;
    cell["high"] = score.task->exact.high;
    cell.update(how(score));
  }
  if (score.text) {
    cell["windows"] = score.text->windows;
    cell["bits_per_byte"] = score.text->bits_per_byte;
    cell["standard_error"] = score.text->standard_error;
    cell["parts"] = score.text->parts;
  }
  return cell;
}

/// A value of a CSV line: lists joined by spaces, text in quotes where it needs them.
std::string csv_word(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_array()) {
    std::vector<std::string> words;
    for (const Json& item : value) words.push_back(item.dump());
    return fmt::format("{}", fmt::join(words, " "));
  }
  if (!value.is_string()) return value.dump();
  std::string text = value;
  if (text.find_first_of(",\"\n\r") == text.npos) return text;
  for (std::size_t at = 0; (at = text.find('"', at)) != text.npos; at += 2) text.insert(at, 1, '"');
  return '"' + text + '"';
}

}  // namespace

std::string eval_table(std::span<const CellScore> scores) {
  std::map<std::string, std::vector<const CellScore*>> tasks, grids;
  for (const CellScore& score : scores) {
    tasks[score.cell.task.name].push_back(&score);
    if (score.cell.task.depth_percent) grids[apart_from_place(score, scores)].push_back(&score);
  }
  std::string text;
  for (const auto& [task, of_task] : tasks) text += (text.empty() ? "" : "\n") + task_table(task, of_task, scores);
  for (const auto& [title, of_grid] : grids) text += depth_grid(title, of_grid);
  return text;
}

std::string eval_json(std::span<const CellScore> scores) {
  Json document{{"format", "statescope-scores"}, {"version", 1}, {"split", "evaluation"}, {"cells", Json::array()}};
  for (const CellScore& score : scores) document["cells"].push_back(json_of(score));
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string eval_csv(std::span<const CellScore> scores) {
  std::vector<std::string> keys{"checkpoint", "task"};
  for (const Setting& setting : settings()) keys.push_back(setting.key);
  for (const char* key : {"samples", "questions", "exact", "low", "high", "nll", "tokens", "scored_by", "hits", "windows", "bits_per_byte",
                          "standard_error", "parts", "impossible"})
    keys.emplace_back(key);
  std::string text = fmt::format("{}\n", fmt::join(keys, ","));
  for (const CellScore& score : scores) {
    const Json cell = json_of(score);
    std::vector<std::string> words;
    for (const std::string& key : keys) words.push_back(cell.contains(key) ? csv_word(cell[key]) : "");
    text += fmt::format("{}\n", fmt::join(words, ","));
  }
  return text;
}

}  // namespace statescope

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>

#include "app/assets.h"
#include "app/cli/commands.h"
#include "app/common/console.h"
#include "app/common/interruption.h"
#include "app/eval/report.h"
#include "engine/error.h"
#include "engine/run/not_finite.h"

namespace statescope {
namespace {

/// Over all cells of all checkpoints.
class Meter {
 public:
  explicit Meter(std::int64_t tokens) : all_(tokens) {}

  void show(std::int64_t tokens_of_cell) {
    of_cell_ = tokens_of_cell;
    bar_->show(std::min(static_cast<double>(planned_ + of_cell_) / static_cast<double>(all_), 1.0), fmt::format("{:.0f} tokens/s", rate()));
  }
  /// `planned`: what the cell counted for in the sum.
  void next_cell(std::int64_t planned) {
    planned_ += planned;
    read_ += of_cell_;
    of_cell_ = 0;
  }
  void finish() {
    bar_.reset();
    fmt::print(stderr, "{} tokens in {:.1f} s: {:.0f} tokens/s\n", read_, seconds(), rate());
  }

 private:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  double rate() const { return static_cast<double>(read_ + of_cell_) / seconds(); }

  std::optional<ProgressBar> bar_{std::in_place, "scoring"};
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::int64_t all_, planned_ = 0, read_ = 0, of_cell_ = 0;
};

/// About, where a file's prompts or needles in real text are read.
std::int64_t planned_tokens(const PreparedCell& cell) {
  constexpr std::size_t bytes_of_token = 4;
  std::size_t tokens = 1;
  for (const Prompt& prompt : std::span(cell.prompts).first(cell.prompts.empty() ? 0 : static_cast<std::size_t>(cell.samples())))
    tokens += prompt.ids.size() + prompt.text.size() / bytes_of_token;
  return cell.prompts.empty() ? cell.samples() * cell.cell.task.length : static_cast<std::int64_t>(tokens);
}

std::vector<EvalCell> file_cells(const EvalArguments& arguments) {
  std::vector<EvalCell> cells;
  for (const std::string& file : arguments.prompts) {
    EvalCell& cell = cells.emplace_back(arguments.lists.base);
    cell.task.name = "file";
    cell.task.haystack = file;
  }
  return cells;
}

std::vector<EvalCell> wanted_cells(const EvalArguments& arguments, const std::filesystem::path& assets) {
  const EvalCell& base = arguments.lists.base;
  if (!arguments.grid.empty()) return read_cells(arguments.grid, base);
  if (!arguments.suite.empty()) return read_suite(assets / "tasks/scores.json", arguments.suite, base);
  if (!arguments.prompts.empty()) return file_cells(arguments);
  return cells_of(arguments.lists);
}

std::vector<PreparedCell> prepare_all(const EvalArguments& arguments) {
  const std::filesystem::path assets = assets_folder();
  std::vector<PreparedCell> prepared;
  for (const EvalCell& cell : wanted_cells(arguments, assets)) prepared.push_back(prepare(cell, assets));
  return prepared;
}

/// Scores of one checkpoint, cell by cell.
void score_checkpoint(const std::string& name, std::shared_ptr<const Checkpoint> checkpoint, std::span<const PreparedCell> cells,
                      const DeviceChoice& device, Meter& meter, std::vector<CellScore>& scores) {
  ScorerPool pool(checkpoint, device);
  print_notes(pool.model().notes());
  const std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer(*checkpoint, pool.model().vocab());
  for (const PreparedCell& cell : cells) {
    scores.push_back(score_cell(cell, pool, tokenizer, [&](std::int64_t tokens) {
      meter.show(tokens);
      return !Interruption::asked();
    }));
    scores.back().checkpoint = name;
    scores.back().notes = pool.model().notes();
    meter.next_cell(planned_tokens(cell));
  }
}

/// No cell of it has a score.
void add_without_scores(const std::string& name, std::span<const PreparedCell> cells, const std::string& why,
                        std::vector<CellScore>& scores) {
  for (const PreparedCell& cell : cells)
    scores.push_back({.checkpoint = name, .cell = cell.cell, .impossible = why, .task = {}, .text = {}});
}

struct AllScores {
  std::vector<CellScore> scores;
  std::vector<std::string> broken;  // checkpoints that compute no numbers: why they have no score
};

/// Throws NotFiniteError if no checkpoint has a score for that reason, OptionsError if no cell is possible.
AllScores score_all(const EvalArguments& arguments) {
  const std::vector<PreparedCell> cells = prepare_all(arguments);
  std::vector<std::shared_ptr<const Checkpoint>> checkpoints;
  for (const std::string& path : arguments.checkpoints) checkpoints.push_back(open_checkpoint(path));
  std::int64_t tokens = 0;
  for (const PreparedCell& cell : cells) tokens += planned_tokens(cell) * std::ssize(checkpoints);

  AllScores all;
  Meter meter(tokens);
  for (std::size_t i = 0; i < checkpoints.size(); ++i) {
    const std::string& name = arguments.checkpoints[i];
    std::vector<CellScore> scores;
    try {
      score_checkpoint(name, checkpoints[i], cells, arguments.device, meter, scores);
    } catch (const NotFiniteError& why) {
      all.broken.emplace_back(why.what());
      scores.clear();
      add_without_scores(name, cells, why.what(), scores);
    }
    std::ranges::move(scores, std::back_inserter(all.scores));
  }
  const auto has_score = [](const CellScore& score) { return score.impossible.empty(); };
  if (all.broken.empty() && std::ranges::none_of(all.scores, has_score)) throw OptionsError(all.scores.front().impossible);
  if (all.broken.size() == checkpoints.size()) throw NotFiniteError(fmt::format("{}", fmt::join(all.broken, "; ")));
  meter.finish();
  return all;
}

}  // namespace

int eval_command(const EvalArguments& arguments) {
  const Interruption interruption;
  ReportFile json(arguments.json, arguments.force), csv(arguments.csv, arguments.force);
  AllScores all;
  try {
    all = score_all(arguments);
  } catch (const Error&) {
    if (Interruption::asked()) throw Error("interrupted; no scores were written");
    throw;
  }
  print_report(eval_table(all.scores), {&json, &csv});
  json.write(eval_json(all.scores));
  csv.write(eval_csv(all.scores));
  for (const std::string& why : all.broken) print_failure(why);
  return all.broken.empty() ? 0 : 1;
}

}  // namespace statescope

#include <fmt/format.h>

#include <chrono>
#include <optional>

#include "app/assets.h"
#include "app/cli_commands.h"
#include "app/eval/report.h"
#include "app/interruption.h"
#include "engine/error.h"

namespace statescope {
namespace {

/// Over all cells of all checkpoints.
class Meter {
 public:
  explicit Meter(std::int64_t tokens) : all_(tokens) {}

  void show(std::int64_t tokens_of_cell) {
    of_cell_ = tokens_of_cell;
    bar_->show(static_cast<double>(planned_ + of_cell_) / static_cast<double>(all_), fmt::format("{:.0f} tokens/s", rate()));
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

std::int64_t planned_tokens(const PreparedCell& cell) { return cell.impossible.empty() ? cell.samples() * cell.cell.task.length : 0; }

std::vector<EvalCell> wanted_cells(const EvalArguments& arguments, const std::filesystem::path& assets) {
  const EvalCell& base = arguments.lists.base;
  if (!arguments.grid.empty()) return read_cells(arguments.grid, base);
  if (!arguments.suite.empty()) return read_suite(assets / "tasks/scores.json", arguments.suite, base);
  return cells_of(arguments.lists);
}

/// Throws OptionsError if no cell is possible.
std::vector<PreparedCell> prepare_all(const EvalArguments& arguments) {
  const std::filesystem::path assets = assets_folder();
  std::vector<PreparedCell> prepared;
  bool possible = false;
  for (const EvalCell& cell : wanted_cells(arguments, assets)) {
    prepared.push_back(prepare(cell, assets));
    possible = possible || prepared.back().impossible.empty();
  }
  if (!possible) throw OptionsError(prepared.front().impossible);
  return prepared;
}

/// Scores of one checkpoint, cell by cell.
void score_checkpoint(const std::string& name, std::shared_ptr<const Checkpoint> checkpoint, std::span<const PreparedCell> cells,
                      const DeviceChoice& device, Meter& meter, std::vector<CellScore>& scores) {
  ScorerPool pool(checkpoint, device);
  print_notes(pool.model().notes());
  const auto tokenizer = make_tokenizer(*checkpoint, pool.model().vocab());
  for (const PreparedCell& cell : cells) {
    scores.push_back(score_cell(cell, pool, *tokenizer, [&](std::int64_t tokens) {
      meter.show(tokens);
      return !Interruption::asked();
    }));
    scores.back().checkpoint = name;
    scores.back().notes = pool.model().notes();
    meter.next_cell(planned_tokens(cell));
  }
}

std::vector<CellScore> score_all(const EvalArguments& arguments) {
  const std::vector<PreparedCell> cells = prepare_all(arguments);
  std::vector<std::shared_ptr<const Checkpoint>> checkpoints;
  for (const std::string& path : arguments.checkpoints) checkpoints.push_back(open_checkpoint(path));
  std::int64_t tokens = 0;
  for (const PreparedCell& cell : cells) tokens += planned_tokens(cell) * std::ssize(checkpoints);

  std::vector<CellScore> scores;
  Meter meter(tokens);
  for (std::size_t i = 0; i < checkpoints.size(); ++i)
    score_checkpoint(arguments.checkpoints[i], checkpoints[i], cells, arguments.device, meter, scores);
  meter.finish();
  return scores;
}

}  // namespace

int eval_command(const EvalArguments& arguments) {
  ReportFile json(arguments.json, arguments.force), csv(arguments.csv, arguments.force);
  const Interruption interruption;
  std::vector<CellScore> scores;
  try {
    scores = score_all(arguments);
  } catch (const Error&) {
    if (Interruption::asked()) throw Error("interrupted; no scores were written");
    throw;
  }
  fmt::print("{}", eval_table(scores));
  json.write(eval_json(scores));
  csv.write(eval_csv(scores));
  return 0;
}

}  // namespace statescope
